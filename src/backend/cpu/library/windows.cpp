// Windows added where they came from.
#include <algorithm>
#include <complex>
#include <vector>

#include "backend/cpu/library/cpu_library.h"
#include "base/half.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "ops/spatial.h"
#include "runtime/threads.h"

namespace tn::cpu {
namespace {

using namespace ops;

/// Adds the windows of one tensor to `sums`, of zeros.
template <class Sum, class Load>
void add_windows(const FoldPlan& p, const auto* windows, Load load, Sum* sums) {
  for (int64_t y0 = 0; y0 < p.places[0]; ++y0)
    for (int64_t y1 = 0; y1 < p.places[1]; ++y1)
      for (int64_t y2 = 0; y2 < p.places[2]; ++y2)
        for (int64_t k0 = 0; k0 < p.size[0]; ++k0)
          for (int64_t k1 = 0; k1 < p.size[1]; ++k1) {
            int64_t at = y0 * p.step[0] + k0 * p.apart[0];
            at = at * p.extent[1] + y1 * p.step[1] + k1 * p.apart[1];
            Sum* row = sums + at * p.extent[2] + y2 * p.step[2];
            for (int64_t k2 = 0; k2 < p.size[2]; ++k2) {
              Sum& sum = row[k2 * p.apart[2]];
              sum = static_cast<Sum>(sum + load(*windows++));
            }
          }
}

template <class Stored, class Sum>
void fold(const LibraryCall& call, Sum (*load)(Stored), Stored (*store)(Sum)) {
  const auto& a = *static_cast<const FoldAttrs*>(call.attrs);
  FoldPlan plan(a, call.in_types[0]->shape);
  const InternedType& out = *call.out_types[0];
  if (out.elements == 0) return;
  int64_t each = span_of(out.shape, out.rank() - a.extents.size(), out.rank());
  int64_t tensors = out.elements / each, windows = call.in_types[0]->elements / tensors;
  int64_t chunks = std::min(tensors, chunks_for(tensors * (each + windows), 1 << 15));
  parallel_for(chunks, [&](int64_t chunk) {
    auto [begin, end] = chunk_range(tensors, chunks, chunk);
    std::vector<Sum> sums(static_cast<size_t>(each));
    for (int64_t i = begin; i < end; ++i) {
      std::fill(sums.begin(), sums.end(), Sum{});
      add_windows(plan, static_cast<const Stored*>(call.in[0]) + i * windows, load, sums.data());
      std::transform(sums.begin(), sums.end(), static_cast<Stored*>(call.out[0]) + i * each, store);
    }
  });
}

template <class T>
void fold(const LibraryCall& call) {
  auto same = [](T x) { return x; };
  fold<T, T>(call, same, same);
}

void run_fold(const LibraryCall& call) {
  DType type = call.in_types[0]->dtype;
  switch (type) {
    case DType::f16:
      return fold<uint16_t, float>(call, float16_to_float, float_to_float16);
    case DType::bf16:
      return fold<uint16_t, float>(call, bfloat16_to_float, float_to_bfloat16);
    case DType::f32:
      return fold<float>(call);
    case DType::f64:
      return fold<double>(call);
    case DType::c64:
      return fold<std::complex<float>>(call);
    case DType::c128:
      return fold<std::complex<double>>(call);
    default:
      break;
  }
  switch (size_of(type)) {  // sums wrap, so the sign does not matter
    case 1:
      return fold<uint8_t>(call);
    case 2:
      return fold<uint16_t>(call);
    case 4:
      return fold<uint32_t>(call);
    default:
      return fold<uint64_t>(call);
  }
}

constexpr LibraryKernel kEntriesWindows[] = {
    {&ops::window_fold, run_fold},
};

}  // namespace

LibraryTable window_kernels() { return kEntriesWindows; }

}  // namespace tn::cpu
