// The `tenon` command.
#include <cstdio>

#include "cli/commands.h"
#include "cli/gen.h"
#include "tenon/error.h"

void tn::add_gen(CLI::App& app) {
  struct Options {
    std::string root = ".";
    bool check = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* gen = app.add_subcommand("gen",
                                     "Write the C++ header, Python stubs and reference "
                                     "pages that follow from the op table");
  gen->add_option("--root", options->root, "The repository")->check(CLI::ExistingDirectory);
  gen->add_flag("--check", options->check, "Only report what is not up to date");
  gen->callback([options] {
    if (int status = generate(options->root, options->check)) throw CLI::RuntimeError(status);
  });
}

namespace {

int run(int argc, char** argv) {
  CLI::App app{"Tenon: a tensor compiler library"};
  app.set_version_flag("--version", "tenon " TENON_VERSION);
  app.require_subcommand(1);
  tn::add_gen(app);
  tn::add_show(app);
  tn::add_opt(app);
  CLI11_PARSE(app, argc, argv);
  return 0;
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
