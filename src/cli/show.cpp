// `tenon show`: a stage of the compilation of a graph or an executable, as text.
#include "cli/commands.h"
#include "cli/load_flags.h"
#include "cli/output.h"
#include "functions/compiled.h"
#include "observe/stage_text.h"
#include "tenon/executable.h"

namespace tn {

void add_show(CLI::App& app) {
  struct Options {
    std::string file, stage = "optimized";
    int level = 3;
    std::vector<std::string> off;
    LoadFlags load;
  };
  auto options = std::make_shared<Options>();
  CLI::App* show =
      app.add_subcommand("show", "Compile a graph or an executable, and print a stage of it");
  show->add_option("file", options->file,
                   "The text of a graph, - reads the standard input; or an executable, .tnx")
      ->required();
  show->add_option("--what", options->stage,
                   "graph, optimized, loops, kernels, plan, memory or decisions; numpy, "
                   "torch or jax: as Python (optimized)");
  show->add_option("--level", options->level, "The optimization level of a graph, 0 to 5 (3)");
  show->add_option("--off", options->off, "Passes and fusions to leave out, of a graph");
  options->load.add_to(*show, false);
  show->callback([options] {
    if (is_executable(options->file))
      return write_out(
          Executable::load(options->file, options->load.settings()).show(options->stage) + '\n');
    CompileOptions given{.effort = effort_of(options->level)};
    given.off = options->off;
    Graph graph = parse_graph(read_text(options->file));
    auto compiled = [&] { return compilation_of(graph, given); };
    write_out((is_source_target(options->stage) ? python_text(graph, given, options->stage)
                                                : stage_text(graph, options->stage, compiled)) +
              '\n');
  });
}

}  // namespace tn
