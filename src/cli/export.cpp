// `tenon export`: an executable as source that needs no Tenon.
#include <filesystem>

#include "backend/source/c_plan.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/load_flags.h"
#include "cli/output.h"
#include "functions/executable.h"
#include "observe/stage_text.h"

namespace tn {
namespace {

namespace fs = std::filesystem;

struct ExportOptions {
  std::string file, language = "c", folder = ".";
  LoadFlags load;
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
std::vector<std::string> write_files(const ExportOptions& options) {
  std::string name = identifier(options.file);
  if (fs::exists(options.folder) && !fs::is_directory(options.folder))
    fail("cannot create the folder {}: a file has that name", options.folder);
  std::vector<std::string> files;
  auto write = [&](const char* ending, const std::string& text) {
    if (text.empty()) return;
    std::error_code error;
    fs::create_directories(options.folder, error);
    if (error) fail("cannot create the folder {}: {}", options.folder, error.message());
    files.push_back(fs::path(options.folder) / (name + ending));
    write_text(files.back(), text);
  };
  NamedExecutable one[] = {{name, Executable::load(options.file, options.load.settings())}};
  if (options.language == "c") {
    source::CSource c = c_source(one);
    write(".h", c.header);
    write(".c", c.source);
    write(".bin", c.constants);
  } else {
    PythonFiles made = python_files(one, options.language, name + ".safetensors");
    write(".py", made.text);
    write(".safetensors", made.constants);
  }
  return files;
}

}  // namespace

void add_export(CLI::App& app) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = app.add_subcommand(
      "export",
      "Write an executable as source that needs no Tenon, and its constants, if there are any, "
      "beside it: NAME.h, NAME.c and NAME.bin (of fixed sizes), or NAME.py and NAME.safetensors");
  command->add_option("file", options->file, "The executable, .tnx")->required();
  command->add_option("--to", options->language, "c, numpy, torch or jax (c)")
      ->check(CLI::IsMember({"c", "numpy", "torch", "jax"}));
  command->add_option("-o,--output", options->folder, "The folder (this one)");
  options->load.add_to(*command, false);
  command->add_flag("--json", options->json, "What was written, as JSON");
  command->add_flag("--quiet", options->quiet, "Print nothing");
  command->callback([options] {
    std::vector<std::string> files = write_files(*options);
    if (options->json)
      write_json({{"files", files}});
    else if (!options->quiet)
      write_out(format("{}\n", join(files, "\n")));
  });
}

}  // namespace tn
