#pragma once
// The commands of `tenon`: each adds itself, with its options, to the app.
#include <CLI/CLI.hpp>

namespace tn {

void add_gen(CLI::App& app);
void add_show(CLI::App& app);
void add_opt(CLI::App& app);

/// The text of a file; "-" is the standard input.
std::string read_text(const std::string& path);

}  // namespace tn
