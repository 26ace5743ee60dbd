// Fourier transforms.
#include <cmath>

#include "backend/cpu/kernels/fourier_transform.h"
#include "backend/cpu/library/cpu_library.h"
#include "ops/fourier.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"

namespace tn::cpu {
namespace {

using namespace ops;

void run_fft_axis(const LibraryCall& call) {
  const auto& a = *static_cast<const FftAxisAttrs*>(call.attrs);
  const Shape& shape = call.in_types[0]->shape;
  auto n = static_cast<double>(a.n->value());
  double divisor = a.divisor == Divisor::length ? n : a.divisor == Divisor::root ? std::sqrt(n) : 1;
  bool wide = real_of(call.in_types[0]->dtype) == DType::f64;
  tn::fft({.type = wide ? Element::c128 : Element::c64,
           .kind = a.kind,
           .inverse = a.inverse,
           .scale = a.scale / divisor,
           .outer = span_of(shape, 0, a.axis.i),
           .n = a.n->value(),
           .inner = span_of(shape, a.axis.i + 1, shape.rank()),
           .in = call.in[0],
           .out = call.out[0]});
}

constexpr LibraryKernel kEntriesFourier[] = {
    {&ops::fft_axis, run_fft_axis},
};

}  // namespace

LibraryTable fourier_kernels() { return kEntriesFourier; }

}  // namespace tn::cpu
