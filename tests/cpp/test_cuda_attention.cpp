// Attention of GPUs beside the CPU's: the device code is compiled for the host, and the mock of the
// driver runs it. Bits differ, so errors are bounded.
#include <doctest/doctest.h>

#include <cmath>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cuda_library.h"
#include "backend/cuda/cuda_runtime.h"
#include "backend/cuda/mock/mock_driver.h"
#include "backend/cuda/own_kernels.h"
#include "backend/cuda/prebuilt/prebuilt.h"
#include "base/half.h"
#include "device_threads.h"
#include "eval/eval.h"
#include "ir/emit.h"
#include "ir/graph.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "passes/passes.h"
#include "runtime/device.h"
#include "tenon/tenon.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function"
namespace {
namespace device {
#include "backend/cuda/prebuilt/attention_hopper_kernels.cu"
// Headers that they share are included once.
#include "backend/cuda/prebuilt/attention_gradient_kernels.cu"
#include "backend/cuda/prebuilt/attention_kernels.cu"
float load_half(Half x) { return tn::float16_to_float(x.bits); }
Half store_half(float x) { return {tn::float_to_float16(x)}; }
}  // namespace device
}  // namespace
#pragma GCC diagnostic pop

using namespace tn;

namespace {

bool runs_backwards = false;
double factor = 0.125;  // of scores; each test has another, so that none finds plans of another GPU

#define TN_ADD(kernel) add_device_kernel(#kernel, device::kernel, device::turn, runs_backwards)

/// A GPU of this compute capability, for the time of a test.
struct WithGpu {
  explicit WithGpu(int major) {
    factor += 0.01;
    cuda::replace_driver(&cuda::mock_driver());
    cuda::assembles_own = false;
    cuda::forget_gpus();
    cuda::mock().major = major;
    TN_ADD(attention_f32_64);
    TN_ADD(attention_f32_128);
    TN_ADD(attention_f16_64);
    TN_ADD(attention_f16_128);
    TN_ADD(attention_bf16_64);
    TN_ADD(attention_bf16_128);
    TN_ADD(attention_queries_f16_64);
    TN_ADD(attention_queries_f16_128);
    TN_ADD(attention_queries_bf16_64);
    TN_ADD(attention_queries_bf16_128);
    TN_ADD(attention_keys_f16_64);
    TN_ADD(attention_keys_f16_128);
    TN_ADD(attention_keys_bf16_64);
    TN_ADD(attention_keys_bf16_128);
    TN_ADD(attention_hopper_f16_64);
    TN_ADD(attention_hopper_f16_128);
    TN_ADD(attention_hopper_bf16_64);
    TN_ADD(attention_hopper_bf16_128);
  }
  ~WithGpu() {
    cuda::mock().major = 0;
    cuda::forget_gpus();
    clear_plans();
    cuda::replace_driver(nullptr);
    cuda::assembles_own = true;
  }
};

bool are_built() {
  if (!cuda::attention_ptx().empty()) return true;
  MESSAGE("skipped: this build has no device code");
  return false;
}

Tensor normal(const Shape& shape, DType type, int64_t seed) {
  Tensor made = astype(random::normal(shape, 0, 1, float32, random::key(seed)), type);
  eval({made});
  return made;
}

/// |x − y| / |y|, NaN where either has one.
double distance(const Tensor& x, const Tensor& y) {
  Tensor a = astype(x, float64), b = astype(y, float64), off = a - b;
  return std::sqrt(sum(off * off).item<double>() / std::max(1e-30, sum(b * b).item<double>()));
}

using Program = Tensor (*)(const Tensors&);

/// How far a GPU's result is from the CPU's, which must be the same in both orders of threads.
double error_on(const Tensors& here, Program program, const std::string& kernel) {
  Tensors there;
  for (const Tensor& t : here) there.push_back(t.to(Device("cuda")));
  auto f = compile([&](const Tensors& in) { return Tensors{program(in)}; });
  Tensor got[2];
  for (bool backwards : {false, true}) {
    runs_backwards = backwards;
    cuda::mock().log.clear();
    got[backwards] = f(there)[0].to(Device());
    CHECK(std::ranges::count(cuda::mock().log, kernel) == 1);
  }
  CHECK(distance(got[0], got[1]) == 0);
  return distance(got[0], program(here));
}

Tensor plain(const Tensors& in) {
  return scaled_dot_product_attention(in[0], in[1], in[2], in.size() > 3 ? in[3] : Tensor(),
                                      factor);
}
Tensor causal(const Tensors& in) {
  return scaled_dot_product_attention(in[0], in[1], in[2], in.size() > 3 ? in[3] : Tensor(), factor,
                                      true);
}

struct Case {
  int64_t batch, heads, shared, queries, keys, depth, out_depth;
};
/// Tails of rows and columns, several tiles, heads that share keys, more and fewer queries.
constexpr Case kCases[] = {
    {1, 1, 1, 20, 30, 32, 32},    {1, 2, 1, 130, 70, 64, 64}, {2, 2, 2, 5, 100, 96, 96},
    {1, 1, 1, 70, 200, 128, 128}, {1, 4, 2, 70, 20, 72, 40},  {1, 3, 3, 150, 150, 64, 64},
    {1, 1, 1, 9, 40, 33, 7},
};

Tensors operands_of(const Case& c, DType type, int64_t seed) {
  return {normal({c.batch, c.heads, c.queries, c.depth}, type, seed),
          normal({c.batch, c.shared, c.keys, c.depth}, type, seed + 1),
          normal({c.batch, c.shared, c.keys, c.out_depth}, type, seed + 2)};
}
std::string_view name(DType type) {
  return type == float32 ? "f32" : type == float16 ? "f16" : "bf16";
}
double bound(DType type) { return type == float32 ? 2e-6 : type == float16 ? 1e-3 : 6e-3; }
int64_t padded(const Case& c) { return std::max(c.depth, c.out_depth) <= 64 ? 64 : 128; }

}  // namespace

TEST_CASE("cuda attention: kernels for all GPUs are near the CPU") {
  if (!are_built()) return;
  WithGpu gpu(8);
  int turn = 0;
  for (const Case& c : kCases)
    for (Program program : {plain, causal}) {
      DType type = ++turn % 3 == 0 ? float32 : turn % 3 == 1 ? bfloat16 : float16;
      CAPTURE(c.queries);
      CAPTURE(std::string(name(type)));
      std::string kernel = fmt::format("attention_{}_{}", name(type), padded(c));
      CHECK(error_on(operands_of(c, type, 10), program, kernel) < bound(type));
    }
}

TEST_CASE("cuda attention: masks of every kind, and a query that sees no key") {
  if (!are_built()) return;
  WithGpu gpu(9);
  Case c{2, 2, 1, 20, 70, 64, 64};
  for (DType type : {float32, bfloat16}) {
    Tensor draws = normal({2, 1, 20, 70}, float32, 5), sees = draws > 0.3;
    Tensor none = logical_and(sees, less(iota({20, 1}, 0), 7));
    for (const Tensor& mask : {none, draws, astype(draws, float16), normal({70}, bfloat16, 6),
                               normal({2, 20, 1}, float32, 7)}) {
      eval({mask});
      CAPTURE(std::string(name_of(mask.dtype())));
      Tensors in = operands_of(c, type, 30);
      in.push_back(mask);
      CHECK(error_on(in, plain, fmt::format("attention_{}_64", name(type))) < bound(type));
    }
    Tensors in = operands_of(c, type, 31);
    in.push_back(draws);
    CHECK(error_on(in, causal, fmt::format("attention_{}_64", name(type))) < bound(type));
  }
}

TEST_CASE("cuda attention: heads that are views are read where they lie") {
  if (!are_built()) return;
  WithGpu gpu(9);
  auto heads = [](const Tensors& in) {
    Tensor x = moveaxis(reshape(in[0], {2, 40, 3, 2, 32}), Axes{2, 3}, Axes{0, 2});
    auto part = [&](int64_t i) {
      return reshape(slice(x, Offsets{i}, Offsets{i + 1}, {}, Axes(0)), {2, 2, 40, 32});
    };
    return scaled_dot_product_attention(part(0), part(1), part(2), nullptr, factor, true);
  };
  for (DType type : {float16, float32}) {
    std::string kernel = type == float16 ? "attention_hopper_f16_64" : "attention_f32_64";
    CHECK(error_on({normal({2, 40, 192}, type, 3)}, heads, kernel) < bound(type));
  }
}

TEST_CASE("cuda attention: what is left to products and loops") {
  if (!are_built()) return;
  auto claims = [](DType type, int64_t depth, int rank = 4) {
    Shape shape{7, depth};
    while (shape.rank() < rank) shape.insert(0, 1);
    TypeRef t = intern(Type{type, shape}), in[] = {t, t, t};
    return cuda::library_kernel(ops::scaled_dot_product_attention, in, cuda::target_of(90)) !=
           nullptr;
  };
  CHECK(claims(float32, 128));
  CHECK(claims(bfloat16, 1, 2));
  CHECK(!claims(float64, 64));
  CHECK(!claims(float16, 136));
  CHECK(!claims(float16, 64, 7));
  CHECK(!claims(float16, 0));
  Graph graph = parse_graph(R"(func @main(%q: f32[1,2,8,16], %k: f32[1,2,8,16]) {
  %0 = scaled_dot_product_attention %q, %k, %k {scale=0.25}
  return %0
}
)");
  // "exact" asks for the CPU's bits.
  for (Products products : {Products::highest, Products::high, Products::exact}) {
    PassContext context;
    context.target = cuda::target_of(90), context.products = products;
    bool is_kept = claim_composites(graph, context).ops[0].op == &ops::scaled_dot_product_attention;
    CHECK(is_kept == (products != Products::exact));
  }
  auto claims_gradients = [](DType type, int64_t depth) {
    TypeRef t = intern(Type{type, {2, 7, depth}}), in[] = {t, t, t, t, t};
    return cuda::library_kernel(ops::scaled_dot_product_attention_gradients, in,
                                cuda::target_of(90)) != nullptr;
  };
  CHECK(claims_gradients(float16, 128));
  CHECK(!claims_gradients(bfloat16, 136));
  CHECK(!claims_gradients(float32, 64));
}

TEST_CASE("cuda attention: tensor cores that read shared memory") {
  if (!are_built()) return;
  WithGpu gpu(9);
  for (const Case& c : kCases)
    for (Program program : {plain, causal}) {
      if (c.depth % 8) continue;  // rows that cannot be read 16 bytes at a time
      DType type = c.heads == 1 ? bfloat16 : float16;
      CAPTURE(c.queries);
      std::string kernel = fmt::format("attention_hopper_{}_{}", name(type), padded(c));
      CHECK(error_on(operands_of(c, type, 20), program, kernel) < bound(type));
    }
}

namespace {

struct GradientCase {
  Case c;
  DType type;
  bool is_causal = false, has_mask = false;
};
/// Tails of rows and columns, heads that share keys, more and fewer queries than keys.
constexpr GradientCase kGradients[] = {
    {{1, 2, 1, 40, 140, 64, 64}, bfloat16, false, true},
    {{1, 2, 2, 140, 50, 32, 32}, float16, true},
    {{1, 1, 1, 33, 70, 128, 96}, bfloat16, true},
    {{2, 1, 1, 70, 33, 128, 128}, float16, true, true},
    {{1, 1, 1, 20, 20, 9, 7}, float16},
};

Tensors on(Device device, const Tensors& list) {
  Tensors made;
  for (const Tensor& t : list) made.push_back(t.to(device));
  return made;
}

/// Cotangents of q, k and v, from those three, the result, its cotangent and a mask.
Tensors want_of(const GradientCase& s, const Tensors& given) {
  auto attend = [&](const Tensors& x) {
    Tensors own = x;
    if (s.has_mask) own.push_back(given[5].to(x[0].device()));
    return Tensors{s.is_causal ? causal(own) : plain(own)};
  };
  return flat::vjp(attend, {given[0], given[1], given[2]}, {given[4]}).derivatives;
}

Tensors given_of(const GradientCase& s) {
  Tensors in = operands_of(s.c, s.type, 40);
  Shape shape{s.c.batch, s.c.heads, s.c.queries, s.c.out_depth};
  Tensor mask = s.has_mask ? normal({s.c.queries, s.c.keys}, float32, 44) : Tensor();
  Tensors own = in;
  if (s.has_mask) own.push_back(mask);
  in.push_back(s.is_causal ? causal(own) : plain(own));
  in.push_back(normal(shape, s.type, 45));
  if (s.has_mask) in.push_back(mask);
  eval(in);
  return in;
}

int64_t launches_of(std::string_view part, const GradientCase& s) {
  std::string kernel = fmt::format("attention_{}_{}_{}", part, name(s.type), padded(s.c));
  return std::ranges::count(cuda::mock().log, kernel);
}

}  // namespace

TEST_CASE("cuda attention: cotangents of q, k and v are near the composed derivative") {
  if (!are_built()) return;
  WithGpu gpu(9);
  for (const GradientCase& s : kGradients) {
    CAPTURE(s.c.queries);
    CAPTURE(s.c.depth);
    Tensors given = given_of(s), want = want_of(s, given), there = on(Device("cuda"), given);
    ops::AttentionAttrs attrs;
    attrs.scale = factor, attrs.is_causal = s.is_causal;
    auto f = compile([&](const Tensors& x) {
      return emit_all(ops::scaled_dot_product_attention_gradients, x, &attrs);
    });
    Tensors got[2];
    for (bool backwards : {false, true}) {
      runs_backwards = backwards;
      cuda::mock().log.clear();
      got[backwards] = on(Device(), f(there));
      CHECK(launches_of("queries", s) == 1);
      CHECK(launches_of("keys", s) == 1);
    }
    for (size_t i = 0; i < 3; ++i) {
      CAPTURE(i);
      CHECK(distance(got[0][i], got[1][i]) == 0);
      CHECK(distance(got[0][i], want[i]) < bound(s.type));
    }
  }
}

TEST_CASE("cuda attention: a derivative records the op that has a kernel, or the parts") {
  if (!are_built()) return;
  WithGpu gpu(9);
  runs_backwards = false;
  // Scores are larger than all operands, so that parts are not kept for both ways.
  GradientCase s{{1, 2, 1, 150, 150, 16, 16}, bfloat16, true};
  Tensors given = given_of(s), want = want_of(s, given), there = on(Device("cuda"), given);
  auto f = compile([&](const Tensors& x) { return want_of(s, x); });
  cuda::mock().log.clear();
  Tensors got = on(Device(), f(there));
  CHECK(launches_of("keys", s) == 1);
  for (size_t i = 0; i < 3; ++i) CHECK(distance(got[i], want[i]) < bound(s.type));
}

namespace {

bool has_gradients(const Graph& graph) {
  return std::ranges::any_of(graph.ops, [](const GraphOp& op) {
    return op.op == &ops::scaled_dot_product_attention_gradients;
  });
}

/// The derivative of attention in all operands: q, k, v and, where there are four, the mask.
Graph derivative_of(DType type, Device device, int operands) {
  Tensors params;
  for (int i = 0; i < operands; ++i)
    params.push_back(make_param(intern(Type{type, {1, 2, 20, 20}, device})));
  auto attend = [](const Tensors& in) { return Tensors{plain(in)}; };
  return capture(params, flat::vjp(attend, params, {params[0]}).derivatives).graph;
}

}  // namespace

TEST_CASE("cuda attention: which derivatives are left to the parts") {
  if (!are_built()) return;
  WithGpu gpu(8);
  Device there("cuda");
  CHECK(has_gradients(derivative_of(bfloat16, there, 3)));
  CHECK(!has_gradients(derivative_of(bfloat16, Device(), 3)));
  CHECK(!has_gradients(derivative_of(float32, there, 3)));
  CHECK(!has_gradients(derivative_of(bfloat16, there, 4)));  // the mask's is as large as scores

  Graph graph = parse_graph(R"(func @main(%q: f16[2,8,16]) {
  %0, %1, %2 = scaled_dot_product_attention_gradients %q, %q, %q, %q, %q {scale=0.25}
  return %0, %1, %2
}
)");
  for (Products products : {Products::highest, Products::exact}) {
    PassContext context;
    context.target = cuda::target_of(90), context.products = products;
    CHECK(has_gradients(claim_composites(graph, context)) == (products != Products::exact));
  }
}
