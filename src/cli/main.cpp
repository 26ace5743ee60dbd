// The `tenon` command.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/gen.h"
#include "tenon/error.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app{"Tenon: a tensor compiler library"};
  app.set_version_flag("--version", "tenon " TENON_VERSION);
  app.require_subcommand(1);
  std::string root = ".";
  bool check = false;
  CLI::App* gen = app.add_subcommand("gen",
                                     "Write the C++ header, Python stubs and reference "
                                     "pages that follow from the op table");
  gen->add_option("--root", root, "The repository")->check(CLI::ExistingDirectory);
  gen->add_flag("--check", check, "Only report what is not up to date");
  CLI11_PARSE(app, argc, argv);
  return tn::generate(root, check);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tenon: %s\n", error.what());
    return 1;
  }
}
