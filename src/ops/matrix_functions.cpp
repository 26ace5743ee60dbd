// Products of many matrices, and the exponential of one.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/matrices.h"
#include "ops/op_decls.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

/// The cheapest order to multiply a chain in: by the number of multiplications of each part.
class Chain {
 public:
  explicit Chain(const Tensors& parts) : parts_(parts), count_(parts.size()) {
    for (const Tensor& x : parts) sides_.push_back(static_cast<double>(rows_of(x.shape()).value()));
    sides_.push_back(static_cast<double>(columns_of(parts.back().shape()).value()));
    cost_.resize(count_ * count_), cut_.resize(count_ * count_);
    for (size_t length = 2; length <= count_; ++length)
      for (size_t first = 0; first + length <= count_; ++first) choose(first, first + length - 1);
  }
  Tensor product() const { return product(0, count_ - 1); }

 private:
  size_t at(size_t first, size_t last) const { return first * count_ + last; }
  void choose(size_t first, size_t last) {
    cost_[at(first, last)] = INFINITY;
    for (size_t k = first; k < last; ++k) {
      double cost = cost_[at(first, k)] + cost_[at(k + 1, last)] +
                    sides_[first] * sides_[k + 1] * sides_[last + 1];
      if (cost >= cost_[at(first, last)]) continue;
      cost_[at(first, last)] = cost, cut_[at(first, last)] = k;
    }
  }
  Tensor product(size_t first, size_t last) const {
    if (first == last) return parts_[first];
    size_t k = cut_[at(first, last)];
    return tn::matmul(product(first, k), product(k + 1, last));
  }
  const Tensors& parts_;
  size_t count_;
  std::vector<double> sides_, cost_;
  std::vector<size_t> cut_;
};

Tensors multi_dot_body(const NoAttrs&, const Tensors& in) {
  constexpr size_t kMost = 512;  // the order takes the cube of their number
  if (in.size() < 2) fail("multi_dot: two matrices are needed at least: {}", in.size());
  if (in.size() > kMost) fail("multi_dot: more than {} matrices: {}", kMost, in.size());
  Tensors parts = in;
  promote_all(parts, "multi_dot", every_type);
  bool row = in.front().rank() == 1, column = in.back().rank() == 1;
  if (row) parts.front() = as_row(parts.front());
  if (column) parts.back() = as_column(parts.back());
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].rank() != 2) fail("multi_dot: operand {} is not a matrix: {}", i, *type_of(in[i]));
    if (i && !decide_equal(columns_of(parts[i - 1].shape()), rows_of(parts[i].shape())))
      fail("multi_dot: inner dimensions differ: {} and {}", *type_of(in[i - 1]), *type_of(in[i]));
  }
  Tensor product = Chain(parts).product();
  Axes vectors;
  if (row) vectors.push_back(0);
  if (column) vectors.push_back(1);
  return {vectors.empty() ? product : tn::squeeze(product, vectors)};
}

struct ExpmAttrs {
  int64_t max_squarings = 16;
  static constexpr void fields(auto& a, auto&& f) { f("max_squarings", a.max_squarings); }
};

/// The quotient of two polynomials of degree 13 that is near to exp for matrices of norm 5.
Tensor quotient_near_exp(const Tensor& a) {
  constexpr double b[] = {64764752532480000.,
                          32382376266240000.,
                          7771770303897600.,
                          1187353796428800.,
                          129060195264000.,
                          10559470521600.,
                          670442572800.,
                          33522128640.,
                          1323241920.,
                          40840800.,
                          960960.,
                          16380.,
                          182.,
                          1.};
  Tensor one = tn::eye(rows_of(a.shape()), {}, 0, a.dtype());
  Tensor a2 = tn::matmul(a, a), a4 = tn::matmul(a2, a2), a6 = tn::matmul(a4, a2);
  Tensor odd = tn::matmul(a6, a6 * b[13] + a4 * b[11] + a2 * b[9]);
  odd = tn::matmul(a, odd + a6 * b[7] + a4 * b[5] + a2 * b[3] + one * b[1]);
  Tensor even = tn::matmul(a6, a6 * b[12] + a4 * b[10] + a2 * b[8]);
  even = even + a6 * b[6] + a4 * b[4] + a2 * b[2] + one * b[0];
  return solve_matrix(even - odd, even + odd);
}

/// exp(A) = exp(A / 2^s)^(2^s), where each matrix has its own s.
Tensors expm_body(const ExpmAttrs& a, const Tensors& in) {
  constexpr double kNear = 5.371920351148152;
  Tensors x = in;
  prepare_square("expm", x);
  if (a.max_squarings < 0 || a.max_squarings > 64)
    fail("expm: max_squarings must lie in [0, 64]: {}", a.max_squarings);
  if (x[0].shape().elements().is(0)) return {x[0]};
  Tensor norm = tn::max(tn::sum(tn::abs(x[0]), Axes(-2), {}, true), Axes(-1), true);
  norm = tn::stop_gradient(norm);
  Tensor times = tn::maximum(tn::ceil(tn::log2(norm / kNear)), 0.0);
  Tensor y = quotient_near_exp(x[0] / cast_to(tn::exp2(times), x[0].dtype()));
  for (int64_t i = 0; i < a.max_squarings; ++i)
    y = tn::where(times > static_cast<double>(i), tn::matmul(y, y), y);
  Tensor reached = times <= static_cast<double>(a.max_squarings);
  return {tn::where(reached, y, std::numeric_limits<double>::quiet_NaN())};
}

}  // namespace

constexpr auto multi_dot_def = Composite<>{
    .doc =
        "The product of two or more matrices, multiplied in the order that takes the fewest "
        "operations. The first and the last may be vectors.",
    .module = "linalg",
    .args = {"*arrays"},
    .body = rule<multi_dot_body>,
    .precision = Precision::low,
    .samples = {{"f32[2,3], f32[3,4], f32[4,2]"},
                {"f32[3], f32[3,2], f32[2,4], f32[4]"},
                {"f32[2,3], f32[3]"}},
};
TN_OP(multi_dot);

constexpr auto expm_def = Composite<ExpmAttrs>{
    .doc =
        "The exponential of a square matrix: the sum of its powers over their factorials. Matrices "
        "are halved until their norm is small, `max_squarings` times at most; NaN beyond.",
    .module = "linalg",
    .args = {"x"},
    .body = rule<expm_body>,
    .samples = {{"f32[3,3]"}, {"f32[2,2,2]", "max_squarings=4", -3, 3}},
};
TN_OP(expm);

}  // namespace tn::ops
