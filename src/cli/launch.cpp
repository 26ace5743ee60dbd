// `tenon launch`: runs a program as several workers on this machine.
#include <cstdio>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/launch_workers.h"
#include "cli/output.h"

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

}  // namespace

void add_launch(CLI::App& app, const Host& host) {
  struct Options {
    int workers = 1, threads = 0;
    std::vector<std::string> command;
  };
  auto options = std::make_shared<Options>();
  CLI::App* launch = app.add_subcommand("launch", "Run a program as several workers");
  launch->add_option("-n,--workers", options->workers, "How many workers")
      ->check(CLI::Range(1, 256));
  launch->add_option("--threads", options->threads, "Of each worker (the cores, shared evenly)");
  launch->add_option("command", options->command, "The program and its arguments")->required();
  launch->positionals_at_end();
  launch->prefix_command();
  launch->callback([options, python = python_of(host)] {
    std::vector<std::string> command = command_of(options->command, python);
    int code = workers::launch({options->workers, command, options->threads}, report);
    if (code) throw CLI::RuntimeError(code);
  });
}

}  // namespace tn
