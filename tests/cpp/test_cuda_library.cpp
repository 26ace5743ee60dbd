// Library kernels of GPUs beside those of the CPU, bit for bit: the device code is compiled for the
// host, and the mock of the driver runs it.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cuda_library.h"
#include "backend/cuda/cuda_runtime.h"
#include "backend/cuda/mock/mock_driver.h"
#include "backend/cuda/own_kernels.h"
#include "backend/cuda/prebuilt/prebuilt.h"
#include "backend/cuda/tile_choice.h"
#include "base/half.h"
#include "device_threads.h"
#include "eval/eval.h"
#include "ir/emit.h"
#include "ops/cumulative.h"
#include "ops/op_decls.h"
#include "runtime/device.h"
#include "tenon/tenon.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
namespace device {
#include "backend/cuda/prebuilt/sort_kernels.cu"
// Headers that they share are included once: their names are those of `device`.
#include "backend/cuda/prebuilt/product_tiles.cuh"
#include "backend/cuda/prebuilt/scatter_kernels.cu"
#include "backend/cuda/prebuilt/window_kernels.cu"
namespace joining {
#include "backend/cuda/prebuilt/joining_kernels.cu"
}
namespace running {
#include "backend/cuda/prebuilt/running_kernels.cu"
}
namespace products {
#include "backend/cuda/prebuilt/product_kernels.cu"
}
#undef KERNEL
#undef KERNELS
namespace convolutions {
#include "backend/cuda/prebuilt/convolution_kernels.cu"
}
float load_half(Half x) { return tn::float16_to_float(x.bits); }
Half store_half(float x) { return {tn::float_to_float16(x)}; }
}  // namespace device
#pragma GCC diagnostic pop

using namespace tn;

namespace {

bool runs_backwards = false;

#define TN_ADD(space, kernel) \
  add_device_kernel(#kernel, device::space kernel, device::turn, runs_backwards)

void add_own_kernels() {
  TN_ADD(, sort_tiles_32);
  TN_ADD(, sort_tiles_64);
  TN_ADD(, merge_runs_32);
  TN_ADD(, merge_runs_64);
  TN_ADD(, scatter_points);
  TN_ADD(, scatter_u8);
  TN_ADD(, scatter_i8);
  TN_ADD(, scatter_u16);
  TN_ADD(, scatter_i16);
  TN_ADD(, scatter_u32);
  TN_ADD(, scatter_i32);
  TN_ADD(, scatter_u64);
  TN_ADD(, scatter_i64);
  TN_ADD(, scatter_f16);
  TN_ADD(, scatter_bf16);
  TN_ADD(, scatter_f32);
  TN_ADD(, scatter_f64);
  TN_ADD(, fold_f32);
  TN_ADD(, fold_f64);
  TN_ADD(, fold_f16);
  TN_ADD(, fold_bf16);
  TN_ADD(, fold_b8);
  TN_ADD(, fold_b16);
  TN_ADD(, fold_b32);
  TN_ADD(, fold_b64);
  TN_ADD(joining::, join_8);
  TN_ADD(joining::, join_16);
  TN_ADD(joining::, join_32);
  TN_ADD(joining::, join_64);
  TN_ADD(running::, running_rows_f32);
  TN_ADD(running::, running_columns_f32);
  TN_ADD(running::, running_rows_f64);
  TN_ADD(running::, running_columns_f64);
  TN_ADD(running::, running_rows_f16);
  TN_ADD(running::, running_columns_f16);
  TN_ADD(running::, running_rows_bf16);
  TN_ADD(running::, running_columns_bf16);
  TN_ADD(running::, running_rows_i32);
  TN_ADD(running::, running_columns_i32);
  TN_ADD(running::, running_rows_i64);
  TN_ADD(running::, running_columns_i64);
#define TN_ADD_ALL(name)                       \
  TN_ADD(products::, product_f32_##name##_rr); \
  TN_ADD(products::, product_f32_##name##_rk); \
  TN_ADD(products::, product_f32_##name##_kr); \
  TN_ADD(products::, product_f32_##name##_kk);
  TN_ADD_ALL(16)
  TN_ADD_ALL(16deep)
  TN_ADD_ALL(32)
  TN_ADD_ALL(64)
  TN_ADD_ALL(128x64)
  TN_ADD_ALL(128)
  TN_ADD_ALL(128x256)
  TN_ADD_ALL(16whole)
  TN_ADD_ALL(32whole)
  TN_ADD(products::, product_f64_64);
  TN_ADD(products::, product_f64_16);
  TN_ADD(products::, product_f16_64);
  TN_ADD(products::, product_f16_16);
  TN_ADD(products::, product_bf16_64);
  TN_ADD(products::, product_bf16_16);
  TN_ADD(products::, product_b32_64);
  TN_ADD(products::, product_b32_16);
  TN_ADD(products::, product_b64_64);
  TN_ADD(products::, product_b64_16);
  TN_ADD(convolutions::, conv_f32_32);
  TN_ADD(convolutions::, conv_f32_64);
  TN_ADD(convolutions::, conv_f32_128x64);
  TN_ADD(convolutions::, conv_f32_16);
  TN_ADD(convolutions::, conv_f64_64);
  TN_ADD(convolutions::, conv_f64_16);
  TN_ADD(convolutions::, conv_f16_64);
  TN_ADD(convolutions::, conv_f16_16);
  TN_ADD(convolutions::, conv_bf16_64);
  TN_ADD(convolutions::, conv_bf16_16);
}

struct WithOwnKernels {
  WithOwnKernels() {
    cuda::replace_driver(&cuda::mock_driver());
    cuda::assembles_own = false;
    add_own_kernels();
  }
  ~WithOwnKernels() {
    cuda::replace_driver(nullptr);
    cuda::assembles_own = true;
  }
  static bool are_built() {
    if (!cuda::sort_ptx().empty()) return true;
    MESSAGE("skipped: this build has no device code");
    return false;
  }
};

std::string bytes_of(const Tensor& t) {
  eval({t});
  HostView view(bound_of(slot_of(t)));
  return {view.data<char>(), static_cast<size_t>(type_of(t)->bytes())};
}

Tensor operand_of(const Tensor& made, int i) {
  const Edge& edge = made.node()->inputs()[i];
  retain(edge.node);
  return Tensor(edge.node, edge.index);
}

/// The results of the op behind `made` by the library of GPUs: from operands that lie row-major,
/// or, in its tiled form, `at` some places.
std::vector<std::string> own_results(const Tensor& made, std::vector<Strided> at = {}) {
  const Node& node = *made.node();
  Device device("cuda");
  cuda::Gpu& gpu = cuda::gpu_of(device);
  std::vector<TypeRef> in, out;
  std::vector<BufferRef> buffers;
  std::vector<const void*> from;
  std::vector<void*> to;
  for (int i = 0; i < node.ins; ++i) {
    Tensor operand = operand_of(made, i);
    std::string bytes = bytes_of(operand);
    in.push_back(type_of(operand));
    buffers.push_back(allocate(bytes.size(), device));
    from.push_back(buffers.back()->address);
    if (!bytes.empty())
      gpu.copy_in(reinterpret_cast<cuda::Address>(from.back()), bytes.data(), bytes.size());
  }
  for (int i = 0; i < node.outs; ++i) {
    out.push_back(node.slots()[i].type);
    buffers.push_back(allocate(static_cast<size_t>(out.back()->bytes()), device));
    to.push_back(buffers.back()->address);
  }
  const LibraryKernel* kernel = cuda::library_kernel(*node.op, in, cuda::target_of(90));
  REQUIRE(kernel);
  const void* attrs = node.attrs ? node.attrs->data : nullptr;
  LibraryCall call{attrs, in, out, from.data(), to.data()};
  if (kernel->room) {
    buffers.push_back(allocate(static_cast<size_t>(kernel->room(call)), device));
    call.room = buffers.back()->address;
  }
  gpu.give(
      [&](cuda::Stream stream) {
        cuda::call_place = {&gpu, stream, Products::exact};
        if (at.empty())
          kernel->run(call);
        else
          kernel->tiled->run({attrs, in, out, at, from.data(), to[0]});
        cuda::call_place = {};
      },
      [] { return "own_results"; });
  std::vector<std::string> results;
  for (size_t i = 0; i < to.size(); ++i) {
    std::string bytes(static_cast<size_t>(out[i]->bytes()), '?');
    if (!bytes.empty())
      gpu.copy_out(bytes.data(), reinterpret_cast<cuda::Address>(to[i]), bytes.size());
    results.push_back(std::move(bytes));
  }
  return results;
}

/// In both orders of threads; `all` are the results of one op, not yet computed.
bool has_same_bits(std::span<const Tensor> all, const std::vector<Strided>& at = {}) {
  std::vector<std::string> got[2];
  for (bool backwards : {false, true}) {
    runs_backwards = backwards;
    got[backwards] = own_results(all[0], at);
  }
  bool same = got[0] == got[1];
  for (size_t i = 0; i < all.size(); ++i) same = same && got[0][i] == bytes_of(all[i]);
  return same;
}
bool has_same_bits(const Tensor& one) { return has_same_bits({&one, 1}); }

constexpr DType kTypes[] = {DType::b1, int8,   uint8,   int16,    uint16,  int32,  uint32,
                            int64,     uint64, float16, bfloat16, float32, float64};

/// Few different values, with zeros of both signs, infinity and NaN among those of floats.
Tensor some_values(const Shape& shape, DType type, uint32_t seed, bool has_nan = true) {
  std::minstd_rand random(seed + 1);
  int64_t count = 1;
  for (Dim d : shape) count *= d.value();
  std::vector<double> values;
  bool is_floating = type == float16 || type == bfloat16 || type == float32 || type == float64;
  for (int64_t i = 0; i < count; ++i) {
    int draw = static_cast<int>(random() % 37);
    double value = draw - 18;
    if (is_floating) value = draw == 0 ? -0.0 : draw == 1 ? NAN : draw == 2 ? -NAN : value / 3;
    if (is_floating && draw == 3) value = INFINITY;
    if (!has_nan && !std::isfinite(value)) value = 7;
    values.push_back(value);
  }
  return astype(reshape(array(values), shape), type);
}

}  // namespace

TEST_CASE("cuda library: sorts of every type have the bits of the CPU") {
  if (!WithOwnKernels::are_built()) return;
  WithOwnKernels with;
  uint32_t seed = 0;
  for (DType type : kTypes) {
    CAPTURE(std::string(name_of(type)));
    Tensor x = some_values({3, 70, 2}, type, ++seed);
    for (int axis : {0, 1, 2})
      for (bool descending : {false, true}) {
        CHECK(has_same_bits(sort(x, axis, descending)));
        CHECK(has_same_bits(argsort(x, axis, descending)));
      }
    TopKResult top = top_k(x, 5, 1);
    CHECK(has_same_bits(Tensors{top.values, top.indices}));
  }
}

TEST_CASE("cuda library: sorts of short, long and no rows") {
  if (!WithOwnKernels::are_built()) return;
  WithOwnKernels with;
  uint32_t seed = 100;
  for (Shape shape : {Shape{1}, Shape{2}, Shape{0}, Shape{4, 0}, Shape{5, 1}, Shape{2, 2048},
                      Shape{1, 2049}, Shape{2, 4200}, Shape{9000}})
    for (DType type : {float32, int64}) {
      if (type == int64 && shape.rank() == 1) continue;
      Tensor x = some_values(shape, type, ++seed);
      CAPTURE(shape[shape.rank() - 1].value());
      CHECK(has_same_bits(sort(x)));
      CHECK(has_same_bits(argsort(x, -1, true)));
      int64_t n = shape[shape.rank() - 1].value();
      for (int64_t k : {int64_t{0}, int64_t{1}, int64_t{100}, int64_t{2500}}) {
        if (k > n) continue;
        TopKResult top = top_k(x, k);
        CHECK(has_same_bits(Tensors{top.values, top.indices}));
      }
    }
}

TEST_CASE("cuda library: scatters have the bits of the CPU") {
  if (!WithOwnKernels::are_built()) return;
  WithOwnKernels with;
  uint32_t seed = 200;
  auto indices = [&](const Shape& shape, int64_t low, int64_t high, DType type = int64) {
    Tensor draws = random::uniform(shape, 0, 1, float32, random::key(static_cast<int64_t>(++seed)));
    return astype(floor(draws * static_cast<double>(high - low)) + static_cast<double>(low), type);
  };
  for (DType type : kTypes)
    for (const char* mode : {"set", "add", "mul", "max", "min"}) {
      CAPTURE(std::string(name_of(type)));
      CAPTURE(std::string(mode));
      // Which of two NaNs is the sum of both is not promised.
      bool is_sum = mode == std::string_view("add") || mode == std::string_view("mul");
      Tensor x = some_values({9, 4, 3}, type, ++seed, !is_sum);
      Tensor updates = some_values({50, 4, 3}, type, ++seed, !is_sum);
      CHECK(has_same_bits(scatter(x, updates, {indices({50}, 0, 9)}, Axes(0), mode)));
    }
  for (const char* outside : {"drop", "clamp", "check"})
    for (DType type : {int8, uint8, int16, int32, uint64}) {
      Tensor x = some_values({6, 5, 4}, float32, ++seed, false), at = indices({7}, -3, 9, int32);
      if (type != int8 && type != int16 && type != int32) at = abs(at);
      CAPTURE(std::string(outside));
      // An index out of bounds is no error here, as in compiled code.
      Tensor made =
          scatter(x, some_values({6, 7, 4}, float32, ++seed, false), {astype(at, type)}, Axes(1),
                  "add", 0, std::string_view(outside) == "check" ? "drop" : outside);
      CHECK(has_same_bits(made));
    }
  Tensor x = some_values({5, 3, 4, 2}, float32, 7, false);
  CHECK(has_same_bits(scatter(x, some_values({6, 8, 3, 2}, float32, 8, false),
                              {indices({6, 1}, 0, 5), indices({8}, 0, 4)}, Axes{0, 2}, "add")));
  CHECK(has_same_bits(scatter(x, some_values({5, 3, 9, 2}, float32, 9, false),
                              {indices({5, 3, 9}, 0, 4)}, Axes(2), "add", 2)));
  CHECK(has_same_bits(
      scatter(x, some_values({5, 3, 4}, float32, 9), {indices({}, 0, 2)}, Axes(3), "max")));
  CHECK(has_same_bits(
      scatter(x, some_values({0, 3, 4, 2}, float32, 9), {indices({0}, 0, 2)}, Axes(0), "add")));
  CHECK(has_same_bits(scatter(zeros({3}), some_values({5000}, float32, 11, false),
                              {indices({5000}, 0, 3)}, Axes(0), "add")));
}

namespace {

struct ConvCase {
  Shape x, w;
  Ints stride = {1};
  Offsets padding = {0};
  Ints input_dilation = {1}, kernel_dilation = {1};
  int64_t groups = 1;
};

Tensor normal(const Shape& shape, DType type, uint32_t seed) {
  return astype(random::normal(shape, 0, 1, float32, random::key(static_cast<int64_t>(seed))),
                type);
}

/// [n, c, axes …] with the channels last.
Tensor channels_last(const Tensor& x) { return moveaxis(x, Axes(1), Axes(-1)); }

/// The node of the cotangent of the weights.
Tensor weights_of(const ConvCase& c, const Tensor& x, const Tensor& w, bool last) {
  auto f = [&](const Tensor& own) {
    return conv(x, own, c.stride, c.padding, c.input_dilation, c.kernel_dilation, c.groups, last);
  };
  auto [y, back] = vjp(f, w);
  Tensor made = back(normal(y.shape(), x.dtype(), 5));
  while (made.node()->op != &ops::conv_weights) made = operand_of(made, 0);
  return made;
}

const ConvCase kConvCases[] = {
    {{2, 3, 7, 6}, {4, 3, 3, 2}},
    {{1, 1, 1}, {1, 1, 1}},
    {{2, 5, 20}, {20, 5, 3}, {2}, {1}},
    {{2, 4, 9, 8}, {6, 2, 3, 3}, {2, 1}, {1, 2, 0, 1}, {1}, {1, 2}, 2},
    {{2, 3, 5, 5}, {5, 3, 3, 3}, {1}, {2}, {2}},
    {{1, 2, 6, 7}, {3, 2, 3, 2}, {3, 2}, {2}, {2, 3}, {2, 1}},
    {{2, 8, 6, 6}, {8, 1, 3, 3}, {1}, {1}, {1}, {1}, 8},
    {{1, 2, 4, 5, 6}, {3, 2, 2, 3, 2}, {1, 2, 1}, {1}},
    {{40, 2, 8, 8}, {3, 2, 3, 3}, {1}, {1}},
    {{3, 40, 5, 5}, {24, 40, 3, 3}, {1}, {1}},
    {{2, 3, 7, 6}, {4, 3, 3, 2}, {1}, {-1}},
};

}  // namespace

TEST_CASE("cuda library: convolutions have the bits of the CPU") {
  if (!WithOwnKernels::are_built()) return;
  WithOwnKernels with;
  uint32_t seed = 300;
  for (const ConvCase& c : kConvCases)
    for (DType type : {float32, float64, float16, bfloat16})
      for (bool last : {false, true}) {
        if (last == (type == float16) && type != float32) continue;
        CAPTURE(&c - kConvCases);
        CAPTURE(std::string(name_of(type)));
        CAPTURE(last);
        Tensor x = normal(c.x, type, ++seed), w = normal(c.w, type, ++seed);
        if (last) x = channels_last(x), w = channels_last(w);
        eval({x, w});
        CHECK(has_same_bits(
            conv(x, w, c.stride, c.padding, c.input_dilation, c.kernel_dilation, c.groups, last)));
        CHECK(has_same_bits(weights_of(c, x, w, last)));
      }
}

TEST_CASE("cuda library: convolutions of operands that lie otherwise, and of none") {
  if (!WithOwnKernels::are_built()) return;
  WithOwnKernels with;
  Tensor x = normal({2, 3, 6, 6}, float32, 350), w = normal({4, 3, 3, 3}, float32, 351);
  eval({x, w});
  Tensor made = conv(x, w, Ints{2}, Offsets{1});
  std::vector<Strided> at = {Strided::row_major(x.shape()), Strided::row_major(w.shape())};
  std::swap(at[0].strides[2], at[0].strides[3]);                   // axes exchanged
  at[1].offset = 8, at[1].strides[2] = -3, at[1].strides[3] = -1;  // mirrored
  runs_backwards = false;
  Tensor same = conv(swapaxes(x, 2, 3), flip(w, Axes{2, 3}), Ints{2}, Offsets{1});
  CHECK(own_results(made, at)[0] == bytes_of(same));
  ConvCase none{{0, 2, 5}, {3, 2, 2}};
  CHECK(has_same_bits(weights_of(none, zeros(none.x), normal(none.w, float32, 352), false)));
}

TEST_CASE("cuda library: products have the bits of the CPU") {
  if (!WithOwnKernels::are_built()) return;
  WithOwnKernels with;
  uint32_t seed = 400;
  for (DType type : {float32, float64, float16, bfloat16, int32, uint64})
    for (Shape sizes : {Shape{3, 5, 7}, Shape{1, 1, 1}, Shape{20, 40, 33}, Shape{130, 70, 150},
                        Shape{3, 1100, 5}}) {
      CAPTURE(std::string(name_of(type)));
      CAPTURE(sizes[1].value());
      if (type == bfloat16 && sizes[0] == Dim(130)) continue;  // AMX adds pairs of products first
      Tensor x = astype(normal({sizes[0], sizes[1]}, float32, ++seed) * 10, type);
      Tensor y = astype(normal({sizes[1], sizes[2]}, float32, ++seed) * 10, type);
      eval({x, y});
      CHECK(has_same_bits(matmul(x, y)));
    }
}

TEST_CASE("cuda library: products of f32 in tiles of every form, whichever way operands lie") {
  if (!WithOwnKernels::are_built()) return;
  WithOwnKernels with;
  for (size_t form = 0; form < std::size(kTileForms); ++form)
    for (const char* text :
         {"mk,kn->mn", "km,kn->mn", "mk,nk->mn", "km,nk->mn", "bmk,bkn->bmn", "kma,knb->manb"})
      for (auto [m, n, k] :
           {std::tuple(150, 70, 19), std::tuple(128, 136, 64), std::tuple(20, 36, 396),
            std::tuple(30, 130, 1276), std::tuple(140, 50, 1), std::tuple(256, 256, 96),
            std::tuple(128, 256, 1408)}) {
        std::map<char, int64_t> sizes = {{'a', 2}, {'b', 2}, {'m', m}, {'n', n}, {'k', k}};
        std::string letters = text;
        if (k > 1000 && !letters.starts_with("mk,kn")) continue;
        // Whole tiles, which large forms bring at even steps; several blocks of the sum, or not.
        if (m * n >= 128 * 256 && (form < 3 || form > 5 || letters.starts_with("bmk"))) continue;
        if (m * n * k >= 128 * 256 * 1000 && form != 5) continue;
        if (kTileForms[form].is_whole && (k > 1000 || letters.starts_with("bmk"))) continue;
        auto operand = [&](std::string_view axes, uint32_t seed) {
          Shape shape;
          for (char axis : axes) shape.push_back(sizes[axis]);
          return normal(shape, float32, seed);
        };
        size_t comma = letters.find(','), arrow = letters.find('-');
        Tensor x = operand(letters.substr(0, comma), 600);
        Tensor y = operand(letters.substr(comma + 1, arrow - comma - 1), 601);
        eval({x, y});
        Tensor made = einsum(text, {x, y});
        while (made.node()->op != &ops::dot) made = operand_of(made, 0);
        CAPTURE(letters);
        CAPTURE(k);
        cuda::form_of_tests = static_cast<int>(form);
        cuda::mock().log.clear();
        CHECK(has_same_bits(made));
        std::string name = cuda::mock().log[0],
                    own = format("product_f32_{}_", kTileForms[form].name);
        CHECK(name.starts_with(own));
        // Where vectors can be copied, pieces lie as the operands do.
        bool is_even = m % 4 == 0 && n % 4 == 0 && k % 4 == 0;
        if (is_even && letters == "km,nk->mn") CHECK(name == own + "rk");
        if (is_even && letters == "mk,kn->mn") CHECK(name == own + "kr");
      }
  cuda::form_of_tests = -1;
}

TEST_CASE("cuda library: convolutions of f32 in large tiles") {
  if (!WithOwnKernels::are_built()) return;
  WithOwnKernels with;
  uint32_t seed = 380;
  for (const ConvCase& c : kConvCases)
    for (bool last : {false, true}) {
      cuda::form_of_tests = 3;
      CAPTURE(&c - kConvCases);
      Tensor x = normal(c.x, float32, ++seed), w = normal(c.w, float32, ++seed);
      if (last) x = channels_last(x), w = channels_last(w);
      eval({x, w});
      cuda::mock().log.clear();
      CHECK(has_same_bits(
          conv(x, w, c.stride, c.padding, c.input_dilation, c.kernel_dilation, c.groups, last)));
      CHECK(cuda::mock().log[0] == "conv_f32_128x64");
      CHECK(has_same_bits(weights_of(c, x, w, last)));
    }
  cuda::form_of_tests = -1;
}

TEST_CASE("cuda library: running sums, products and extremes are chains") {
  if (!WithOwnKernels::are_built()) return;
  WithOwnKernels with;
  uint32_t seed = 700;
  for (DType type : {float32, float64, float16, bfloat16, int32, int64})
    for (Shape shape : {Shape{1}, Shape{5}, Shape{3, 1025}, Shape{20, 300}, Shape{140, 70},
                        Shape{4, 33, 7}, Shape{2, 0}}) {
      if (type != float32 && shape[0] != Dim(20) && shape[0] != Dim(4)) continue;
      CAPTURE(std::string(name_of(type)));
      CAPTURE(shape[0].value());
      Tensor x = shape[0] == Dim(5) ? some_values(shape, type, ++seed)
                                    : astype(normal(shape, float32, ++seed) * 2, type);
      eval({x});
      int axis = shape.rank() > 1 ? 1 : 0;
      for (ops::Running mode :
           {ops::Running::sum, ops::Running::prod, ops::Running::max, ops::Running::min})
        for (bool reverse : {false, true})
          for (bool exclusive : {false, true})
            CHECK(has_same_bits(
                emit(ops::cumulative, {x}, ops::CumulativeAttrs{axis, mode, reverse, exclusive})));
    }
}

TEST_CASE("cuda library: many tensors are joined") {
  if (!WithOwnKernels::are_built()) return;
  WithOwnKernels with;
  uint32_t seed = 600;
  for (DType type : kTypes)
    for (Shape shape : {Shape{3}, Shape{2, 3, 2}}) {
      CAPTURE(std::string(name_of(type)));
      Tensors parts;
      for (int i = 0; i < 150; ++i) {
        int axis = shape.rank() > 1 ? 1 : 0;
        shape[axis] = i % 4;  // some are empty
        parts.push_back(some_values(shape, type, ++seed));
      }
      eval(parts);
      cuda::mock().log.clear();
      CHECK(has_same_bits(concat(parts, Axis(shape.rank() > 1 ? 1 : 0))));
      CHECK(cuda::mock().log[0].starts_with("join_"));
    }
}

TEST_CASE("cuda library: windows are added in the order of the CPU") {
  if (!WithOwnKernels::are_built()) return;
  WithOwnKernels with;
  uint32_t seed = 500;
  for (DType type : kTypes) {
    if (type == DType::b1) continue;
    CAPTURE(std::string(name_of(type)));
    // Of [.., 7] windows of 3; of [.., 9, 8] windows of 3 by 2, 2 apart along the second axis.
    Tensor one = some_values({2, 5, 3}, type, ++seed, false);
    CHECK(has_same_bits(window_fold(one, Offsets{7})));
    CHECK(has_same_bits(
        window_fold(some_values({2, 3, 3}, type, ++seed, false), Offsets{7}, Ints{2})));
    Tensor two = some_values({3, 4, 6, 3, 2}, type, ++seed, false);
    CHECK(has_same_bits(window_fold(two, Offsets{9, 8}, Ints{2, 1}, Ints{1, 2})));
  }
}

TEST_CASE("cuda library: plans give calls room, and graphs of them run again") {
  if (!WithOwnKernels::are_built()) return;
  WithOwnKernels with;
  cuda::forget_gpus();
  cuda::mock().major = 9;
  runs_backwards = false;
  Device gpu("cuda");
  auto f = compile([](const Tensors& in) {
    TopKResult top = top_k(in[0], 5, 1);
    return Tensors{sort(in[0], 1), top.values, top.indices,
                   scatter(in[1], in[2], {in[3]}, Axes(0), "add")};
  });
  Tensor at = astype(floor(random::uniform({3000}, 0, 1, float32, random::key(1)) * 7), int64);
  for (uint32_t run = 0; run < 4; ++run) {
    Tensors here = {normal({2, 5000}, float32, 800 + run), normal({7, 2}, float32, 801),
                    normal({3000, 2}, float32, 802 + run), at};
    Tensors there;
    for (const Tensor& t : here) there.push_back(t.to(gpu));
    cuda::mock().log.clear();
    Tensors got = f(there), want = f(here);
    for (size_t i = 0; i < got.size(); ++i)
      CHECK(bytes_of(got[i].to(Device())) == bytes_of(want[i]));
    CHECK(std::ranges::count(cuda::mock().log, "scatter_f32") == 1);
  }
  CHECK(bytes_of(argsort(at.to(gpu)).to(Device())) == bytes_of(argsort(at)));
  cuda::mock().major = 0;
  cuda::forget_gpus();
  clear_plans();
}

TEST_CASE("cuda library: what is left to the host") {
  if (!WithOwnKernels::are_built()) return;
  Type complex{DType::c64, Shape{4}};
  TypeRef types[] = {intern(complex), intern(complex), intern(Type{DType::i64, Shape{4}})};
  for (const OpDef* op : {&ops::sort, &ops::argsort, &ops::top_k, &ops::scatter, &ops::conv})
    CHECK(!cuda::library_kernel(*op, types, cuda::target_of(90)));
  TypeRef plain[] = {intern(Type{DType::f32, Shape{4}})};
  CHECK(cuda::library_kernel(ops::sort, plain, cuda::target_of(80)));
  for (int16_t arch : {0, 70, 75})
    CHECK(!cuda::library_kernel(ops::sort, plain, cuda::target_of(arch)));
}
