// `tenon gen`: writes the generated files, or tells which are stale.
#include "cli/gen.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "cli/commands.h"

namespace tn {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Replaces the file at once, so that a build running beside this one never reads half of it.
void write_text(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  fs::path part = path.string() + ".part";
  std::ofstream(part, std::ios::binary) << text;
  fs::rename(part, path);
}

std::vector<GeneratedFile> all_files(const fs::path& root) {
  std::vector<GeneratedFile> files = {
      cpp_header(),       cpp_operators(),
      cpp_aliases(),      cpp_functions(),
      cpp_optimizers(),   python_optimizers(),
      cpp_nn_functions(), python_losses(),
      python_stub(read_text(root / "python/tenon/_core.pyi"))};
  for (auto list : {reference_pages, cpp_layers, python_layers})
    for (GeneratedFile& file : list()) files.push_back(std::move(file));
  return files;
}

}  // namespace

int generate(const std::string& root, bool check) {
  if (!fs::exists(fs::path(root) / "src/ops"))
    fail(Hint{"name its folder with --root"}, "gen: {} is no checkout of Tenon", root);
  int stale = 0;
  for (const GeneratedFile& file : all_files(root)) {
    fs::path path = fs::path(root) / file.path;
    if (fs::exists(path) && read_text(path) == file.text) continue;
    ++stale;
    std::printf("%s: %s\n", file.path.c_str(), check ? "not up to date" : "written");
    if (!check) write_text(path, file.text);
  }
  if (check && stale) std::printf("run `make gen`\n");
  return check && stale ? 1 : 0;
}

void add_gen(CLI::App& app) {
  struct Options {
    std::string root = ".";
    bool check = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* gen =
      app.add_subcommand("gen",
                         "Write the C++ headers, Python classes and stubs and reference "
                         "pages that follow from the tables of ops, layers and optimizers");
  gen->add_option("--root", options->root, "The repository")->check(CLI::ExistingDirectory);
  gen->add_flag("--check", options->check, "Only report what is not up to date");
  gen->callback([options] {
    if (int status = generate(options->root, options->check)) throw CLI::RuntimeError(status);
  });
}

}  // namespace tn
