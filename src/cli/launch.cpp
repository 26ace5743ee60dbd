// `tenon launch`: runs a program as several workers, on this machine or on several.
#include <charconv>
#include <cstdio>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/launch_hosts.h"
#include "cli/launch_workers.h"
#include "cli/output.h"
#include "observe/instruction_log.h"

namespace tn {
namespace {

void report(const std::string& line) { std::fputs(format("tenon: {}\n", line).c_str(), stderr); }

/// The words that start a program; a file of Python is run by the interpreter.
std::vector<std::string> command_of(const std::vector<std::string>& words,
                                    const std::string& python) {
  std::vector<std::string> command = words;
  if (words[0].ends_with(".py")) command.insert(command.begin(), python);
  return command;
}

/// `-m MODULE`, and all that follows it, is for the interpreter. It may stand behind options of the
/// launcher, which have values.
void read_module(std::vector<std::string>& args, const std::string& python) {
  if (args.empty() || args[0] != "launch") return;
  for (size_t i = 1; i < args.size() && args[i].starts_with('-') && args[i] != "--"; ++i) {
    if (args[i] == "-m") {
      args.insert(args.begin() + static_cast<std::ptrdiff_t>(i), python);
      return;
    }
    bool has_value =
        args[i].starts_with("--") ? args[i].find('=') != args[i].npos : args[i].size() > 2;  // -n4
    if (!has_value) ++i;
  }
}

constexpr int kMostWorkers = 256;

/// "4", or "2:8": as many as there can be, and at least two after failures. Gives what is wrong.
std::string read_workers(const std::string& text, workers::LaunchRequest& request) {
  int least = 0, most = 0;
  const char *at = text.data(), *end = at + text.size();
  auto [first, error] = std::from_chars(at, end, least);
  most = least;
  std::from_chars_result last{first, error};
  if (error == std::errc() && first != end && *first == ':')
    last = std::from_chars(first + 1, end, most);
  if (error != std::errc() || last.ec != std::errc() || last.ptr != end || least < 1 ||
      most < least || most > kMostWorkers)
    return format(
        "'{}' is not a number of workers from 1 to {}: write -n 4, or -n 2:8 for at "
        "least 2 and at most 8",
        text, kMostWorkers);
  request.size = most, request.least = least;
  return {};
}

}  // namespace

void add_launch(CLI::App& app, const Host& host, std::vector<std::string>& args) {
  read_module(args, python_of(host));
  struct Options {
    std::string workers, hosts, hostfile;
    workers::LaunchRequest request;
  };
  auto options = std::make_shared<Options>();
  workers::LaunchRequest& request = options->request;
  CLI::App* launch = app.add_subcommand("launch", "Run a program as several workers");
  launch
      ->add_option("-n,--workers", options->workers,
                   "How many workers; 2:8 goes on with fewer after failures")
      ->check([&request](const std::string& text) { return read_workers(text, request); });
  launch->add_option("--threads", request.threads, "Of each worker (the cores, shared evenly)");
  launch->add_option("--restarts", request.restarts, "How often to restart after a failure (0)")
      ->check(CLI::Range(0, 1'000'000));
  auto* hosts = launch->add_option("--hosts", options->hosts, "Machines, as in a:2,b:2, by mpirun");
  launch->add_option("--hostfile", options->hostfile, "A file with a machine per line, as in a:2")
      ->excludes(hosts);
  launch->add_option("command", request.command, "The program and its arguments, or -m MODULE")
      ->required();
  launch->positionals_at_end();
  launch->prefix_command();
  launch->callback([options, python = python_of(host)] {
    workers::LaunchRequest wanted = options->request;
    wanted.command = command_of(wanted.command, python);
    if (!options->hosts.empty()) wanted.hosts = workers::parse_hosts(options->hosts);
    if (!options->hostfile.empty()) wanted.hosts = workers::read_hosts(options->hostfile);
    stop_instruction_log();  // it is that of the workers
    int code = wanted.hosts.empty() ? workers::launch(wanted, report)
                                    : workers::launch_hosts(wanted, report);
    if (code) throw CLI::RuntimeError(code);
  });
}

}  // namespace tn
