// `tenon export`: an executable as source that needs no Tenon.
#include <filesystem>

#include "backend/source/c_plan.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "frontend/executable.h"

namespace tn {
namespace {

namespace fs = std::filesystem;

struct ExportOptions {
  std::string file, language = "c", folder = ".";
  bool json = false, quiet = false;
};

/// The name of the file as one of C.
std::string identifier(const fs::path& file) {
  std::string name = file.stem();
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) ? "f" + name : name;
}

/// Returns the files that it wrote.
std::vector<std::string> write_c(const ExportOptions& options) {
  std::string name = identifier(options.file);
  NamedExecutable one[] = {{name, Executable::load(options.file)}};
  source::CSource c = c_source(one);
  std::error_code error;
  fs::create_directories(options.folder, error);
  if (error) fail("{}: no such folder can be made: {}", options.folder, error.message());
  std::vector<std::string> files;
  auto write = [&](const char* ending, const std::string& text) {
    if (text.empty()) return;
    files.push_back(fs::path(options.folder) / (name + ending));
    write_text(files.back(), text);
  };
  write(".h", c.header);
  write(".c", c.source);
  write(".bin", c.constants);
  return files;
}

}  // namespace

void add_export(CLI::App& app) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = app.add_subcommand(
      "export",
      "Write an executable of fixed sizes as source: NAME.h, NAME.c, and NAME.bin with "
      "its constants, if there are any");
  command->add_option("file", options->file, "The executable, .tnx")->required();
  command->add_option("--to", options->language, "The language: c (c)")
      ->check(CLI::IsMember({"c"}));
  command->add_option("-o,--output", options->folder, "The folder (this one)");
  command->add_flag("--json", options->json, "What was written, as JSON");
  command->add_flag("--quiet", options->quiet, "Print nothing");
  command->callback([options] {
    std::vector<std::string> files = write_c(*options);
    if (options->json)
      write_json({{"files", files}});
    else if (!options->quiet)
      write_out(format("{}\n", join(files, "\n")));
  });
}

}  // namespace tn
