#include "cli/cli.h"

#include <cstdio>
#include <cstdlib>
#include <new>

#include "base/text.h"
#include "cli/commands.h"
#include "tenon/error.h"

namespace tn {
namespace {

int complain(Exit code, std::string_view text) {
  std::fputs(format("tenon: {}\n", text).c_str(), stderr);
  return code;
}

/// Help and the version are wanted; everything else about the arguments is an error.
int answer(const CLI::App& app, const CLI::ParseError& found) {
  if (auto* end = dynamic_cast<const CLI::RuntimeError*>(&found)) return end->get_exit_code();
  if (found.get_exit_code() == 0) return app.exit(found);
  std::string command = "tenon";
  for (const CLI::App* chosen = &app; !chosen->get_subcommands().empty();) {
    chosen = chosen->get_subcommands().front();
    command += ' ' + chosen->get_name();
  }
  return complain(kUsage, format("{}\n  hint: see {} --help", found.what(), command));
}

/// Says which is meant, when there is no such command.
int check_command(const CLI::App& app, const std::string& name) {
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
  if (std::ranges::find(known, name) != known.end()) return kDone;
  std::string_view nearest = nearest_name(name, known);
  std::string hint = nearest.empty() ? "see tenon --help" : format("did you mean {}?", nearest);
  return complain(kUsage, format("there is no command {}\n  hint: {}", name, hint));
}

constexpr const char* kFooter =
    "Exit codes: 0 done, 1 a program or file is at fault, 2 wrong usage, 3 a defect of Tenon.";

}  // namespace

std::string python_of(const Host& host) {
  const char* wanted = std::getenv("TENON_PYTHON");
  if (!host.python.empty()) return host.python;
  return wanted && *wanted ? wanted : "python3";
}

int run_command_line(std::vector<std::string> args, const Host& host) {
  CLI::App app{"Tenon: a tensor compiler library", "tenon"};
  app.set_version_flag("--version", "tenon " TENON_VERSION);
  app.require_subcommand(1);
  app.footer(kFooter);
  add_compile(app, host, args);
  add_launch(app, host, args);
  for (auto add : {add_run, add_inspect, add_bench, add_export, add_show, add_opt, add_cache,
                   add_env, add_doctor})
    add(app);
  for (auto add : host.more_commands) add(app);
  if (!args.empty() && !args[0].starts_with('-'))
    if (int code = check_command(app, args[0])) return code;
  try {
    std::ranges::reverse(args);  // as the parser wants it
    app.parse(std::move(args));
    return kDone;
  } catch (const CLI::ParseError& found) {
    return answer(app, found);
  } catch (const InternalError& error) {
    return complain(kDefect, error.what());
  } catch (const Error& error) {
    return complain(kUserFault, error.what());
  } catch (const std::bad_alloc&) {
    return complain(kUserFault, "out of memory");
  }
}

}  // namespace tn
