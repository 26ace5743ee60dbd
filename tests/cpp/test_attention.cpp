#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "backend/cpu/kernels/attention_blocks.h"
#include "ir/graph.h"
#include "plan/library.h"
#include "run_graph.h"
#include "runtime/threads.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

const AttentionLevel& rows_at(CpuLevel level) {
  return at_level(level, v2::attention_level, v3::attention_level, v4::attention_level);
}

/// The kernel of the op against its body, bit for bit.
void check_kernel(std::string_view operands, bool causal = false) {
  std::string text = fmt::format(
      "func @main({}) {{\n  %0 = scaled_dot_product_attention %q, %k, %v{} {{scale=0.3{}}}\n  "
      "return %0\n}}\n",
      operands, operands.find("%m") == operands.npos ? "" : ", %m",
      causal ? ", is_causal=true" : "");
  CAPTURE(text);
  Graph graph = parse_graph(text);
  Tensors in = random_inputs(graph, 3);
  std::vector<const void*> data;
  for (const Tensor& x : in) data.push_back(x.data());
  const GraphOp& op = graph.ops[0];
  std::vector<TypeRef> types = graph.in_types(op);
  std::string expected = run_compiled(expand_composites(graph), in)[0];
  std::string got(expected.size(), 'x');
  void* out = got.data();
  int before = num_threads();
  for (int threads : {1, 2, 16}) {
    set_num_threads(threads);
    library_kernel(*op.op, types, host_target())
        ->run({op.attr_data(), types, graph.out_types(op), data.data(), &out});
    CHECK((got == expected));
  }
  set_num_threads(before);
}

}  // namespace

TEST_CASE("attention: the kernel has the bits of the body") {
  check_kernel("%q: f32[5,8], %k: f32[7,8], %v: f32[7,3]");
  check_kernel("%q: f32[2,3,100,16], %k: f32[2,3,70,16], %v: f32[2,3,70,20]");
  check_kernel("%q: f32[2,4,33,24], %k: f32[2,2,65,24], %v: f32[2,2,65,24]");
  check_kernel("%q: f64[1,2,20,8], %k: f64[1,2,90,8], %v: f64[1,2,90,8]");
  check_kernel("%q: f32[1,2,1,64], %k: f32[1,2,300,64], %v: f32[1,2,300,64]");
  check_kernel("%q: f32[2,5,3], %k: f32[2,0,3], %v: f32[2,0,4]");
  check_kernel("%q: f32[1,1,15,1100], %k: f32[1,1,50,1100], %v: f32[1,1,50,8]");
}

TEST_CASE("attention: causal, with more or fewer queries than keys, over several K blocks") {
  check_kernel("%q: f32[1,2,200,16], %k: f32[1,2,200,16], %v: f32[1,2,200,16]", true);
  check_kernel("%q: f32[1,1,30,8], %k: f32[1,1,100,8], %v: f32[1,1,100,8]", true);
  check_kernel("%q: f32[1,1,100,8], %k: f32[1,1,30,8], %v: f32[1,1,30,8]", true);
  check_kernel("%q: f32[1,1,40,8], %k: f32[1,1,1700,8], %v: f32[1,1,1700,8]", true);
  check_kernel("%q: f32[1,1,2,4], %k: f32[1,1,17000,4], %v: f32[1,1,17000,4]");
}

TEST_CASE("attention: masks of every type and shape") {
  std::string qkv = "%q: f32[2,4,9,8], %k: f32[2,2,21,8], %v: f32[2,2,21,8], ";
  for (const char* mask :
       {"f32[9,21]", "f32[2,1,1,21]", "bool[2,4,9,21]", "bool[9,1]", "bool[4,9,21]", "f16[1,21]",
        "bf16[2,1,9,1]", "f64[21]", "f32[]", "bool[1,1,1,21]"})
    for (bool causal : {false, true}) check_kernel(qkv + "%m: " + mask, causal);
}

TEST_CASE("attention: half precision is computed in f32 and rounded once") {
  for (const char* t : {"f16", "bf16"})
    check_kernel(fmt::format("%q: {0}[1,2,40,16], %k: {0}[1,2,33,16], %v: {0}[1,2,33,16]", t),
                 true);
}

TEST_CASE("attention: heads that are slices of rows, and all levels") {
  constexpr int64_t heads = 3, length = 45, depth = 8, width = 3 * heads * depth;
  std::mt19937 source(5);
  std::normal_distribution<float> draw;
  std::vector<float> qkv(length * width), split(length * width), whole(heads * length * depth);
  for (float& x : qkv) x = draw(source);
  for (int64_t part = 0, at = 0; part < 3; ++part)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < length; ++i)
        for (int64_t j = 0; j < depth; ++j)
          split[static_cast<size_t>(at++)] =
              qkv[static_cast<size_t>(i * width + (part * heads + h) * depth + j)];
  const int64_t apart[] = {0, length * depth, 2 * length * depth}, inside[] = {0, depth, 2 * depth};
  AttentionArgs args{.heads = heads,
                     .queries = length,
                     .keys = length,
                     .depth = depth,
                     .out_depth = depth,
                     .causal = true};
  const float* part = split.data();
  for (AttentionOperand* x : {&args.q, &args.k, &args.v}) {
    *x = {part, apart, depth, 1};
    part += heads * length * depth;
  }
  args.out = whole.data();
  attention(cpu_level(), rows_at(cpu_level()), args);
  part = qkv.data();
  for (AttentionOperand* x : {&args.q, &args.k, &args.v}) {
    *x = {part, inside, width, 1};
    part += heads * depth;
  }
  for (CpuLevel level : {CpuLevel::v2, CpuLevel::v3, CpuLevel::v4}) {
    if (level > best_cpu_level()) continue;
    std::vector<float> out(whole.size());
    args.out = out.data();
    attention(level, rows_at(level), args);
    CHECK(std::memcmp(out.data(), whole.data(), out.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("attention: compiled with its heads as views and what follows it, the bits stay") {
  Graph graph = parse_graph(R"(func @main(%x: f32[2,30,96], %s: f32[2,4,30,8]) {
  %0 = reshape %x {shape=[2,30,3,4,8]}
  %1 = permute_dims %0 {axes=[2,0,3,1,4]}
  %2 = slice %1 {start=[0], stop=[1], step=[1], axis=[0]}
  %3 = slice %1 {start=[1], stop=[2], step=[1], axis=[0]}
  %4 = slice %1 {start=[2], stop=[3], step=[1], axis=[0]}
  %5 = reshape %2 {shape=[2,4,30,8]}
  %6 = reshape %3 {shape=[2,4,30,8]}
  %7 = reshape %4 {shape=[2,4,30,8]}
  %8 = scaled_dot_product_attention %5, %6, %7 {scale=0.4, is_causal=true}
  %9 = tanh %8
  %10 = add %9, %s
  return %10
}
)");
  Tensors in = random_inputs(graph, 8);
  CompiledFunction f = compile([&](const Tensors& x) { return replay(graph, x); });
  CHECK((bytes_of(f(in)) == run_compiled(graph, in)));
}
