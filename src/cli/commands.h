#pragma once
// The commands of `tenon`: each adds itself, with its options, to the app.
#include <CLI/CLI.hpp>

#include "cli/cli.h"

namespace tn {

void add_bench(CLI::App& app);
void add_cache(CLI::App& app);
/// `args`: of the whole command, for a process that goes on with it.
void add_compile(CLI::App& app, const Host& host, const std::vector<std::string>& args);
void add_doctor(CLI::App& app);
void add_env(CLI::App& app);
void add_export(CLI::App& app);
void add_gen(CLI::App& app);
void add_inspect(CLI::App& app);
/// `args`: of the whole command, where `-m MODULE` becomes the program that runs the module.
void add_launch(CLI::App& app, const Host& host, std::vector<std::string>& args);
void add_opt(CLI::App& app);
void add_run(CLI::App& app);
void add_show(CLI::App& app);

}  // namespace tn
