// The golden files: cases of input text, ----, and what must come of it. TENON_UPDATE_GOLDEN=1
// rewrites the expectations, to be reviewed as a diff.
//
//     tests/golden/ir        a graph -> its canonical text; both are run on random values and must
//     give equal bits tests/golden/compiler  a graph -> the kernels and library calls it becomes
//     tests/golden/errors    ops called one by one -> the first line of the error
//     tests/golden/passes    one folder per pass: a graph -> what the pass makes of it, and what it
//     decided; both are run and must give equal bits, or round otherwise where a pass has to be
//     asked for. Inputs named c… are known to the pass.
//     tests/golden/sharding  a mesh, layouts and a graph -> all layouts, the graph of a worker, and
//     what was refused
//     tests/golden/plans     the graph of a worker -> the steps that all workers run
//     tests/golden/cuda      a kernel -> how it is spread over threads, and what its PTX has
//     tests/golden/recompute a graph -> what it becomes when it may need a byte less than it does
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "backend/cuda/codegen/cuda_codegen.h"
#include "base/error.h"
#include "compiler/compile_graph.h"
#include "compiler/memory_report.h"
#include "compiler/plan_text.h"
#include "compiler/report.h"
#include "compiler/worker_steps.h"
#include "passes/pipeline.h"
#include "ptx_summary.h"
#include "run_graph.h"
#include "run_passes.h"
#include "run_workers.h"

using namespace tn;

namespace {

struct Case {
  std::string title;  // its comment lines
  std::string input, expected;
  bool is_error = false;
};

struct GoldenFile {
  std::filesystem::path path;
  std::vector<Case> cases;
};

std::string stripped(std::string text) {
  text.erase(0, std::min(text.find_first_not_of('\n'), text.size()));
  text.erase(text.find_last_not_of('\n') + 1);
  return text.empty() ? text : text + "\n";
}

GoldenFile read_golden(const std::filesystem::path& path) {
  GoldenFile golden{path, {}};
  std::ifstream file(path);
  enum { title, input, expected } part = expected;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) {
      if (part != title) golden.cases.emplace_back();
      part = title;
      golden.cases.back().title += line + "\n";
      continue;
    }
    if (golden.cases.empty()) continue;
    if (part == title && !line.empty()) part = input;
    Case& current = golden.cases.back();
    if (part == input && line.starts_with("----")) {
      part = expected;
      current.is_error = line == "---- error";
    } else if (part != title) {
      (part == input ? current.input : current.expected) += line + "\n";
    }
  }
  for (Case& c : golden.cases) c.input = stripped(c.input), c.expected = stripped(c.expected);
  return golden;
}

void write_golden(const GoldenFile& golden) {
  std::ofstream file(golden.path);
  const char* gap = "";
  for (const Case& c : golden.cases) {
    file << gap << c.title << c.input << (c.is_error ? "---- error\n" : "----\n") << c.expected;
    gap = "\n";
  }
}

bool updating() {
  const char* set = std::getenv("TENON_UPDATE_GOLDEN");
  return set && *set && *set != '0';
}

/// Runs `result_of` on every case of every file of a folder, and compares.
template <class F>
int check_folder(const char* folder, F&& result_of) {
  int cases = 0;
  std::vector<std::filesystem::path> paths;
  for (auto& entry : std::filesystem::directory_iterator(std::string("tests/golden/") + folder))
    if (entry.path().extension() == ".tn") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    GoldenFile golden = read_golden(path);
    for (Case& c : golden.cases) {
      ++cases;
      INFO(path.string(), ": ", c.title, c.input);
      std::string result;
      try {
        result = stripped(result_of(c));
      } catch (const std::exception& e) {
        result = tn::format("failed: {}\n", e.what());
      }
      if (updating()) c.expected = result;
      CHECK(result == c.expected);
    }
    if (updating()) write_golden(golden);
  }
  return cases;
}

std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

std::string canonical_text(const Case& c) {
  Graph graph = parse_graph(c.input);
  verify(graph, "golden");
  std::string text = to_text(graph);
  Graph again = parse_graph(text);
  verify(again, "reparsed golden");
  CHECK(to_text(again) == text);
  bool symbolic = std::any_of(graph.types.begin(), graph.types.end(),
                              [](TypeRef t) { return t->elements < 0; });
  if (symbolic) return text;
  Tensors in = random_inputs(graph, 7);
  std::vector<std::string> expected = run_compiled(graph, in);
  CHECK(run_compiled(again, in) == expected);
  CHECK(run_replayed(graph, in) == expected);
  CHECK(run_eagerly(graph, in) == expected);
  return text;
}

/// Whether results of f32 differ by rounding only.
bool are_close(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    std::vector<float> x(a[i].size() / 4), y(b[i].size() / 4);
    std::memcpy(x.data(), a[i].data(), a[i].size()),
        std::memcpy(y.data(), b[i].data(), b[i].size());
    auto close = [](float p, float q) { return std::abs(p - q) <= 1e-5f * (10 + std::abs(q)); };
    if (!std::ranges::equal(x, y, close)) return false;
  }
  return true;
}

/// The graph after one pass, and the decisions of the pass.
std::string passed_text(const Pass& pass, const Case& c) {
  Graph graph = parse_graph(c.input);
  Tensors in = random_inputs(graph, 7);
  Decisions decisions;
  PassContext context = known_context(graph, in);
  context.decisions = &decisions;
  std::vector<std::string> on = {std::string(pass.name)};
  context.on = on;
  Graph after = run_passes(graph, context, {&pass, 1});
  verify(after, pass.name);
  CHECK(to_text(parse_graph(to_text(after))) == to_text(after));
  auto made = run_with(after, context, in), expected = run_compiled(graph, in);
  CHECK((pass.asked_for ? are_close(made, expected) : made == expected));
  std::string text = to_text(after);
  for (const Decision& d : decisions)
    text += tn::format("{}: {}: {}\n", d.made ? "done" : "refused", d.what, d.reason);
  return text;
}

/// All symbols are 32.
std::vector<Binding> sizes_at_hand(const Graph& graph) {
  std::vector<Binding> sizes;
  for (Val v = 0; v < graph.inputs(); ++v)
    for (Dim d : graph.types[static_cast<size_t>(v)]->shape)
      for (Dim symbol : d.is_const() ? std::vector<Dim>() : symbols_of(d))
        if (!std::ranges::count(sizes, symbol, &Binding::symbol)) sizes.push_back({symbol, 32});
  return sizes;
}

std::string error_of(const Case& c) {
  try {
    call_text(c.input);
  } catch (const InternalError& e) {
    return tn::format("a defect: {}", e.what());
  } catch (const Error& e) {
    return first_line(e.what());
  }
  return "no error";
}

}  // namespace

TEST_CASE("golden: graphs print canonically, parse back and mean the same") {
  CHECK(check_folder("ir", canonical_text) >= 20);
}

TEST_CASE("golden: what graphs become") {
  CHECK(check_folder("compiler", [](const Case& c) {
          Graph graph = parse_graph(c.input);
          return loops_text(compilation_of(graph, {}));
        }) >= 8);
}

TEST_CASE("golden: what passes make of graphs") {
  std::set<std::string_view> names;
  for (const Pass& pass : pipeline(1)) {
    if (!names.insert(pass.name).second) continue;
    std::string folder = tn::format("passes/{}", pass.name);
    CHECK(check_folder(folder.c_str(), [&](const Case& c) { return passed_text(pass, c); }) >= 6);
  }
}

TEST_CASE("golden: what is fused, and why") {
  CHECK(check_folder("fusion", [](const Case& c) {
          Graph graph = parse_graph(c.input);
          Compilation made =
              compilation_of(graph, {.effort = Effort::e2, .sizes = sizes_at_hand(graph)});
          std::string text = loops_text(made);
          for (const Decision& d : decisions_of(made))
            text += tn::format("{}: {}: {}: {}\n", d.made ? "done" : "refused", d.pass, d.what,
                               d.reason);
          return text;
        }) >= 12);
}

TEST_CASE("golden: what is computed again where memory is short") {
  CHECK(check_folder("recompute", [](const Case& c) {
          Graph graph = parse_graph(c.input);
          Tensors in = random_inputs(graph, 7);
          int64_t peak = memory_needed(*compile(graph, {.effort = Effort::e2}));
          Compilation made =
              compilation_of(graph, {.effort = Effort::e2, .memory_limit = peak - 1});
          CHECK(bytes_of(run_plan(*made.plan, graph, in)) == run_compiled(graph, in));
          std::string text = optimized_text(made);
          for (const Decision& d : decisions_of(made))
            if (d.pass == "memory") text += d.what + "\n";  // sizes depend on the CPU
          return text;
        }) >= 2);
}

TEST_CASE("golden: errors at the call") { CHECK(check_folder("errors", error_of) >= 20); }

TEST_CASE("golden: graphs on meshes") {
  CHECK(check_folder("sharding", [](const Case& c) { return sharded_text(c.input); }) >= 20);
}

TEST_CASE("golden: plans of workers") {
  CHECK(check_folder("plans", [](const Case& c) {
          CompileOptions options{.effort = Effort::e1, .on = {std::string(kOverlap)}};
          std::shared_ptr<const Plan> plan = compile(parse_graph(c.input), options);
          return collectives_text(*plan) + to_text(*plan);
        }) >= 7);
}

TEST_CASE("golden: kernels for GPUs") {
  CHECK(check_folder("cuda", [](const Case& c) {
          loop::Kernel kernel = loop::parse_kernel(c.input);
          cuda::Schedule schedule = cuda::make_schedule({&kernel});
          return to_text(schedule) + ptx_summary(cuda::generate(schedule, 90).ptx);
        }) >= 9);
}
