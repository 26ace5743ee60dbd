#include "eval/autotune.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/debug_log.h"
#include "compiler/graph_cache.h"
#include "plan/backend.h"
#include "runtime/device.h"
#include "runtime/own_thread.h"
#include "runtime/threads.h"
#include "storage/disk_cache.h"

namespace tn {
namespace {

constexpr std::string_view kOneThread = "threads";
/// What can be done without, and often should not be. None changes a bit of the results.
constexpr std::string_view kAlternatives[] = {"row-kernels", "epilogue", "bundle",
                                              "fuse",        "layout",   kOneThread};
constexpr double kWorthIt = 1.03;  // less is noise
constexpr int kRounds = 3, kMostRuns = 20, kMostChoices = 2;
constexpr double kSecondsOfRound = 0.01;

using Switches = std::vector<std::string>;

/// All that the choice depends on: numbers given at every run do not count.
std::string key_of(Graph graph, const CompileOptions& options, std::span<const Binding> sizes) {
  std::string key =
      format("autotune {} target {} threads {} effort {} products {} off {}\n",
             generator_of(options.target).version(), name_of(options.target), num_threads(),
             static_cast<int>(options.effort), name_of(options.products), join(options.off, ","));
  for (const Binding& b : sizes) key += format("{}={}\n", to_text(b.symbol), b.value);
  int open = options.runtime_scalars;
  for (GraphOp& op : graph.ops)
    if (op.op == &scalar_leaf && open-- > 0) op.scalar = {};
  return key + to_text(graph);
}

Tuned choice_of(const CompileOptions& options, const Switches& without) {
  Tuned choice{options.off};
  for (const std::string& name : without)
    name == kOneThread ? void(choice.alone = true) : choice.off.push_back(name);
  return choice;
}

std::string name_of(const Switches& without) {
  return without.empty() ? "as it is" : format("without {}", join(without, ", "));
}

/// A way to compute the graph, and its best time.
struct Way {
  Switches without;
  Tuned choice;
  std::shared_ptr<const Plan> plan;
  double seconds = 1e9;

  void measure(const TrialValues& values) {
    using Clock = std::chrono::steady_clock;
    std::optional<OnOwnThread> alone;
    if (choice.alone) alone.emplace();
    std::vector<Bound> results(plan->outputs.size());
    Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                               std::chrono::duration<double>(kSecondsOfRound));
    for (int i = 0; i < kMostRuns && (i == 0 || Clock::now() < end); ++i) {
      Clock::time_point began = Clock::now();
      run(*plan, values.inputs, values.scalars, results);
      std::ranges::for_each(results, wait_for);
      seconds = std::min(seconds, std::chrono::duration<double>(Clock::now() - began).count());
    }
  }
};

/// Compiles and measures. The names chosen so far stay; each way leaves out one thing more.
class Tuner {
 public:
  Tuner(const Graph& graph, const CompileOptions& options, std::span<const Binding> sizes,
        const TrialValues& values)
      : graph_(graph), options_(options), sizes_(sizes), values_(values) {
    options_.donated.clear();  // the arguments are needed again
  }

  Switches best() {
    Switches chosen;
    for (int i = 0; i < kMostChoices; ++i) {
      Switches next = better_than(chosen);
      if (next == chosen) break;
      chosen = std::move(next);
    }
    return chosen;
  }

 private:
  Way way(Switches without) const {
    CompileOptions here = options_;
    Tuned choice = choice_of(options_, without);
    here.off = choice.off;
    return {std::move(without), choice, compiled_graph(graph_, here)->plan(sizes_)};
  }

  Switches better_than(const Switches& chosen) const {
    std::vector<Way> ways;
    ways.push_back(way(chosen));
    for (std::string_view name : kAlternatives) {
      if (std::ranges::count(ways[0].choice.off, name) || std::ranges::count(chosen, name))
        continue;
      if (name == kOneThread && num_threads() == 1) continue;
      Switches more = chosen;
      more.emplace_back(name);
      ways.push_back(way(std::move(more)));
    }
    for (int round = 0; round < kRounds; ++round)  // in turns: what disturbs one disturbs all
      for (Way& way : ways) way.measure(values_);
    const Way* best = &*std::ranges::min_element(ways, {}, &Way::seconds);
    if (ways[0].seconds <= kWorthIt * best->seconds) best = &ways[0];
    for (const Way& way : ways)
      debug_compile("Autotuning: {}: {:.4f} ms{}", name_of(way.without), 1e3 * way.seconds,
                    &way == best ? ", chosen" : "");
    return best->without;
  }

  const Graph& graph_;
  CompileOptions options_;
  std::span<const Binding> sizes_;
  const TrialValues& values_;
};

/// What is on disk, unless it is damaged.
std::optional<Switches> known_choice(const std::string& key) {
  std::optional<std::string> text = DiskCache::shared().get(key);
  if (!text) return {};
  Switches names;
  for (size_t at = 0; at < text->size();) {
    size_t end = std::min(text->find(',', at), text->size());
    names.push_back(text->substr(at, end - at));
    if (!std::ranges::count(kAlternatives, names.back())) return {};
    at = end + 1;
  }
  return names;
}

}  // namespace

Tuned tuned(const Graph& graph, const CompileOptions& options, std::span<const Binding> sizes,
            const TrialValues& values) {
  std::string key = key_of(graph, options, sizes);
  if (std::optional<Switches> known = known_choice(key)) {
    debug_compile("Autotuned before: {}", name_of(*known));
    return choice_of(options, *known);
  }
  Switches chosen = Tuner(graph, options, sizes, values).best();
  DiskCache::shared().put(key, format("{}", join(chosen, ",")));
  return choice_of(options, chosen);
}

}  // namespace tn
