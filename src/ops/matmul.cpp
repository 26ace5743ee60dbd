// Products of matrices and vectors: names for `dot` with axes chosen by rank.
#include <cmath>

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/contract.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

/// A label for each batch axis, equal ones where operands are aligned at their last axes.
Labels batch_labels(int count) {
  Labels out;
  for (int k = count - 1; k >= 0; --k) out += static_cast<char>('A' + k);
  return out;
}

Shape leading(const Shape& shape, int count) {
  return {shape.begin(), shape.begin() + std::max(count, 0)};
}

[[noreturn]] void fail_inner(const Type& x, const Type& y, Dim inner, Dim outer) {
  Hint hint;
  auto say = [&](std::string_view which, Dim rows, Dim columns) {
    Type made{promote(x.dtype, y.dtype), {rows, columns}};
    bool first = which == "x1";
    hint = {format("{} looks transposed; matmul({}, {}) is {}", which, first ? "x1.T" : "x1",
                   first ? "x2" : "x2.T", made),
            format("{} looks transposed; use matrix_transpose({}): the product is {}", which, which,
                   made)};
  };
  if (x.rank() == 2 && y.rank() == 2 && identical(x.shape[1], y.shape[1]))
    say("x2", x.shape[0], y.shape[0]);
  else if (x.rank() == 2 && y.rank() == 2 && identical(x.shape[0], y.shape[0]))
    say("x1", x.shape[1], y.shape[1]);
  else if (can_broadcast(x.shape, y.shape))
    hint = {"x1 * x2 multiplies element by element"};
  fail(hint, "matmul: inner dimensions differ: {} (x1 {}) and {} (x2 {})", inner, x, outer, y);
}

Tensors matmul_body(const NoAttrs&, const Tensors& in) {
  const Type &x = *type_of(in[0]), &y = *type_of(in[1]);
  if (x.rank() == 0 || y.rank() == 0)
    fail(Hint{"use x1 * x2 for scalars"},
         "matmul: operands need at least one axis: x1 {} and x2 {}", x, y);
  Dim inner = x.shape[x.rank() - 1], outer = y.shape[std::max(y.rank() - 2, 0)];
  if (!decide_equal(inner, outer)) fail_inner(x, y, inner, outer);
  Shape batch = broadcast(leading(x.shape, x.rank() - 2), leading(y.shape, y.rank() - 2), "matmul");
  Labels left = batch_labels(x.rank() - 2) + (x.rank() > 1 ? "mk" : "k");
  Labels right = batch_labels(y.rank() - 2) + (y.rank() > 1 ? "kn" : "k");
  Labels out = batch_labels(batch.rank());
  if (x.rank() > 1) out += 'm';
  if (y.rank() > 1) out += 'n';
  Tensors both = in;
  promote_all(both, "matmul", every_type);
  return {contract(both[0], left, both[1], right, out)};
}

struct VecdotAttrs {
  Axis axis = -1;
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis); }
};

Tensors vecdot_body(const VecdotAttrs& a, const Tensors& in) {
  Tensors both = in;
  promote_all(both, "vecdot", every_type);
  const Type &x = *type_of(both[0]), &y = *type_of(both[1]);
  int i = normal_axis(a.axis, x.rank(), "vecdot"), k = normal_axis(a.axis, y.rank(), "vecdot");
  if (!decide_equal(x.shape[i], y.shape[k]))
    fail("vecdot: extents differ along axis {}: {} (x1 {}) and {} (x2 {})", a.axis.i, x.shape[i], x,
         y.shape[k], y);
  Shape left = x.shape, right = y.shape;
  left.erase(i), right.erase(k);
  Labels out = batch_labels(broadcast(left, right, "vecdot").rank());
  Labels x_labels = batch_labels(left.rank()), y_labels = batch_labels(right.rank());
  x_labels.insert(static_cast<size_t>(i), 1, 'k');
  y_labels.insert(static_cast<size_t>(k), 1, 'k');
  Tensor first = is_complex(x.dtype) ? tn::conj(both[0]) : both[0];
  return {contract(first, x_labels, both[1], y_labels, out)};
}

struct TensordotAttrs {
  Maybe<Ints> axes, x2_axes;
  static constexpr void fields(auto& a, auto&& f) { f("axes", a.axes), f("x2_axes", a.x2_axes); }
};

/// The contracted axes of both operands, from a count or two lists.
std::pair<Ints, Ints> tensordot_axes(const TensordotAttrs& a, const Type& x, const Type& y) {
  if (a.x2_axes) {
    if (!a.axes || a.axes->size() != a.x2_axes->size())
      fail("tensordot: axes do not pair up: {} and {}", a.axes ? a.axes->size() : 0,
           a.x2_axes->size());
    return {*a.axes, *a.x2_axes};
  }
  int64_t count = a.axes ? (*a.axes)[0] : 2;
  if (a.axes && a.axes->size() != 1)
    fail("tensordot: axes is a count or two lists: {} numbers", a.axes->size());
  if (count < 0 || count > x.rank() || count > y.rank())
    fail("tensordot: cannot sum over {} axes: x1 {} and x2 {}", count, x, y);
  Ints left, right;
  for (int64_t i = 0; i < count; ++i) left.push_back(x.rank() - count + i), right.push_back(i);
  return {left, right};
}

Tensor sum_products(const Tensors& in, const Ints& left, const Ints& right, std::string_view op) {
  Tensors both = in;
  promote_all(both, op, every_type);
  const Type &x = *type_of(both[0]), &y = *type_of(both[1]);
  Labels x_labels, y_labels, out;
  for (int k = 0; k < x.rank(); ++k) x_labels += static_cast<char>('A' + k);
  for (int k = 0; k < y.rank(); ++k) y_labels += static_cast<char>('a' + k);
  out = x_labels + y_labels;
  for (int i = 0; i < left.size(); ++i) {
    int j = normal_axis(left[i], x.rank(), op), k = normal_axis(right[i], y.rank(), op);
    if (!decide_equal(x.shape[j], y.shape[k]))
      fail("{}: extents differ: {} (axis {} of x1 {}) and {} (axis {} of x2 {})", op, x.shape[j], j,
           x, y.shape[k], k, y);
    char shared = x_labels[static_cast<size_t>(j)], other = static_cast<char>('a' + k);
    bool again = out.find(shared) == Labels::npos || out.find(other) == Labels::npos;
    if (again) fail("{}: an axis is named twice: x1 {} and x2 {}", op, x, y);
    y_labels[static_cast<size_t>(k)] = shared;
    std::erase(out, shared), std::erase(out, other);
  }
  return contract(both[0], x_labels, both[1], y_labels, out);
}

Tensors inner_body(const NoAttrs&, const Tensors& in) {
  if (in[0].rank() == 0 || in[1].rank() == 0) return {tn::multiply(in[0], in[1])};
  return {sum_products(in, {-1}, {-1}, "inner")};
}

Tensors kron_body(const NoAttrs&, const Tensors& in) {
  int rank = std::max(in[0].rank(), in[1].rank());
  Shape left, right, out;
  for (int k = 0; k < rank; ++k) {
    int i = k - (rank - in[0].rank()), j = k - (rank - in[1].rank());
    Dim m = i < 0 ? Dim(1) : in[0].shape()[i], n = j < 0 ? Dim(1) : in[1].shape()[j];
    left.push_back(m), left.push_back(1), right.push_back(1), right.push_back(n);
    out.push_back(m * n);
  }
  return {tn::reshape(tn::multiply(tn::reshape(in[0], left), tn::reshape(in[1], right)), out)};
}

struct AddmmAttrs {
  double alpha = 1, beta = 1;
  static constexpr void fields(auto& a, auto&& f) { f("alpha", a.alpha), f("beta", a.beta); }
};

/// Whole factors leave integers integers.
Tensor scaled(const Tensor& x, double factor) {
  if (factor == 1) return x;
  if (factor == std::rint(factor) && std::abs(factor) < 0x1p53)
    return tn::multiply(x, static_cast<int64_t>(factor));
  return tn::multiply(x, factor);
}

Tensors linear_body(const NoAttrs&, const Tensors& in) {
  const Type &x = *type_of(in[0]), &w = *type_of(in[1]);
  if (x.rank() == 0 || w.rank() != 2)
    fail("linear: x needs an axis and weight two, [out, in]: x {} and weight {}", x, w);
  Dim inner = x.shape[x.rank() - 1];
  if (!decide_equal(inner, w.shape[1])) {
    Hint hint{identical(w.shape[0], inner) ? "weight looks transposed; it is [out, in]" : ""};
    fail(hint, "linear: inner dimensions differ: {} (x {}) and {} (weight {})", inner, x,
         w.shape[1], w);
  }
  Tensor product = sum_products({in[0], in[1]}, {-1}, {-1}, "linear");
  if (in.size() < 3 || !in[2].defined()) return {product};
  const Type& bias = *type_of(in[2]);
  if (bias.rank() > 1 || (bias.rank() == 1 && !decide_equal(bias.shape[0], w.shape[0]) &&
                          !decide_equal(bias.shape[0], 1)))
    fail("linear: bias does not fit: {} (bias {}) and {} (weight {})", bias.shape, bias, w.shape[0],
         w);
  return {tn::add(product, in[2])};
}

/// The matrices of `x`, its leading axes taken as one, at `indices`.
Tensor matrices_at(const Tensor& x, const Tensor& indices) {
  const Type& t = *type_of(x);
  if (t.rank() < 2) fail("gather_mm: operands are matrices: {}", t);
  if (!indices.defined()) return x;
  check_kind("gather_mm", integers, indices.dtype());
  Tensor list = tn::reshape(x, {Dim(-1), t.shape[t.rank() - 2], t.shape[t.rank() - 1]});
  return tn::take(list, indices, Axis(0));
}

}  // namespace

constexpr auto matmul_def = Composite<>{
    .doc =
        "Matrix product over the last axis of `x1` and the last but one of `x2`; leading axes "
        "broadcast. A vector stands for a row on the left and a column on the right, and that axis "
        "is left out of the result. float16 and bfloat16 are summed in float32 and rounded once; "
        "integers wrap; booleans are or-and.",
    .symbol = "@",
    .args = {"x1", "x2"},
    .body = rule<matmul_body>,
    .precision = Precision::low,
    .samples = {{"f32[2,3], f32[3,4]"},
                {"f32[3], f32[3]"},
                {"f32[5,2,3], f32[3,4]"},
                {"f32[2,1,2,3], f32[5,3,4]"},
                {"f32[3], f32[5,3,4]"},
                {"f32[5,2,3], f32[3]"}},
};
TN_OP(matmul);

constexpr auto bmm_def = Composite<>{
    .doc =
        "Products of the matrices of two batches, [batch, m, k] and [batch, k, n]; nothing is "
        "broadcast. `matmul` does that.",
    .args = {"x1", "x2"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      const Type &x = *type_of(in[0]), &y = *type_of(in[1]);
      if (x.rank() != 3 || y.rank() != 3 || !decide_equal(x.shape[0], y.shape[0]))
        fail(Hint{"matmul broadcasts leading axes"},
             "bmm: operands are [batch, m, k] and [batch, k, n]: x1 {} and x2 {}", x, y);
      return {tn::matmul(in[0], in[1])};
    },
    .precision = Precision::low,
    .samples = {{"f32[2,3,4], f32[2,4,5]"}, {"f32[1,2,3], f32[1,3,1]"}},
};
TN_OP(bmm);

constexpr auto vecdot_def = Composite<VecdotAttrs>{
    .doc = "Sums the products of `conj(x1)` and `x2` along `axis`; the other axes broadcast.",
    .args = {"x1", "x2"},
    .body = rule<vecdot_body>,
    .precision = Precision::low,
    .samples = {{"f32[2,3], f32[2,3]"}, {"f32[4,2,3], f32[2,1]", "axis=-2"}, {"f32[3], f32[2,3]"}},
};
TN_OP(vecdot);

constexpr auto vdot_def = Composite<>{
    .doc = "Sums the products of `conj(x1)` and `x2`, both read in row-major order.",
    .args = {"x1", "x2"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      if (!decide_equal(in[0].shape().elements(), in[1].shape().elements()))
        fail("vdot: numbers of elements differ: x1 {} and x2 {}", *type_of(in[0]), *type_of(in[1]));
      return {tn::vecdot(tn::reshape(in[0], {Dim(-1)}), tn::reshape(in[1], {Dim(-1)}))};
    },
    .precision = Precision::low,
    .samples = {{"f32[2,3], f32[2,3]"}, {"f32[4], f32[2,2]"}, {"f32[], f32[]"}},
};
TN_OP(vdot);

constexpr auto tensordot_def = Composite<TensordotAttrs>{
    .doc =
        "Sums products over pairs of axes: over the last `axes` of `x1` and the first of `x2` when "
        "`axes` is one number (default 2), else over axes `axes` of `x1` and `x2_axes` of `x2`. "
        "The "
        "result has the other axes of `x1`, then those of `x2`.",
    .args = {"x1", "x2"},
    .body = [](const TensordotAttrs& a, const Tensors& in) -> Tensors {
      auto [left, right] = tensordot_axes(a, *type_of(in[0]), *type_of(in[1]));
      return {sum_products(in, left, right, "tensordot")};
    },
    .precision = Precision::low,
    .samples = {{"f32[2,3,4], f32[3,4,5]"},
                {"f32[2,3], f32[3,4]", "axes=[1]"},
                {"f32[2], f32[3]", "axes=[0]"},
                {"f32[2,3,4], f32[4,2]", "axes=[0,-1], x2_axes=[1,0]"}},
};
TN_OP(tensordot);

constexpr auto inner_def = Composite<>{
    .doc = "Sums products over the last axes of both operands; scalars multiply.",
    .args = {"x1", "x2"},
    .body = rule<inner_body>,
    .precision = Precision::low,
    .samples = {{"f32[2,3], f32[4,3]"}, {"f32[3], f32[3]"}, {"f32[], f32[2]"}},
};
TN_OP(inner);

constexpr auto outer_def = Composite<>{
    .doc =
        "The product of every element of `x1` with every element of `x2`, both read in row-major "
        "order.",
    .args = {"x1", "x2"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      return {tn::multiply(tn::reshape(in[0], {Dim(-1), 1}), tn::reshape(in[1], {1, Dim(-1)}))};
    },
    .samples = {{"f32[2], f32[3]"}, {"f32[2,2], f32[3]"}},
};
TN_OP(outer);

constexpr auto kron_def = Composite<>{
    .doc =
        "The Kronecker product: every element of `x1` replaced by its product with `x2`. The "
        "shorter "
        "shape gets unit axes in front.",
    .args = {"x1", "x2"},
    .body = rule<kron_body>,
    .samples = {{"f32[2,3], f32[3,2]"}, {"f32[2], f32[3,2]"}, {"f32[], f32[2]"}},
};
TN_OP(kron);

constexpr auto addmm_def = Composite<AddmmAttrs>{
    .doc = "`beta * c + alpha * (a @ b)`, with `c` broadcast.",
    .args = {"c", "a", "b"},
    .body = [](const AddmmAttrs& a, const Tensors& in) -> Tensors {
      Tensor product = scaled(tn::matmul(in[1], in[2]), a.alpha);
      return {tn::add(scaled(in[0], a.beta), product)};
    },
    .precision = Precision::low,
    .samples = {{"f32[4], f32[2,3], f32[3,4]"},
                {"f32[2,4], f32[2,3], f32[3,4]", "alpha=2, beta=3"}},
};
TN_OP(addmm);

constexpr auto linear_def = Composite<>{
    .doc = "`x @ weight.T + bias`: a layer whose `weight` is [out, in] and whose `bias` is [out].",
    .args = {"x", "weight", "?bias"},
    .body = rule<linear_body>,
    .precision = Precision::low,
    .samples = {{"f32[2,3], f32[4,3], f32[4]"},
                {"f32[5,2,3], f32[4,3]"},
                {"f32[3], f32[4,3], f32[4]"}},
};
TN_OP(linear);

constexpr auto gather_mm_def = Composite<>{
    .doc =
        "Products of chosen matrices: `x1[lhs_indices] @ x2[rhs_indices]`, where indices count the "
        "matrices of an operand in row-major order of its leading axes. An operand without indices "
        "takes part as it is; leading axes broadcast.",
    .args = {"x1", "x2", "?lhs_indices", "?rhs_indices"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      return {tn::matmul(matrices_at(in[0], optional(in, 2)), matrices_at(in[1], optional(in, 3)))};
    },
    .precision = Precision::low,
    .samples = {{"f32[3,2,3], f32[3,3,4], i64[2], i64[2]", "", 0, 2}, {"f32[2,2,3], f32[2,3,4]"}},
};
TN_OP(gather_mm);

}  // namespace tn::ops
