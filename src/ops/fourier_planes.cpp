// Fourier transforms of planes: names for those over several axes.
#include "ops/families.h"
#include "ops/fourier.h"
#include "ops/op_decls.h"
#include "tenon/ops.h"

namespace tn::ops {
namespace {

using Transform = Tensor(const Operand&, const Maybe<Offsets>&, const Maybe<Ints>&,
                         std::string_view);

/// Along the last two axes, unless others are given.
template <Transform* kTransform>
Tensors of_planes(const FftnAttrs& a, const Tensors& in) {
  Ints axes = a.axes ? *a.axes : Ints{-2, -1};
  return {kTransform(in[0], a.s, axes, kNorms[static_cast<size_t>(a.norm)])};
}

}  // namespace

constexpr auto fft2_def = Composite<FftnAttrs>{
    .doc = "`fftn` along the last two axes, unless `axes` are given.",
    .module = "fft",
    .args = {"x"},
    .body = rule<of_planes<tn::fftn>>,
    .samples = {{"f32[3,4]"}, {"f32[2,3,5]", "norm=ortho"}, {"f32[3,4]", "s=[2,5], axes=[0,1]"}},
};
TN_OP(fft2);

constexpr auto ifft2_def = Composite<FftnAttrs>{
    .doc = "The inverse of `fft2`, for equal `s`, `axes` and `norm`.",
    .module = "fft",
    .args = {"x"},
    .body = rule<of_planes<tn::ifftn>>,
    .samples = {{"f32[3,4]"}, {"f32[2,3,5]", "norm=forward"}},
};
TN_OP(ifft2);

constexpr auto rfft2_def = Composite<FftnAttrs>{
    .doc = "`rfftn` along the last two axes, unless `axes` are given.",
    .module = "fft",
    .args = {"x"},
    .body = rule<of_planes<tn::rfftn>>,
    .samples = {{"f32[3,4]"}, {"f32[2,3,5]", "norm=ortho"}},
};
TN_OP(rfft2);

constexpr auto irfft2_def = Composite<FftnAttrs>{
    .doc = "The inverse of `rfft2`, for equal `s`, `axes` and `norm`.",
    .module = "fft",
    .args = {"x"},
    .body = rule<of_planes<tn::irfftn>>,
    .samples = {{"f32[3,4]"}, {"f32[2,3,5]", "norm=ortho"}},
};
TN_OP(irfft2);

}  // namespace tn::ops
