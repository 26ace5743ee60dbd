// `tenon export`: an executable as source that needs no Tenon.
#include <filesystem>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "tenon/executable.h"

namespace tn {

void add_export(CLI::App& app) {
  struct Options {
    std::string file, language = "c", folder = ".";
    bool json = false, quiet = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("export", "Write an executable as source code");
  command->add_option("file", options->file, "The executable, .tnx")->required();
  command->add_option("--to", options->language, "The language: c (c)")
      ->check(CLI::IsMember({"c"}));
  command->add_option("-o,--output", options->folder, "The folder (this one)");
  command->add_flag("--json", options->json, "What was written, as JSON");
  command->add_flag("--quiet", options->quiet, "Print nothing");
  command->callback([options] {
    std::string text = Executable::load(options->file).source(options->language);
    std::error_code error;
    std::filesystem::create_directories(options->folder, error);
    if (error) fail("{}: no such folder can be made: {}", options->folder, error.message());
    std::filesystem::path name = std::filesystem::path(options->file).stem();
    std::string path = std::filesystem::path(options->folder) / (name.string() + ".c");
    write_text(path, text);
    if (options->json)
      write_json({{"files", {path}}});
    else if (!options->quiet)
      write_out(path + "\n");
  });
}

}  // namespace tn
