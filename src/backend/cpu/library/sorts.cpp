// Sorts along an axis.
#include <algorithm>

#include "backend/cpu/kernels/sort.h"
#include "backend/cpu/library/cpu_library.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/runtime_types.h"
#include "ops/shapes.h"
#include "runtime/buffer.h"
#include "runtime/with_bits.h"

namespace tn::cpu {
namespace {

using namespace ops;

/// The elements [outer, n, inner] around the sorted axis.
struct Lines {
  int64_t outer, n, inner;
  Lines(const Shape& shape, int axis)
      : outer(span_of(shape, 0, axis)),
        n(shape[axis].value()),
        inner(span_of(shape, axis + 1, shape.rank())) {}
};

template <class T>
void swap_last(int64_t outer, int64_t rows, int64_t columns, const void* from, void* to) {
  constexpr int64_t kTile = 32;
  auto* source = static_cast<const T*>(from);
  auto* target = static_cast<T*>(to);
  for (int64_t o = 0; o < outer; ++o, source += rows * columns, target += rows * columns)
    for (int64_t r = 0; r < rows; r += kTile)
      for (int64_t c = 0; c < columns; c += kTile)
        for (int64_t i = r; i < std::min(r + kTile, rows); ++i)
          for (int64_t k = c; k < std::min(c + kTile, columns); ++k)
            target[k * rows + i] = source[i * columns + k];
}

/// Transposes each of `outer` matrices of `rows` by `columns`.
void swap_last(size_t bytes, int64_t outer, int64_t rows, int64_t columns, const void* from,
               void* to) {
  with_bits(static_cast<int64_t>(bytes),
            [&]<class T>(T) { swap_last<T>(outer, rows, columns, from, to); });
}

/// The operand with the axis moved last; itself when it is there already.
class LastAxis {
 public:
  LastAxis(const Lines& lines, size_t bytes, const void* from) : data_(from) {
    if (lines.inner == 1) return;
    copy_ = allocate(static_cast<size_t>(lines.outer * lines.n * lines.inner) * bytes);
    swap_last(bytes, lines.outer, lines.n, lines.inner, from, copy_.data());
    data_ = copy_.data();
  }
  const void* data() const { return data_; }

 private:
  BufferRef copy_;
  const void* data_;
};

/// Where a result of `n` per line is written: in place when the axis is last, else moved back at
/// the end.
class LastAxisResult {
 public:
  LastAxisResult(const Lines& lines, int64_t n, size_t bytes, void* to)
      : outer_(lines.outer), n_(n), inner_(lines.inner), bytes_(bytes), to_(to) {
    if (inner_ != 1) copy_ = allocate(static_cast<size_t>(outer_ * n_ * inner_) * bytes);
  }
  void* data() const { return copy_ ? copy_.data() : to_; }
  void finish() const {
    if (copy_) swap_last(bytes_, outer_, inner_, n_, copy_.data(), to_);
  }

 private:
  int64_t outer_, n_, inner_;
  size_t bytes_;
  void* to_;
  BufferRef copy_;
};

void run_sort(const LibraryCall& call) {
  const auto& a = *static_cast<const SortAttrs*>(call.attrs);
  const Type& x = *call.in_types[0];
  Lines lines(x.shape, a.axis.i);
  Element type = element_of(x.dtype);
  LastAxis from(lines, element_bytes(type), call.in[0]);
  LastAxisResult to(lines, lines.n, element_bytes(type), call.out[0]);
  tn::sort(type, lines.outer * lines.inner, lines.n, from.data(), to.data(), a.descending);
  to.finish();
}

void run_argsort(const LibraryCall& call) {
  const auto& a = *static_cast<const SortAttrs*>(call.attrs);
  const Type& x = *call.in_types[0];
  Lines lines(x.shape, a.axis.i);
  Element type = element_of(x.dtype);
  LastAxis from(lines, element_bytes(type), call.in[0]);
  LastAxisResult to(lines, lines.n, sizeof(int64_t), call.out[0]);
  tn::argsort(type, lines.outer * lines.inner, lines.n, from.data(),
              static_cast<int64_t*>(to.data()), a.descending);
  to.finish();
}

void run_top_k(const LibraryCall& call) {
  const auto& a = *static_cast<const TopKAttrs*>(call.attrs);
  const Type& x = *call.in_types[0];
  Lines lines(x.shape, a.axis.i);
  Element type = element_of(x.dtype);
  int64_t k = a.k.value();
  LastAxis from(lines, element_bytes(type), call.in[0]);
  LastAxisResult values(lines, k, element_bytes(type), call.out[0]);
  LastAxisResult indices(lines, k, sizeof(int64_t), call.out[1]);
  tn::top_k(type, lines.outer * lines.inner, lines.n, k, from.data(), values.data(),
            static_cast<int64_t*>(indices.data()));
  values.finish(), indices.finish();
}

constexpr LibraryKernel kEntriesSorts[] = {
    {&ops::sort, run_sort},
    {&ops::argsort, run_argsort},
    {&ops::top_k, run_top_k},
};

}  // namespace

LibraryTable sort_kernels() { return kEntriesSorts; }

}  // namespace tn::cpu
