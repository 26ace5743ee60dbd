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

TEST_CASE("random graphs give the same bits as C") {
  constexpr int64_t kBatch = 25;  // graphs in one file
  int64_t first = setting("TENON_FUZZ_SEED", 0), count = setting("TENON_FUZZ_GRAPHS", 500) / 10;
  int failures = 0;
  std::vector<std::string> compilers = c_compilers();
  for (int64_t begin = first; begin < first + count && failures < kMostFailures; begin += kBatch) {
    std::vector<Graph> graphs;
    for (int64_t seed = begin; seed < std::min(begin + kBatch, first + count); ++seed)
      graphs.push_back(fuzz_graph(static_cast<uint64_t>(seed)));
    size_t turn = static_cast<size_t>(begin / kBatch);
    const std::string& compiler = compilers[turn % compilers.size()];
    CompileOptions options{.effort = turn % 4 < 2 ? Effort::e2 : Effort::e0};
    auto plans = plans_in_c(graphs, options, compiler);
    for (size_t k = 0; k < graphs.size(); ++k) {
      int64_t seed = begin + static_cast<int64_t>(k);
      Tensors in = fuzz_inputs(graphs[k], static_cast<uint64_t>(seed));
      Tensors expected = run_interpreted(graphs[k], in);
      if (first_difference(expected, run_plan(*plans[k], graphs[k], in)).empty()) continue;
      check(in_c(options, compiler), seed, graphs[k], in, failures);
    }
  }
}
