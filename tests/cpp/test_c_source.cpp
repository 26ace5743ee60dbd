// Kernels printed as C, compiled by gcc and clang: no warnings, the bits of the interpreter.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "backend/source/c_plan.h"
#include "backend/source/c_printer.h"
#include "base/error.h"
#include "c_library.h"
#include "compiler/compile_graph.h"
#include "errors.h"
#include "every_operation.h"
#include "fuzz_check.h"
#include "loop/builder.h"
#include "loop/interpreter.h"
#include "loop/interpreter_program.h"
#include "random_kernel.h"
#include "run_graph.h"

using namespace tn;
using namespace tn::loop;

namespace {

void check_kernels(const std::vector<Kernel>& kernels, const std::string& flags,
                   int64_t below = 0) {
  std::string source = kernels_c(kernels);
  for (const std::string& compiler : c_compilers()) {
    CAPTURE(compiler);
    CLibrary library(compiler, source, flags);
    for (size_t i = 0; i < kernels.size(); ++i) {
      uint32_t seed = static_cast<uint32_t>(i) + 11;
      RandomBuffers expected(kernels[i], seed, below), actual(kernels[i], seed, below);
      std::vector<Scalar> scalars(static_cast<size_t>(kernels[i].arguments), Scalar(0.75));
      std::vector<uint64_t> arguments(scalars.size());
      for (const Value& v : kernels[i].values)
        if (v.op == Op::argument)
          arguments[static_cast<size_t>(v.a)] =
              std::bit_cast<uint64_t>(machine::element_bits(Scalar(0.75), v.type));
      run(*prepare(kernels[i]), expected.pointers.data(), scalars.data());
      library.find<KernelEntry>(format("entry_{}", i))(actual.pointers.data(), arguments.data());
      std::string different = first_difference(kernels[i], expected, actual);
      INFO(to_text(kernels[i]));
      CHECK(different == "");
    }
  }
}

std::vector<Kernel> golden_kernels() {
  std::vector<Kernel> kernels;
  for (auto& entry : std::filesystem::directory_iterator("tests/golden/loop")) {
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    Kernel kernel = parse_kernel(text.str());
    bool symbolic = std::ranges::any_of(
        kernel.axes, [](const KernelAxis& axis) { return !axis.extent.is_const(); });
    if (!symbolic) kernels.push_back(std::move(kernel));
  }
  return kernels;
}

/// A function whose sources the steps of its plan kept.
struct Printed {
  Graph graph;
  std::shared_ptr<const Plan> plan;
  source::CSource text;

  Printed(Graph given, std::string_view name, Effort effort = Effort::e0)
      : graph(std::move(given)) {
    auto plan_of = [&](const Graph& g) {
      return compile(g, {.effort = effort, .off = {"claim", "layout"}});
    };
    plan = plan_of(graph);
    source::CFunction f{std::string(name), plan, {}, {}, graph.input_names};
    f.in.assign(graph.types.begin(), graph.types.begin() + graph.inputs());
    for (Val v : graph.outputs) f.out.push_back(graph.types[static_cast<size_t>(v)]);
    text = source::c_source({&f, 1}, plan_of);
  }
};

using Run = int(const void* const* inputs, void* const* outputs, void* arena);

/// What the header says, by the name of its macro.
int64_t arena_bytes(const std::string& header) {
  size_t at = header.find("_ARENA_BYTES ");
  return std::stoll(header.substr(at + 13));
}

Tensors run_printed(const Printed& printed, Run* run, const Tensors& in) {
  std::vector<const void*> inputs;
  for (const Tensor& x : in) inputs.push_back(x.data());
  Tensors out;
  std::vector<void*> outputs;
  for (Val v : printed.graph.outputs) {
    TypeRef type = printed.graph.types[static_cast<size_t>(v)];
    BufferRef buffer = allocate(static_cast<size_t>(type->bytes()));
    outputs.push_back(buffer.data());
    out.push_back(make_data(std::move(buffer), 0, type));
  }
  BufferRef arena = allocate(static_cast<size_t>(arena_bytes(printed.text.header)));
  CHECK(run(inputs.data(), outputs.data(), arena.data()) == 0);
  return out;
}

}  // namespace

TEST_CASE("a C compiler is here to test with") { CHECK(c_compilers().size() > 0); }

TEST_CASE("C source: random kernels have the interpreter's bits") {
  std::vector<Kernel> kernels;
  for (uint32_t seed = 0; seed < 400; ++seed) kernels.push_back(random_kernel(seed));
  check_kernels(kernels, "-O1 -Wno-tautological-compare");
}

TEST_CASE("C source: every operation and cast of every type") {
  std::vector<Kernel> any, small;  // operands of any bits, and small ones that division likes
  for (OperationKernel& o : every_operation(150)) {
    if (!facts(o.op).math) small.push_back(o.kernel);
    any.push_back(std::move(o.kernel));
  }
  for (OperationKernel& o : every_cast(300)) any.push_back(std::move(o.kernel));
  check_kernels(any, "-O1");
  check_kernels(small, "-O1", 9);
}

TEST_CASE("C source: the golden kernels") { check_kernels(golden_kernels(), "", 4); }

TEST_CASE("C source: a constant as an index") {
  Builder b("pick");
  int x = b.add_buffer("x", DType::f32, 4, false), y = b.add_buffer("y", DType::f32, 3, true);
  PolyId to = b.axis(b.add_axis(3));
  S at = b.constant(Scalar(int64_t{2}), DType::i64);
  b.store(y, to, b.load(x, b.value_index(at, 4)));
  check_kernels({b.finish()}, "-O1");
}

TEST_CASE("C source: sizes must be numbers") {
  Kernel kernel = parse_kernel(R"(kernel f(x: f32[B]) -> (y: f32[B]) {
  symbols B in 1..64
  axes p0:B par
  v0 = load x[p0] : f32
  store y[p0] = v0
})");
  CHECK_THROWS_WITH_AS(source::kernel_c(kernel, "f"), doctest::Contains("has the size B"), Error);
}

TEST_CASE("C source: scans that one loop cannot compute") {
  auto error_of = [](std::string_view axes, std::string_view lines) {
    Kernel kernel = parse_kernel(
        format("kernel f(x: f32[32]) -> (y: f32[8]) {{\n  axes {}\n{}}}", axes, lines));
    return error_in([&] { source::kernel_c(kernel, "f"); });
  };
  CHECK(error_of("s0:8 scan",
                 "  v0 = load x[s0] : f32\n"
                 "  v1 = scan add v0 over s0 : f32\n"
                 "  v2 = scan add v0 over s0 reverse : f32\n"
                 "  v3 = add v1, v2 : f32\n"
                 "  store y[s0] = v3\n") == "c source: kernel f: scans in both directions");
  CHECK(error_of("s0:8 scan, r1:4 red",
                 "  v0 = load x[8*r1 + s0] : f32\n"
                 "  v1 = scan add v0 over s0 : f32\n"
                 "  v2 = reduce add v1 over r1 : f32\n"
                 "  store y[s0] = v2\n") ==
        "c source: kernel f: a scan inside a reduction of its results");
}

TEST_CASE("C source: whole plans, products among their steps") {
  const char* functions[] = {
      R"(func @mlp(%x: f32[5,70], %w: f32[70,9], %b: f32[9], %v: f32[9,3]) -> (f32[5,3], f32[5]) {
  %0 = dot %x, %w {lhs_contract=[1], rhs_contract=[0]} : f32[5,9]
  %1 = add %0, %b : f32[5,9]
  %2 = gelu %1 : f32[5,9]
  %3 = dot %2, %v {lhs_contract=[1], rhs_contract=[0]} : f32[5,3]
  %4 = softmax %3 {axis=[1]} : f32[5,3]
  %5 = max %3 {axis=[1]} : f32[5]
  return %4, %5
})",
      R"(func @deep(%x: f64[3,2500], %y: f64[2500,65]) -> f64[3,65] {
  %0 = dot %x, %y {lhs_contract=[1], rhs_contract=[0]}
  return %0
})",
      R"(func @batched(%x: bf16[4,3,2,5], %y: bf16[2,4,6,5]) -> bf16[4,2,3,6] {
  %0 = dot %x, %y {lhs_contract=[3], rhs_contract=[3], lhs_batch=[0,2], rhs_batch=[1,0]}
  return %0
})",
      R"(func @integers(%x: i8[9,7], %y: i8[7]) -> (i8[9], bool[9,9]) {
  %0 = dot %x, %y {lhs_contract=[1], rhs_contract=[0]}
  %1 = astype %x {dtype=bool}
  %2 = dot %1, %1 {lhs_contract=[1], rhs_contract=[1]}
  return %0, %2
})",
      R"(func @two(%x: f32[4,3,5], %y: f32[3,5,2]) -> (f32[4,2], f32[2,5,4], f32[4,3,5]) {
  %0 = dot %x, %y {lhs_contract=[1,2], rhs_contract=[0,1]}
  %1 = dot %y, %x {lhs_contract=[0], rhs_contract=[1], lhs_batch=[1], rhs_batch=[2]}
  %2 = permute_dims %1 {axes=[1,0,2]}
  return %0, %2, %x
})",
      R"(func @at(%x: c64[4,3], %i: i32[5], %v: c64[]) -> (c64[5,3], c64[4,5], c64[7,4], c64[9,3]) {
  %0 = gather %x, %i {axes=[0], outside=clamp}
  %1 = gather %x, %i {axes=[1], outside=drop}
  %2 = pad_with %x, %v {pad_width=[1,2,0,1]}
  %3 = pad_with %x, %v {pad_width=[2,3,0,0], mode=reflect}
  return %0, %1, %2, %3
})"};
  std::vector<Printed> printed;
  for (const char* text : functions)
    for (Effort effort : {Effort::e0, Effort::e2}) {
      Graph graph = parse_graph(text);
      std::string name = graph.name;
      printed.emplace_back(std::move(graph), name, effort);
    }
  for (const std::string& compiler : c_compilers())
    for (const Printed& p : printed) {
      CAPTURE(compiler);
      CAPTURE(p.graph.name);
      CLibrary library(compiler, p.text.source);
      Tensors in = random_inputs(p.graph, 5);
      Tensors expected = run_interpreted(p.graph, in);
      Run* run = library.find<Run>(p.graph.name + "_run");
      CHECK(first_difference(expected, run_printed(p, run, in)) == "");
    }
}

TEST_CASE("C source: constants are bytes beside the source") {
  Graph graph = parse_graph(
      "func @f(%x: f32[3], %w: f32[3]) -> f32[3] {\n  %0 = add %x, %w\n  return %0\n}\n");
  Tensors in = random_inputs(graph, 3);
  Buffer* weights = slot_of(in[1]).data.load();
  weights->refs.fetch_add(1);
  CompileOptions options{.constants = {{BufferRef::adopt_reference(weights), 0}}};
  auto plan = compile(graph, options);
  source::CFunction f{"f", plan, {graph.types[0]}, {graph.types[0]}, {"x"}};
  source::CSource text = source::c_source({&f, 1}, {});
  CHECK(text.constants.substr(0, 12) == bytes_of(in[1]));
  CHECK(text.header.find("inputs[1]: the 64 bytes of constants") != std::string::npos);
}

TEST_CASE("C source: what has no form in C is named") {
  Graph graph =
      parse_graph("func @f(%x: f32[3,3]) -> f32[3,3] {\n  %0 = cholesky %x\n  return %0\n}\n");
  CHECK_THROWS_WITH_AS(Printed(graph, "f"), doctest::Contains("cholesky has no form in C"), Error);
}
