// Products by cuBLASLt, which is found when one is first wanted. Own declarations of what is used
// of it; tests compare them with cublasLt.h where there is one.
#include <dlfcn.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cuda_library.h"
#include "backend/cuda/cuda_products.h"
#include "base/error.h"
#include "ops/op_decls.h"
#include "runtime/device.h"

namespace tn::cuda {
namespace {

using Handle = struct HandleOfCublas*;
using Desc = struct DescOfCublas*;
using Layout = struct LayoutOfCublas*;
using Preference = struct PreferenceOfCublas*;

struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Heuristic) == 96);

// Values of its enumerations.
constexpr int kCompute32 = 68, kCompute64 = 70, kComputeTf32 = 77;
constexpr int kReal32 = 0, kReal64 = 1, kReal16 = 2, kRealB16 = 14;
constexpr int kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8;
constexpr uint32_t kPlain = 1, kRelu = 2, kBias = 4, kGeluTanh = 32;  // epilogues
constexpr int kBatchCount = 5, kBatchOffset = 6;
constexpr int kMostWorkspace = 1, kReductionMask = 3;
constexpr int kAlignmentA = 5, kAlignmentB = 6, kAlignmentC = 7, kAlignmentD = 8;

struct Cublas {
  int (*create)(Handle*) = nullptr;
  int (*desc_create)(Desc*, int, int) = nullptr;
  int (*desc_set)(Desc, int, const void*, size_t) = nullptr;
  int (*layout_create)(Layout*, int, uint64_t, uint64_t, int64_t) = nullptr;
  int (*layout_set)(Layout, int, const void*, size_t) = nullptr;
  int (*preference_create)(Preference*) = nullptr;
  int (*preference_set)(Preference, int, const void*, size_t) = nullptr;
  int (*heuristic)(Handle, Desc, Layout, Layout, Layout, Layout, Preference, int, Heuristic*,
                   int*) = nullptr;
  int (*multiply)(Handle, Desc, const void*, const void*, Layout, const void*, Layout, const void*,
                  const void*, Layout, void*, Layout, const Algorithm*, void*, size_t,
                  Stream) = nullptr;
  std::string found;  // "": there is none
};

template <class F>
bool find_in(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function;
}

/// TENON_CUDA_PRODUCTS=own leaves it out: products have the bits of the CPU then.
Cublas load_cublas() {
  Cublas made;
  const char* wanted = std::getenv("TENON_CUDA_PRODUCTS");
  if (wanted && std::string_view(wanted) == "own") return made;
  const char* const names[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
  std::string path;
  void* library = find_library(names, std::size(names), "cublas", &path);
  if (library && find_in(library, "cublasLtCreate", made.create) &&
      find_in(library, "cublasLtMatmulDescCreate", made.desc_create) &&
      find_in(library, "cublasLtMatmulDescSetAttribute", made.desc_set) &&
      find_in(library, "cublasLtMatrixLayoutCreate", made.layout_create) &&
      find_in(library, "cublasLtMatrixLayoutSetAttribute", made.layout_set) &&
      find_in(library, "cublasLtMatmulPreferenceCreate", made.preference_create) &&
      find_in(library, "cublasLtMatmulPreferenceSetAttribute", made.preference_set) &&
      find_in(library, "cublasLtMatmulAlgoGetHeuristic", made.heuristic) &&
      find_in(library, "cublasLtMatmul", made.multiply))
    made.found = path;
  return made;
}

const Cublas& cublas() {
  static const Cublas only = load_cublas();
  return only;
}

/// A matrix as cuBLASLt wants it: rows of a column side by side, or else transposed.
struct Side {
  bool transposed = false;
  int64_t leading = 0;
};
/// `near`, `far`: strides along the wanted rows and columns, of so many.
bool side_of(int64_t rows, int64_t near, int64_t columns, int64_t far, Side& side) {
  if ((near == 1 || rows == 1) && (columns == 1 || far >= rows)) {
    side = {false, columns == 1 ? rows : far};
    return true;
  }
  if ((far == 1 || columns == 1) && (rows == 1 || near >= columns)) {
    side = {true, rows == 1 ? columns : near};
    return true;
  }
  return false;
}

/// Of addresses, in bytes: algorithms are for addresses that are aligned so.
struct Alignments {
  uint32_t left = 0, right = 0, out = 0;
  bool operator==(const Alignments&) const = default;
};

uint32_t alignment_of(const void* at) {
  constexpr uintptr_t kMost = 256;  // no algorithm asks for more
  auto address = reinterpret_cast<uintptr_t>(at) | kMost;
  return static_cast<uint32_t>(address & -address);
}

Alignments alignments_of(const MatrixProduct& p) {
  return {alignment_of(p.left), alignment_of(p.right), alignment_of(p.out)};
}

/// A product that was asked for, with the algorithm that serves it.
struct Known {
  MatrixProduct product;
  Desc desc = nullptr;
  Layout left = nullptr, right = nullptr, out = nullptr;
  Algorithm algorithm = {};
  bool is_served = false;
};

bool same(const MatrixProduct& a, const MatrixProduct& b) {
  auto key = [](const MatrixProduct& p) {
    return std::tuple(p.type, p.m, p.n, p.k, p.batch, p.left_row, p.left_k, p.right_k,
                      p.right_column, p.left_batch, p.right_batch, p.may_round, p.activation,
                      p.bias != nullptr);
  };
  return key(a) == key(b) && alignments_of(a) == alignments_of(b);
}

/// Of one GPU.
struct State {
  std::mutex mutex;
  Handle handle = nullptr;
  BufferRef workspace;
  std::vector<Known> known;
};
constexpr size_t kWorkspaceBytes = size_t{32} << 20;

Address address_in(const BufferRef& buffer) { return reinterpret_cast<Address>(buffer->address); }

State& state_of(Gpu& gpu) {
  static std::map<const Gpu*, State> all;
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  return all[&gpu];
}

int data_type(DType type) {
  switch (type) {
    case DType::f32:
      return kReal32;
    case DType::f64:
      return kReal64;
    case DType::f16:
      return kReal16;
    case DType::bf16:
      return kRealB16;
    default:
      return -1;
  }
}

constexpr double kNarrowWork = 1 << 20, kWideWork = 1 << 25;  // multiply-adds

/// Where own kernels are as fast, they have the bits of the CPU.
bool is_worth(DType type, double work) {
  bool is_narrow = type == DType::f16 || type == DType::bf16;
  return data_type(type) >= 0 && work >= (is_narrow ? kNarrowWork : kWideWork);
}
int64_t calls_of(const MatrixProduct& p) {
  int64_t count = 1;
  for (const auto& axis : p.outer) count *= axis.extent;
  return count;
}
/// Of several calls, each must be: own kernels compute all of it in one launch.
bool is_worth(const MatrixProduct& p) {
  double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) *
                static_cast<double>(p.batch);
  return is_worth(p.type, work) && (calls_of(p) == 1 || work >= kWideWork);
}

/// One of the calls.
MatrixProduct call_of(const MatrixProduct& p, int64_t number) {
  MatrixProduct one = p;
  auto bytes = static_cast<int64_t>(size_of(p.type));
  int64_t left = 0, right = 0, rest = number;
  for (size_t i = std::size(p.outer); i-- > 0; rest /= p.outer[i].extent) {
    int64_t place = rest % p.outer[i].extent;
    left += place * p.outer[i].left, right += place * p.outer[i].right;
    one.outer[i] = {};
  }
  one.left = static_cast<const char*>(p.left) + left * bytes;
  one.right = static_cast<const char*>(p.right) + right * bytes;
  one.out = static_cast<char*>(p.out) + number * p.batch * p.m * p.n * bytes;
  return one;
}

Layout layout_of(const Cublas& lib, int type, int64_t rows, int64_t columns, const Side& side,
                 int64_t batch, int64_t offset) {
  Layout made = nullptr;
  if (side.transposed) std::swap(rows, columns);
  lib.layout_create(&made, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns),
                    side.leading);
  auto count = static_cast<int32_t>(batch);
  lib.layout_set(made, kBatchCount, &count, sizeof count);
  lib.layout_set(made, kBatchOffset, &offset, sizeof offset);
  return made;
}

/// Sums of one algorithm are always added in the same order: without those that add in place.
bool choose(const Cublas& lib, State& state, Known& known) {
  Preference preference = nullptr;
  lib.preference_create(&preference);
  lib.preference_set(preference, kMostWorkspace, &kWorkspaceBytes, sizeof kWorkspaceBytes);
  uint32_t schemes = 2 | 4;  // in the type of sums, and in that of results
  lib.preference_set(preference, kReductionMask, &schemes, sizeof schemes);
  Alignments at = alignments_of(known.product);
  lib.preference_set(preference, kAlignmentA, &at.right, sizeof at.right);
  lib.preference_set(preference, kAlignmentB, &at.left, sizeof at.left);
  lib.preference_set(preference, kAlignmentC, &at.out, sizeof at.out);
  lib.preference_set(preference, kAlignmentD, &at.out, sizeof at.out);
  Heuristic best = {};
  int found = 0;
  int result = lib.heuristic(state.handle, known.desc, known.right, known.left, known.out,
                             known.out, preference, 1, &best, &found);
  known.algorithm = best.algorithm;
  return result == 0 && found > 0 && best.state == 0;
}

uint32_t epilogue_of(const MatrixProduct& p) {
  uint32_t all = p.bias ? kBias : 0;
  if (p.activation == Activation::relu) all |= kRelu;
  if (p.activation == Activation::gelu_tanh) all |= kGeluTanh;
  return all ? all : kPlain;
}

void set_bias(const Cublas& lib, Desc desc, const void* bias) {
  lib.desc_set(desc, kBiasPointer, static_cast<const void*>(&bias), sizeof bias);
}

Known make_known(const Cublas& lib, State& state, const MatrixProduct& p) {
  Known made{.product = p};
  Side left, right;
  // Row-major C is column-major Cᵀ = Bᵀ·Aᵀ.
  if (reinterpret_cast<uintptr_t>(p.left) % 16 || reinterpret_cast<uintptr_t>(p.right) % 16 ||
      !side_of(p.k, p.left_k, p.m, p.left_row, left) ||
      !side_of(p.n, p.right_column, p.k, p.right_k, right) || p.batch > INT32_MAX)
    return made;
  int type = data_type(p.type);
  bool is_double = p.type == DType::f64;
  int compute = p.may_round && p.type == DType::f32 ? kComputeTf32 : kCompute32;
  lib.desc_create(&made.desc, is_double ? kCompute64 : compute, is_double ? kReal64 : kReal32);
  int32_t first = right.transposed, second = left.transposed;
  lib.desc_set(made.desc, kTransposeA, &first, sizeof first);
  lib.desc_set(made.desc, kTransposeB, &second, sizeof second);
  uint32_t epilogue = epilogue_of(p);
  if (epilogue != kPlain) lib.desc_set(made.desc, kEpilogue, &epilogue, sizeof epilogue);
  if (p.bias) set_bias(lib, made.desc, p.bias);
  made.right = layout_of(lib, type, p.n, p.k, right, p.batch, p.right_batch);
  made.left = layout_of(lib, type, p.k, p.m, left, p.batch, p.left_batch);
  made.out = layout_of(lib, type, p.n, p.m, {false, p.n}, p.batch, p.m * p.n);
  made.is_served = choose(lib, state, made);
  return made;
}

size_t find_known(const Cublas& lib, State& state, const MatrixProduct& p) {
  auto known =
      std::ranges::find_if(state.known, [&](const Known& k) { return same(k.product, p); });
  if (known == state.known.end()) known = state.known.insert(known, make_known(lib, state, p));
  return static_cast<size_t>(known - state.known.begin());
}

void multiply(const Gpu& gpu, Stream stream, const MatrixProduct& p, const Cublas& lib,
              const State& state, const Known& known) {
  if (p.bias) set_bias(lib, known.desc, p.bias);
  float one = 1, zero = 0;
  double one_d = 1, zero_d = 0;
  bool is_double = p.type == DType::f64;
  const void* alpha = is_double ? static_cast<void*>(&one_d) : &one;
  const void* beta = is_double ? static_cast<void*>(&zero_d) : &zero;
  int result =
      lib.multiply(state.handle, known.desc, alpha, p.right, known.right, p.left, known.left, beta,
                   p.out, known.out, p.out, known.out, &known.algorithm,
                   reinterpret_cast<void*>(address_in(state.workspace)), kWorkspaceBytes, stream);
  invariant(result == 0, "cuda:{}: cuBLASLt refuses a product of {}×{}×{}: status {}", gpu.index,
            p.m, p.k, p.n, result);
}

}  // namespace

std::string products_library() { return cublas().found; }

bool may_run_cublas(const LibraryStep& step, Products products) {
  if (step.op != &ops::dot || products == Products::exact) return false;
  // m·k elements, k·n and m·n: their product is the square of the work; more in batches.
  double work = 1;
  for (TypeRef type : {step.in[0], step.in[1], step.out[0]}) {
    if (type->elements < 0) return true;  // not known
    work *= std::sqrt(static_cast<double>(type->elements));
  }
  return is_worth(step.in[0]->dtype, work);
}

bool run_cublas(Gpu& gpu, Stream stream, const MatrixProduct& p) {
  if (!is_worth(p)) return false;
  const Cublas& lib = cublas();
  if (lib.found.empty()) return false;
  State& state = state_of(gpu);
  std::lock_guard lock(state.mutex);
  if (!state.handle && lib.create(&state.handle) != 0) return false;
  std::vector<std::pair<MatrixProduct, size_t>> calls;  // with the number of what is known
  for (int64_t i = 0; i < calls_of(p); ++i) {
    MatrixProduct one = call_of(p, i);
    size_t known = find_known(lib, state, one);
    if (!state.known[known].is_served) return false;
    calls.emplace_back(one, known);
  }
  if (call_place.wanted) return true;
  if (!state.workspace) state.workspace = gpu.pool.take({}, kWorkspaceBytes);
  for (const auto& [one, known] : calls) multiply(gpu, stream, one, lib, state, state.known[known]);
  return true;
}

}  // namespace tn::cuda
