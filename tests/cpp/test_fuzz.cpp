// Random graphs: however they are compiled and run, the bits are the interpreter's.
//
// TENON_FUZZ_GRAPHS=20000 draws that many graphs instead of 500, TENON_FUZZ_SEED=17 begins with
// that seed: the way to repeat what a message names.
#include <doctest/doctest.h>

#include <cstdlib>

#include "fuzz_check.h"
#include "fuzz_graph.h"
#include "runtime/threads.h"

using namespace tn;

static int64_t setting(const char* name, int64_t otherwise) {
  const char* given = std::getenv(name);
  return given ? std::atoll(given) : otherwise;
}

TEST_CASE("random graphs give the same bits in every way") {
  int64_t first = setting("TENON_FUZZ_SEED", 0), count = setting("TENON_FUZZ_GRAPHS", 500);
  int64_t ops = 0, failures = 0;
  for (int64_t seed = first; seed < first + count && failures < 20; ++seed) {
    Graph graph = fuzz_graph(static_cast<uint64_t>(seed));
    ops += static_cast<int64_t>(graph.ops.size());
    Tensors in = fuzz_inputs(graph, static_cast<uint64_t>(seed));
    for (const Way& way : ways()) {
      std::string failure = failure_of(way, graph, in);
      CHECK_MESSAGE(failure.empty(), "seed " << seed << ": " << failure);
      failures += !failure.empty();
    }
  }
  MESSAGE(ops << " ops in " << count << " graphs");
}
