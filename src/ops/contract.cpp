#include "ops/contract.h"

#include "ir/emit.h"
#include "ir/sizes.h"
#include "ops/op_decls.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

bool has(const Labels& labels, char c) { return labels.find(c) != Labels::npos; }

int place(const Labels& labels, char c) { return static_cast<int>(labels.find(c)); }

/// Removes the unit axes of `x` that `y` repeats: the label then belongs to `y` alone.
void drop_repeated(Tensor& x, Labels& labels, const Tensor& y, const Labels& y_labels) {
  Shape kept;
  Labels left;
  for (int k = 0; k < x.rank(); ++k) {
    char c = labels[static_cast<size_t>(k)];
    bool repeated = has(y_labels, c) &&
                    !decide_equal(x.shape()[k], y.shape()[place(y_labels, c)]) &&
                    decide_equal(x.shape()[k], 1);
    if (repeated) continue;
    kept.push_back(x.shape()[k]);
    left += c;
  }
  if (kept.rank() < x.rank()) x = tn::reshape(x, kept);
  labels = left;
}

/// `x` with the axes of `out`, in that order; those it lacks have extent 1.
Tensor spread(const Tensor& x, const Labels& labels, const Labels& out) {
  Labels own;
  for (char c : out)
    if (has(labels, c)) own += c;
  Tensor ordered = in_order(x, labels, own);
  Shape shape;
  for (char c : out) shape.push_back(has(own, c) ? ordered.shape()[place(own, c)] : Dim(1));
  return tn::reshape(ordered, shape);
}

/// Products of corresponding elements, summed: for contractions without an axis of one operand
/// only.
Tensor multiply_sum(const Tensor& x, const Labels& x_labels, const Tensor& y,
                    const Labels& y_labels, const Labels& batch, const Labels& summed) {
  DType type = x.dtype(), wide = is_float(type) ? info(type).accumulate : type;
  Labels all = batch + summed;
  Tensor product = tn::multiply(cast_to(spread(x, x_labels, all), wide),
                                cast_to(spread(y, y_labels, all), wide));
  Axes axes;
  for (size_t k = batch.size(); k < all.size(); ++k) axes.push_back(static_cast<int>(k));
  if (axes.empty()) return cast_to(product, type);
  return cast_to(tn::sum(product, axes, wide), type);
}

}  // namespace

Tensor in_order(const Tensor& x, const Labels& labels, const Labels& out) {
  if (labels == out) return x;
  Perm perm;
  for (char c : out) perm.push_back(place(labels, c));
  return tn::permute_dims(x, perm);
}

Tensor sum_except(const Tensor& x, Labels& labels, const Labels& kept) {
  Axes axes;
  Labels left;
  for (size_t k = 0; k < labels.size(); ++k) {
    if (has(kept, labels[k]))
      left += labels[k];
    else
      axes.push_back(static_cast<int>(k));
  }
  if (axes.empty()) return x;
  labels = left;
  if (x.dtype() == DType::b1) return tn::any(x, axes);
  return tn::sum(x, axes, x.dtype());
}

Tensor contract(Tensor x, Labels x_labels, Tensor y, Labels y_labels, const Labels& out) {
  drop_repeated(x, x_labels, y, y_labels);
  drop_repeated(y, y_labels, x, x_labels);
  x = sum_except(x, x_labels, y_labels + out);
  y = sum_except(y, y_labels, x_labels + out);
  Labels batch, summed, x_free, y_free;
  DotAttrs attrs;
  for (char c : x_labels) {
    if (!has(y_labels, c)) {
      x_free += c;
    } else if (has(out, c)) {
      batch += c;
      attrs.lhs_batch.push_back(place(x_labels, c)), attrs.rhs_batch.push_back(place(y_labels, c));
    } else {
      summed += c;
      attrs.lhs_contract.push_back(place(x_labels, c));
      attrs.rhs_contract.push_back(place(y_labels, c));
    }
  }
  for (char c : y_labels)
    if (!has(x_labels, c)) y_free += c;
  if (summed.empty()) return tn::multiply(spread(x, x_labels, out), spread(y, y_labels, out));
  if (x_free.empty() && y_free.empty() && x.dtype() != DType::b1)
    return in_order(multiply_sum(x, x_labels, y, y_labels, batch, summed), batch, out);
  return in_order(emit(dot, {x, y}, attrs), batch + x_free + y_free, out);
}

}  // namespace tn::ops
