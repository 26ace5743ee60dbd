#include "frontend/autotune.h"

#include <algorithm>
#include <chrono>

#include "backend/cpu/source_hash.h"
#include "base/debug_log.h"
#include "compiler/graph_cache.h"
#include "runtime/cpu_level.h"
#include "runtime/disk_cache.h"
#include "runtime/threads.h"

namespace tn {
namespace {

constexpr std::string_view kFusions[] = {"row-kernels", "epilogue", "bundle", "fuse"};
constexpr double kWorthIt = 1.03;  // less is noise
constexpr int kRounds = 3, kMostRuns = 20;
constexpr double kSecondsOfRound = 0.01;

/// All that the choice depends on.
std::string key_of(const Graph& graph, const CompileOptions& options,
                   std::span<const Binding> sizes) {
  std::string key = format("autotune {} level {} threads {} effort {} off {}\n", cpu::source_hash(),
                           static_cast<int>(cpu_level()), num_threads(),
                           static_cast<int>(options.effort), join(options.off, ","));
  for (const Binding& b : sizes) key += format("{}={}\n", to_text(b.symbol), b.value);
  return key + to_text(graph);
}

/// A way to compile the graph, and its best time.
struct Way {
  std::string off;  // "": as the rules say
  std::shared_ptr<const Plan> plan;
  double seconds = 1e9;

  void measure(std::span<const Bound> inputs) {
    using Clock = std::chrono::steady_clock;
    std::vector<Bound> results(plan->outputs.size());
    Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                               std::chrono::duration<double>(kSecondsOfRound));
    for (int i = 0; i < kMostRuns && (i == 0 || Clock::now() < end); ++i) {
      Clock::time_point began = Clock::now();
      run(*plan, inputs, nullptr, results);
      seconds = std::min(seconds, std::chrono::duration<double>(Clock::now() - began).count());
    }
  }
  std::string name() const { return off.empty() ? "as it is" : "without " + off; }
};

std::vector<Way> ways_of(const Graph& graph, const CompileOptions& options,
                         std::span<const Binding> sizes) {
  std::vector<Way> ways;
  auto add = [&](std::string_view off) {
    CompileOptions here = options;
    here.donated.clear();  // the arguments are needed again
    if (!off.empty()) here.off.emplace_back(off);
    ways.push_back({std::string(off), compiled_graph(graph, here)->plan(sizes)});
  };
  add("");
  for (std::string_view fusion : kFusions)
    if (!std::ranges::count(options.off, fusion)) add(fusion);
  return ways;
}

}  // namespace

std::vector<std::string> tuned_off(const Graph& graph, const CompileOptions& options,
                                   std::span<const Binding> sizes, std::span<const Bound> inputs) {
  std::vector<std::string> off = options.off;
  std::string key = key_of(graph, options, sizes), chosen;
  if (std::optional<std::string> known = DiskCache::shared().get(key)) {
    chosen = *known;
    debug_compile("Autotuned before: {}", chosen.empty() ? "as it is" : "without " + chosen);
    if (chosen.empty() || std::ranges::count(kFusions, chosen)) {
      if (!chosen.empty()) off.push_back(chosen);
      return off;
    }
  }
  std::vector<Way> ways = ways_of(graph, options, sizes);
  for (int round = 0; round < kRounds; ++round)  // in turns: what disturbs one disturbs all
    for (Way& way : ways) way.measure(inputs);
  const Way& best = *std::ranges::min_element(ways, {}, &Way::seconds);
  if (ways[0].seconds > kWorthIt * best.seconds) chosen = best.off;
  for (const Way& way : ways)
    debug_compile("Autotuning: {}: {:.4f} ms{}", way.name(), 1e3 * way.seconds,
                  way.off == chosen ? ", chosen" : "");
  DiskCache::shared().put(key, chosen);
  if (!chosen.empty()) off.push_back(chosen);
  return off;
}

}  // namespace tn
