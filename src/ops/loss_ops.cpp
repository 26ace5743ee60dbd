// Losses and lookups of training.
#include <limits>

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/index_bounds.h"
#include "ops/indexing.h"
#include "ops/loss_parts.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

struct CrossEntropyAttrs {
  Reduce reduction = Reduce::mean;
  double label_smoothing = 0;
  Axis axis = -1;
  static constexpr void fields(auto& a, auto&& f) {
    f("reduction", a.reduction), f("label_smoothing", a.label_smoothing), f("axis", a.axis);
  }
};

/// Classes have an axis less than the logits, probabilities as many.
bool has_classes(const Type& logits, const Type& targets) {
  return targets.rank() < logits.rank() && is_integer(targets.dtype);
}

/// What is wrong with targets of another shape, where one can tell.
Hint hint_for_targets(const Type& logits, const Type& targets) {
  if (!is_integer(targets.dtype) && targets.rank() < logits.rank())
    return {"classes are integers: astype(targets, int64)"};
  if (is_integer(targets.dtype) && targets.rank() == logits.rank())
    return {"classes have no axis of their own: squeeze it, as in targets[:, 0]",
            "classes have no axis of their own: squeeze it, as in targets[{tn::all, 0}]"};
  return {};
}

void prepare_cross_entropy(CrossEntropyAttrs& a, Tensors& in) {
  const Type &x = *type_of(in[0]), &t = *type_of(in[1]);
  if (x.rank() == 0) fail("cross_entropy: logits need an axis of classes: {}", x);
  a.axis = normal_axis(a.axis, x.rank(), "cross_entropy");
  if (!(a.label_smoothing >= 0 && a.label_smoothing <= 1))
    fail("cross_entropy: label_smoothing must lie in [0, 1]: {}", a.label_smoothing);
  bool indices = has_classes(x, t);
  Shape wanted = indices ? without_axes(x.shape, Axes(a.axis.i)) : x.shape;
  if (!decide_equal(t.shape, wanted))
    fail(hint_for_targets(x, t), "cross_entropy: targets must be {} of shape {}: {} (logits {})",
         indices ? "classes" : "probabilities", wanted, t, x);
  if (indices) {
    Tensors logits{in[0]};
    promote_all(logits, "cross_entropy", floats, true);
    in[0] = logits[0];
    check_bounds("cross_entropy", in[1], x, a.axis.i, Negative::is_outside);
  } else {
    promote_all(in, "cross_entropy", floats, true);
  }
}

/// Whether each target is one of the `count` classes there are.
Tensor is_class(const Tensor& targets, Dim count) {
  Tensor wide = cast_to(targets, DType::i64);
  return tn::logical_and(tn::greater_equal(wide, 0), tn::less(wide, count));
}

/// `loss`, but NaN where there is no such class: training must not go on.
Tensor nan_where_no_class(const Tensor& loss, const Tensor& targets, Dim count) {
  return tn::where(is_class(targets, count), loss, std::numeric_limits<double>::quiet_NaN());
}

/// Per row lse - (1-s)·x[target] - s·mean(x): the smoothed sum of -target·log_softmax(x).
Tensor loss_of_classes(const CrossEntropyAttrs& a, const Tensor& x, const Tensor& targets) {
  Tensor at = tn::reshape(targets, without_axes(x.shape(), Axes(a.axis.i), true));
  Tensor chosen = tn::reshape(read_along(x, at, a.axis.i), targets.shape());
  Tensor total = tn::logsumexp(x, Axes(a.axis.i));
  Tensor loss = total - chosen;
  if (a.label_smoothing != 0) {
    Tensor average = tn::mean(x, Axes(a.axis.i));
    loss = total - (1 - a.label_smoothing) * chosen - a.label_smoothing * average;
  }
  return nan_where_no_class(loss, targets, x.shape()[a.axis.i]);
}

/// A class of probability 0 adds nothing, even where its logit is -inf.
Tensor loss_of_probabilities(const CrossEntropyAttrs& a, const Tensor& x, Tensor targets) {
  if (a.label_smoothing != 0)
    targets = (1 - a.label_smoothing) * targets +
              share_of(a.label_smoothing, x.shape()[a.axis.i], x.dtype());
  Tensor terms =
      tn::where(tn::equal(targets, 0.0), 0.0, targets * tn::log_softmax(x, Axes(a.axis.i)));
  return -tn::sum(terms, Axes(a.axis.i));
}

Tensors cross_entropy_body(const CrossEntropyAttrs& a, const Tensors& in) {
  Tensor x = cast_to(in[0], info(in[0].dtype()).compute);
  bool classes = has_classes(*type_of(in[0]), *type_of(in[1]));
  Tensor loss = classes ? loss_of_classes(a, x, in[1])
                        : loss_of_probabilities(a, x, cast_to(in[1], x.dtype()));
  return {cast_to(reduced(loss, a.reduction), in[0].dtype())};
}

/// Of classes ct·(softmax(x) - target), where a logit of -inf has no share: one pass over the
/// logits, where the body would scatter.
Tensors vjp_cross_entropy(const CrossEntropyAttrs& a, const Primal& p, const Tensors& cts) {
  if (!has_classes(*type_of(p.in[0]), *type_of(p.in[1]))) return {};
  DType type = p.in[0].dtype(), wide = info(type).compute;
  int axis = a.axis.i;
  Tensor x = cast_to(p.in[0], wide), ct = cast_to(cts[0], wide);
  Dim classes = x.shape()[axis];
  Shape rows = without_axes(x.shape(), Axes(axis), true);
  if (a.reduction == Reduce::none) ct = tn::reshape(ct, rows);
  if (a.reduction == Reduce::mean) ct = over_count(ct, rows.elements());
  Tensor given = tn::reshape(cast_to(p.in[1], DType::i64), rows);
  Tensor is_target = tn::equal(positions(classes, x.rank(), axis), given);
  Tensor target = cast_to(is_target, wide) * (1 - a.label_smoothing) +
                  share_of(a.label_smoothing, classes, wide);
  Tensor share = tn::where(tn::equal(x, kMinusInfinity), 0.0, tn::softmax(x, Axes(axis)));
  Tensor back = tn::where(is_class(given, classes), ct * (share - target), 0.0);
  return {cast_to(back, type), Tensor()};
}

Tensors embedding_body(const NoAttrs&, const Tensors& in) {
  if (in[0].rank() == 0) fail("embedding: weight needs an axis: {}", *type_of(in[0]));
  check_kind("embedding", integers, in[1].dtype());
  return {tn::gather(in[0], {wrap_negative("embedding", in[1], *type_of(in[0]), 0)}, Axes(0))};
}

}  // namespace

constexpr auto cross_entropy_def = Composite<CrossEntropyAttrs>{
    .doc =
        "Minus the log of the probability that `softmax(logits)` along `axis` gives the targets: "
        "classes "
        "(integers, the shape of `logits` without `axis`) or probabilities (the shape of "
        "`logits`). "
        "`label_smoothing` moves that share of each target to all classes alike. `reduction` is "
        "none, mean or sum. A class outside the range (also a negative one) is an error, which "
        "compiled code checks under `debug_indices` only; otherwise its loss is NaN.",
    .args = {"logits", "targets"},
    .recorded = true,
    .prepare = rule<prepare_cross_entropy>,
    .body = rule<cross_entropy_body>,
    .vjp = rule<vjp_cross_entropy>,
    .precision = Precision::full,
    .samples = {{"f32[2,3], i64[2]", "", 0, 2},
                {"f32[2,3,4], i64[2,4]", "reduction=none, label_smoothing=0.1, axis=1", 0, 2},
                {"f32[2,3], f32[2,3]", "reduction=sum", 0, 1},
                {"f32[3], i64[]", "", 0, 2}},
};
TN_OP(cross_entropy);

constexpr auto embedding_def = Composite<>{
    .doc =
        "The rows of `weight` at `indices`, which are integers of any shape. Negative indices "
        "count "
        "from the end; one out of bounds is an error, which compiled code checks under "
        "`debug_indices` only and clamps otherwise.",
    .args = {"weight", "indices"},
    .body = rule<embedding_body>,
    .samples = {{"f32[3,4], i64[5]", "", 0, 2},
                {"f32[3,4], i32[2,2]", "", 0, 2},
                {"f32[3], i64[]", "", 0, 2}},
};
TN_OP(embedding);

}  // namespace tn::ops
