// `tenon opt`: passes on a graph, text in and text out.
#include "cli/commands.h"
#include "cli/load_flags.h"
#include "cli/output.h"
#include "compiler/evaluate.h"
#include "functions/executable.h"
#include "passes/pipeline.h"

namespace tn {

namespace {

struct OptOptions {
  std::string file = "-";
  std::vector<std::string> passes, off;
  int rounds = 3;
  LoadFlags load;
  bool decisions = false, list = false;
};

std::vector<Pass> named_passes(const std::vector<std::string>& names) {
  std::vector<Pass> list;
  for (const std::string& name : names) {
    check_pass_name(name);
    list.push_back(*std::ranges::find(pipeline(1), name, &Pass::name));
  }
  return list;
}

std::string optimize(const OptOptions& options) {
  for (const std::string& name : options.off) check_pass_name(name);
  std::vector<Pass> named = named_passes(options.passes);
  std::span<const Pass> passes = pipeline(options.rounds);
  Decisions decisions;
  PassContext context{
      .evaluate = evaluate, .decisions = &decisions, .on = options.passes};  // who names one asks
  Graph graph =
      is_executable(options.file)
          ? Executable::load(options.file, options.load.settings()).state()->program->graph()
          : parse_graph(read_text(options.file));
  graph = run_passes(graph, context, named.empty() ? passes : named, options.off);
  std::string text = to_text(graph);
  if (!options.decisions) return text;
  for (const Decision& d : decisions)
    text += format("# {}: {}{}: {}\n", d.pass, d.made ? "" : "not ", d.what, d.reason);
  return text;
}

std::string list_passes() {
  std::string text;
  for (const Pass& pass : pipeline(1))
    text += format("{:<10} {}{}\n", pass.name, pass.reason, pass.asked_for ? " (on request)" : "");
  return text;
}

}  // namespace

void add_opt(CLI::App& app) {
  auto options = std::make_shared<OptOptions>();
  CLI::App* opt = app.add_subcommand("opt", "Run passes on a graph: text in, text out");
  opt->add_option("file", options->file,
                  "The text of a graph, - reads the standard input; or an executable, .tnx");
  opt->add_option("--pass", options->passes, "Only these, in this order: fold,cse")
      ->delimiter(',')
      ->allow_extra_args(false);
  opt->add_option("--off", options->off, "Leave these out")
      ->delimiter(',')
      ->allow_extra_args(false);
  opt->add_option("--rounds", options->rounds, "Rounds of simplification")->check(CLI::Range(1, 3));
  opt->add_flag("--decisions", options->decisions, "Say what was decided, as comments");
  opt->add_flag("--list", options->list, "Name the passes in the order they run");
  options->load.add_to(*opt, false);
  opt->callback([options] { write_out(options->list ? list_passes() : optimize(*options)); });
}

}  // namespace tn
