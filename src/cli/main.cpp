// The program `tenon`.
#include <cstdio>

#include "cli/commands.h"

int main(int argc, char** argv) {
  try {
    return tn::run_command_line({argv + 1, argv + argc}, {.more_commands = {tn::add_gen}});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tenon: %s\n", error.what());
    return tn::kDefect;
  }
}
