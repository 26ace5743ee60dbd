// `tenon show`: a stage of the compilation of a graph, as text.
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "cli/commands.h"
#include "frontend/compiled.h"
#include "frontend/stages.h"

namespace tn {

std::string read_text(const std::string& path) {
  std::ifstream file(path == "-" ? "/dev/stdin" : path);
  if (!file) fail("no file {} that can be read", path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void add_show(CLI::App& app) {
  struct Options {
    std::string file, stage = "optimized";
    int level = 3;
    std::vector<std::string> off;
  };
  auto options = std::make_shared<Options>();
  CLI::App* show = app.add_subcommand("show", "Compile a graph and print a stage of it");
  show->add_option("file", options->file, "The text of the graph; - reads the standard input")
      ->required();
  show->add_option("--what", options->stage,
                   "graph, optimized, loops, kernels, plan, memory or decisions (optimized)");
  show->add_option("--level", options->level, "The optimization level, 0 to 5 (3)");
  show->add_option("--off", options->off, "Passes and fusions to leave out");
  show->callback([options] {
    CompileOptions given{.effort = effort_of(options->level)};
    given.off = options->off;
    std::string text = stage_text(parse_graph(read_text(options->file)), given, options->stage);
    text += '\n';
    std::fwrite(text.data(), 1, text.size(), stdout);
  });
}

}  // namespace tn
