// Random graphs: however they are compiled and run, the bits are the interpreter's.
//
// TENON_FUZZ_GRAPHS=20000 draws that many graphs instead of 500, TENON_FUZZ_SEED=17 begins with
// that seed: the way to repeat what a message names.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <set>

#include "c_library.h"
#include "fuzz_c.h"
#include "fuzz_check.h"
#include "fuzz_graph.h"
#include "run_graph.h"

using namespace tn;

namespace {

int64_t setting(const char* name, int64_t otherwise) {
  const char* given = std::getenv(name);
  return given ? std::atoll(given) : otherwise;
}

constexpr int kMostFailures = 20;  // reported; the rest would be more of the same

void check(const Way& way, int64_t seed, const Graph& graph, const Tensors& in, int& failures) {
  std::string failure = failure_of(way, graph, in);
  CHECK_MESSAGE(failure.empty(), "TENON_FUZZ_SEED=" << seed << ": " << failure);
  failures += !failure.empty();
}

/// A line now and then, for those who wait.
void show_progress(int64_t done, int64_t count) {
  if (count > 500 && done % 100 == 0)
    std::fprintf(stderr, "\r%lld of %lld graphs", static_cast<long long>(done),
                 static_cast<long long>(count));
}

}  // namespace

TEST_CASE("random graphs give the same bits in every way") {
  int64_t first = setting("TENON_FUZZ_SEED", 0), count = setting("TENON_FUZZ_GRAPHS", 500);
  int failures = 0;
  std::set<std::string_view> drawn;
  std::vector<Way> all = ways();
  for (int64_t i = 0; i < count && failures < kMostFailures; ++i) {
    int64_t seed = first + i;
    Graph graph = fuzz_graph(static_cast<uint64_t>(seed));
    Tensors in = fuzz_inputs(graph, static_cast<uint64_t>(seed));
    for (const GraphOp& op : graph.ops) drawn.insert(op.op->name);
    for (const Way& way : all) check(way, seed, graph, in, failures);
    show_progress(i, count);
  }
  if (count >= 500) CHECK(drawn.size() > 150);  // recorded ops; the others are names for them
}

namespace {

/// Graphs that a batch of C is made of, and what they are run on.
struct CBatch {
  std::vector<Graph> graphs;
  std::vector<Tensors> in;
  std::vector<std::string> names;

  void add(Graph graph, Tensors inputs, std::string name) {
    graphs.push_back(std::move(graph));
    in.push_back(std::move(inputs));
    names.push_back(std::move(name));
  }

  /// Returns how many differ.
  int check(const CompileOptions& options, const std::string& compiler) const {
    auto plans = plans_in_c(graphs, options, compiler);
    int failures = 0;
    for (size_t k = 0; k < graphs.size(); ++k) {
      Tensors expected = run_interpreted(graphs[k], in[k]);
      if (first_difference(expected, run_plan(*plans[k], graphs[k], in[k])).empty()) continue;
      ++failures;
      FAIL_CHECK(names[k] << ": " << failure_of(in_c(options, compiler), graphs[k], in[k]));
    }
    return failures;
  }
};

}  // namespace

TEST_CASE("the samples of the op table give the same bits as C") {
  constexpr size_t kBatch = 200;
  std::vector<std::string> compilers = c_compilers();
  CBatch batch;
  int turn = 0, graphs = 0;
  auto flush = [&] {
    batch.check({}, compilers[static_cast<size_t>(turn++) % compilers.size()]);
    batch = {};
  };
  for (const OpDef* op : surface_ops())
    for (const Sample& sample : op->rules->samples) {
      std::optional<Graph> graph = sample_graph(*op, sample);
      if (!graph) continue;
      Tensors in;
      for (Val v = 0; v < graph->inputs(); ++v)
        in.push_back(random_tensor(graph->types[static_cast<size_t>(v)],
                                   static_cast<uint64_t>(v) + 1, sample.lo, sample.hi));
      batch.add(std::move(*graph), std::move(in), std::string(op->name));
      ++graphs;
      if (batch.graphs.size() == kBatch) flush();
    }
  flush();
  CHECK(graphs > 500);
}

TEST_CASE("random graphs give the same bits as C") {
  constexpr int64_t kBatch = 25;  // graphs in one file
  int64_t first = setting("TENON_FUZZ_SEED", 0), count = setting("TENON_FUZZ_GRAPHS", 500) / 10;
  int failures = 0;
  std::vector<std::string> compilers = c_compilers();
  for (int64_t begin = first; begin < first + count && failures < kMostFailures; begin += kBatch) {
    CBatch batch;
    for (int64_t seed = begin; seed < std::min(begin + kBatch, first + count); ++seed) {
      Graph graph = fuzz_graph(static_cast<uint64_t>(seed));
      Tensors in = fuzz_inputs(graph, static_cast<uint64_t>(seed));
      batch.add(std::move(graph), std::move(in), format("TENON_FUZZ_SEED={}", seed));
    }
    size_t turn = static_cast<size_t>(begin / kBatch);
    CompileOptions options{.effort = turn % 4 < 2 ? Effort::e2 : Effort::e0};
    failures += batch.check(options, compilers[turn % compilers.size()]);
  }
  CHECK(failures == 0);
}
