// Random integers, choices and orders.
#include <cmath>

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/draws.h"
#include "ops/families.h"
#include "ops/known_values.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"
#include "tenon/random.h"

namespace tn::ops {
namespace {

struct BernoulliAttrs {
  Maybe<Shape> shape;
  static constexpr void fields(auto& a, auto&& f) { f("shape", a.shape); }
};

void check_probability(std::string_view op, double p) {
  if (!(p >= 0 && p <= 1)) fail("{}: p must lie in [0, 1]: {}", op, p);
}

Tensor bernoulli_body(const BernoulliAttrs& a, const Tensors& in) {
  constexpr std::string_view op = "random_bernoulli";
  check_one_key(op, in[0]);
  if (auto p = known_number(in[1])) check_probability(op, p->real);
  Shape shape = a.shape.value_or(in[1].shape());
  check_sizes(op, shape);
  DType type = to_inexact(in[1].dtype());
  check_kind(op, floats, type);
  return draw_unit(in[0], shape, type) < parameter(op, "p", in[1], shape, type);
}

struct CategoricalAttrs {
  Axis axis = -1;
  Maybe<Shape> shape;
  Maybe<int64_t> num_samples;
  static constexpr void fields(auto& a, auto&& f) {
    f("axis", a.axis), f("shape", a.shape), f("num_samples", a.num_samples);
  }
};

/// The largest of logits + Gumbel noise: axes that `shape` has in front of those of the logits are
/// further draws, each with its own noise.
Tensor categorical_body(const CategoricalAttrs& a, const Tensors& in) {
  constexpr std::string_view op = "random_categorical";
  check_one_key(op, in[0]);
  const Type& logits = *type_of(in[1]);
  check_kind(op, reals, logits.dtype);
  if (logits.rank() == 0) fail("{}: logits need an axis of classes: {}", op, logits);
  int axis = normal_axis(a.axis, logits.rank(), op);
  if (logits.shape[axis].is(0)) fail("{}: there is no class to choose: {}", op, logits);
  if (a.shape && a.num_samples) fail("{}: give shape or num_samples, not both", op);
  Shape own = without_axes(logits.shape, Axes(axis)), shape = a.shape.value_or(own);
  if (a.num_samples) {
    if (*a.num_samples < 0) fail("{}: num_samples is negative: {}", op, *a.num_samples);
    shape.insert(0, Dim(*a.num_samples));
  }
  check_sizes(op, shape);
  int further = shape.rank() - own.rank();
  if (further < 0 || !can_broadcast(own, shape) || !identical(broadcast(own, shape, op), shape))
    fail("{}: logits without their classes do not broadcast to shape {}: {}", op, shape, logits);
  DType type = to_inexact(logits.dtype);
  Shape noise = shape;
  noise.insert(further + axis, logits.shape[axis]);
  Tensor sum = draw_gumbel(in[0], noise, type) + cast_to(in[1], type);
  Tensor chosen = tn::argmax(sum, Axis(further + axis));
  return a.num_samples ? tn::moveaxis(chosen, Axes(0), Axes(-1)) : chosen;
}

struct MultinomialAttrs {
  int64_t num_samples = 1;
  bool replacement = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("num_samples", a.num_samples, required), f("replacement", a.replacement);
  }
};

/// Fails where weights are known to be no distribution. `draws` of them must be above 0.
void check_weights(std::string_view op, const Tensor& weights, Dim draws) {
  if (weights.shape().elements().is(0)) return;
  check_values(op, "a weight is negative, infinite or NaN", weights,
               tn::isfinite(weights) & (weights >= 0));
  Tensor positive = tn::sum(tn::astype(weights > 0, DType::i64), Axes(-1));
  if (is_known_false(positive >= draws))
    fail("{}: fewer weights above 0 than draws, {}: {}", op, draws, *type_of(weights));
}

/// Without replacement: the places of the largest of log(weights) + Gumbel noise.
Tensor multinomial_body(const MultinomialAttrs& a, const Tensors& in) {
  constexpr std::string_view op = "random_multinomial";
  check_one_key(op, in[0]);
  const Type& weights = *type_of(in[1]);
  check_kind(op, reals, weights.dtype);
  if (weights.rank() == 0) fail("{}: weights need an axis of classes: {}", op, weights);
  if (a.num_samples < 0) fail("{}: num_samples is negative: {}", op, a.num_samples);
  if (!a.replacement && !decide_at_least(weights.shape.back(), a.num_samples))
    fail(Hint{"with `replacement` a class may be drawn several times"},
         "{}: {} samples of {} classes without replacement: {}", op, a.num_samples,
         weights.shape.back(), weights);
  check_weights(op, in[1], a.replacement ? std::min<int64_t>(a.num_samples, 1) : a.num_samples);
  DType type = to_inexact(weights.dtype);
  Tensor logits = tn::log(cast_to(in[1], type));
  if (a.replacement) return tn::random_categorical(in[0], logits, -1, {}, a.num_samples);
  return tn::top_k(draw_gumbel(in[0], weights.shape, type) + logits, a.num_samples, -1).indices;
}

struct RandintAttrs {
  Shape shape;
  DType dtype = DType::i64;
  static constexpr void fields(auto& a, auto&& f) { f("shape", a.shape), f("dtype", a.dtype); }
};

/// Least and largest value of an integer type.
std::pair<__int128, __int128> limits_of(DType type) {
  int bits = static_cast<int>(size_of(type)) * 8;
  __int128 one = 1;
  if (kind_of(type) == Kind::natural) return {0, (one << bits) - 1};
  return {-(one << (bits - 1)), (one << (bits - 1)) - 1};
}

__int128 exact(const Scalar& s) {
  return s.kind == Kind::natural ? static_cast<__int128>(static_cast<uint64_t>(s.integer))
                                 : s.integer;
}

/// high - low, modulo the range of `type`, when both are numbers.
std::optional<uint64_t> known_span(const RandintAttrs& a, const Tensor& low, const Tensor& high) {
  auto from = known_number(low), to = known_number(high);
  if (!from || !to) return {};
  auto [least, largest] = limits_of(a.dtype);
  if (exact(*from) < least || exact(*to) > largest + 1)
    fail("random_randint: [{}, {}) does not fit {}", from->real, to->real, a.dtype);
  if (exact(*from) >= exact(*to))
    fail("random_randint: low must be less than high: {} and {}", from->integer, to->integer);
  return static_cast<uint64_t>(exact(*to) - exact(*from));
}

/// Twice as many bits as the type has, modulo the span, which makes the excess of some values
/// small.
Tensor modulo(const Tensor& key, const Shape& shape, const Tensor& span) {
  Tensors keys = split_key(key, 2);
  Tensor high = tn::random_bits(keys[0], shape, span.dtype());
  Tensor low = tn::random_bits(keys[1], shape, span.dtype());
  int half = static_cast<int>(size_of(span.dtype())) * 4;
  Tensor factor = tn::remainder(make_scalar(int64_t{1} << half, span.dtype(), false), span);
  factor = tn::remainder(factor * factor, span);
  return tn::remainder(tn::remainder(high, span) * factor + tn::remainder(low, span), span);
}

Tensor randint_body(const RandintAttrs& a, const Tensors& in) {
  constexpr std::string_view op = "random_randint";
  check_one_key(op, in[0]);
  check_sizes(op, a.shape);
  for (int k : {1, 2}) check_kind(op, integers, in[static_cast<size_t>(k)].dtype());
  check_kind(op, integers, a.dtype);
  DType work = size_of(a.dtype) < 4 ? DType::i32 : a.dtype;
  DType natural = size_of(work) == 4 ? DType::u32 : DType::u64;
  Tensor low = parameter(op, "low", in[1], a.shape, work), span, offset;
  if (auto known = known_span(a, in[1], in[2])) {
    uint64_t mask = size_of(work) == 4 ? UINT32_MAX : UINT64_MAX;
    span = make_scalar(*known & mask, natural, false);
    if ((*known & mask) == 0)  // every value of the type
      offset = tn::random_bits(split_key(in[0], 2)[1], a.shape, natural);
  } else {
    Tensor high = parameter(op, "high", in[2], a.shape, work);
    span = tn::where(low < high, cast_to(high - low, natural), make_scalar(1, natural, false));
  }
  if (!offset.defined()) offset = modulo(in[0], a.shape, span);
  return cast_to(low + cast_to(offset, work), a.dtype);
}

struct PermutationAttrs {
  Axis axis = 0;
  bool independent = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("axis", a.axis), f("independent", a.independent);
  }
};

/// The most elements that so many rounds shuffle: as JAX counts, 3·log(n) / log(2^32) rounds.
int64_t most_shuffled(int rounds) {
  auto needed = [](int64_t count) {
    return std::ceil(3 * std::log(static_cast<double>(count)) / std::log(UINT32_MAX));
  };
  auto most = static_cast<int64_t>(std::exp(rounds * std::log(UINT32_MAX) / 3));
  while (needed(most) > rounds) --most;
  while (needed(most + 1) <= rounds) ++most;
  return most;
}

/// Sorts by random words, again and again: words may be equal, but hardly every time.
Tensor shuffled(Tensor key, Tensor x, int axis) {
  for (int rounds = 0; !decide_at_least(most_shuffled(rounds), x.shape().elements()); ++rounds) {
    Tensors keys = split_key(key, 2);
    key = keys[0];
    Tensor order = tn::argsort(tn::random_bits(keys[1], x.shape()), axis);
    x = tn::take_along_axis(x, order, axis);
  }
  return x;
}

/// `x` itself, or the numbers below it when it is one.
Tensor population(std::string_view op, const Tensor& x) {
  if (x.rank() > 0) return x;
  auto count = known_number(x);
  if (!count || !is_integer(x.dtype()))
    fail("{}: x must be an integer or have an axis: {}", op, *type_of(x));
  if (count->integer < 0) fail("{}: the number of elements is negative: {}", op, count->integer);
  return tn::arange(count->integer);
}

Tensor permutation_body(const PermutationAttrs& a, const Tensors& in) {
  check_one_key("random_permutation", in[0]);
  Tensor x = population("random_permutation", in[1]);
  int axis = normal_axis(a.axis, x.rank(), "random_permutation");
  if (a.independent || x.rank() == 1) return shuffled(in[0], x, axis);
  return tn::take(x, shuffled(in[0], tn::iota({x.shape()[axis]}), 0), Axis(axis));
}

struct ChoiceAttrs {
  Shape shape;
  bool replace = true;
  Axis axis = 0;
  static constexpr void fields(auto& a, auto&& f) {
    f("shape", a.shape), f("replace", a.replace), f("axis", a.axis);
  }
};

/// Positions of the chosen ones among `n`, as int64 of a.shape.
Tensor chosen(const ChoiceAttrs& a, const Tensor& key, Dim n, const Tensor& p) {
  Dim draws = a.shape.elements();
  if (draws.is(0)) return tn::zeros(a.shape, DType::i64);
  if (!p.defined() && a.replace) {
    DType type = decide_at_least(INT32_MAX, n) ? DType::i32 : DType::i64;
    return randint_body({a.shape, type}, {key, Tensor(0), value_of(n, DType::i64)});
  }
  if (!p.defined())
    return tn::reshape(slice_axis(shuffled(key, tn::iota({n}), 0), 0, 0, draws), a.shape);
  if (!a.replace) {
    Tensor order = tn::top_k(draw_gumbel(key, {n}, p.dtype()) + tn::log(p), draws).indices;
    return tn::reshape(order, a.shape);
  }
  Tensor up_to = tn::cumulative_sum(p, Axis(0));
  Tensor at = tn::take(up_to, n - 1, Axis(0)) * (1.0 - draw_unit(key, a.shape, p.dtype()));
  return tn::searchsorted(up_to, at);
}

Tensor choice_body(const ChoiceAttrs& a, const Tensors& in) {
  constexpr std::string_view op = "random_choice";
  check_one_key(op, in[0]);
  check_sizes(op, a.shape);
  Tensor x = population(op, in[1]), p = in[2];
  int axis = normal_axis(a.axis, x.rank(), op);
  Dim n = x.shape()[axis], draws = a.shape.elements();
  if (n.is(0) && !draws.is(0)) fail("{}: there is nothing to choose from: {}", op, *type_of(x));
  if (!a.replace && !decide_at_least(n, draws))
    fail(Hint{"draw with replacement: replace=True",
              "draw with replacement: choice(x, shape, true)"},
         "{}: {} draws without replacement from {} elements", op, draws, n);
  if (p.defined() && !decide_equal(p.shape(), Shape{n}))
    fail("{}: p needs one probability per element of axis {}, {}: {}", op, axis, n, *type_of(p));
  if (p.defined()) check_weights(op, p, a.replace && !draws.is(0) ? Dim(1) : draws);
  if (p.defined()) p = cast_to(p, to_inexact(p.dtype()));
  return tn::gather(x, {chosen(a, in[0], n, p)}, Axes(axis), 0, "clamp");  // p may have NaN
}

struct DropoutAttrs {
  double p = 0.5;
  static constexpr void fields(auto& a, auto&& f) { f("p", a.p); }
};

Tensor dropout_body(const DropoutAttrs& a, const Tensors& in) {
  check_probability("dropout", a.p);
  check_kind("dropout", inexact, in[0].dtype());
  if (a.p == 0) return in[0];
  Tensor key = in[1].defined() ? in[1] : random::next_key();
  Tensor kept = bernoulli_body({in[0].shape()}, {key, Tensor(1 - a.p)});
  return tn::where(kept, a.p < 1 ? in[0] / (1 - a.p) : in[0], 0.0);
}

}  // namespace

constexpr auto random_bernoulli_def = Composite<BernoulliAttrs>{
    .doc = "true with probability `p`, which broadcasts to `shape`; its own shape by default.",
    .args = {"key", "p"},
    .body = [](const BernoulliAttrs& a, const Tensors& in) -> Tensors {
      return {bernoulli_body(a, in)};
    },
    .samples = {{"u32[2], f32[3]", "", 0, 1}, {"u32[2], f32[3]", "shape=[2,3]", 0, 1}},
};
TN_OP(random_bernoulli);

constexpr auto random_categorical_def = Composite<CategoricalAttrs>{
    .doc =
        "Classes, as int64, drawn with the probabilities softmax(`logits`) along `axis`. The "
        "result has the other axes of the logits; `shape` may have more in front of them, for "
        "more draws, and `num_samples` puts that many draws in a new last axis.",
    .args = {"key", "logits"},
    .body = [](const CategoricalAttrs& a, const Tensors& in) -> Tensors {
      return {categorical_body(a, in)};
    },
    .precision = Precision::full,
    .samples = {{"u32[2], f32[2,5]"},
                {"u32[2], f32[5,2]", "axis=0, shape=[3,2]"},
                {"u32[2], f32[2,5]", "num_samples=4"}},
};
TN_OP(random_categorical);

constexpr auto random_multinomial_def = Composite<MultinomialAttrs>{
    .doc =
        "`num_samples` classes, as int64, drawn with probabilities in proportion to `weights`, "
        "along their last axis; each at most once unless there is `replacement`. Weights are at "
        "least 0, and without replacement `num_samples` of them above 0.",
    .args = {"key", "weights"},
    .body = [](const MultinomialAttrs& a, const Tensors& in) -> Tensors {
      return {multinomial_body(a, in)};
    },
    .precision = Precision::full,
    .samples = {{"u32[2], f32[5]", "num_samples=3", 0.1, 1},
                {"u32[2], f32[2,3]", "num_samples=5, replacement=true", 0.1, 1}},
};
TN_OP(random_multinomial);

constexpr auto random_randint_def = Composite<RandintAttrs>{
    .doc =
        "Integers from `low` on and below `high`, which broadcast to `shape`. Where `high` is not "
        "above `low`, `low`.",
    .args = {"key", "low", "high"},
    .body = [](const RandintAttrs& a, const Tensors& in) -> Tensors {
      return {randint_body(a, in)};
    },
    .samples = {{"u32[2], i32[], i32[3]", "shape=[2,3]", 0, 100},
                {"u32[2], i64[], i64[]", "shape=[4], dtype=u8", 0, 100}},
};
TN_OP(random_randint);

constexpr auto random_permutation_def = Composite<PermutationAttrs>{
    .doc =
        "`x` in random order along `axis`, or every line along it in its own if `independent`. Of "
        "a number n, the numbers below it, as int64.",
    .args = {"key", "x"},
    .body = [](const PermutationAttrs& a, const Tensors& in) -> Tensors {
      return {permutation_body(a, in)};
    },
    .samples = {{"u32[2], f32[7]"},
                {"u32[2], f32[3,4]", "axis=1"},
                {"u32[2], f32[3,4]", "axis=1, independent=true"}},
};
TN_OP(random_permutation);

constexpr auto random_choice_def = Composite<ChoiceAttrs>{
    .doc =
        "Elements drawn from `x` along `axis`, with the probabilities `p` if given; of a number n, "
        "from the numbers below it. `shape` takes the place of the axis. Without `replace` no "
        "element is drawn twice.",
    .args = {"key", "x", "?p"},
    .body = [](const ChoiceAttrs& a, const Tensors& in) -> Tensors { return {choice_body(a, in)}; },
    .samples = {{"u32[2], f32[5]", "shape=[2,3]"},
                {"u32[2], f32[5]", "shape=[3], replace=false"},
                {"u32[2], f32[5,2], f32[5]", "shape=[3]", 0, 1}},
};
TN_OP(random_choice);

constexpr auto dropout_def = Composite<DropoutAttrs>{
    .doc =
        "`x` with elements set to 0 with probability `p` and the others divided by 1 - p. Without "
        "a `key` it takes the next one of the thread's state.",
    .args = {"x", "?key"},
    .body = [](const DropoutAttrs& a, const Tensors& in) -> Tensors {
      return {dropout_body(a, in)};
    },
    .samples = {{"f32[2,3], u32[2]", "p=0.25"}, {"f32[4], u32[2]", "p=0.0"}},
};
TN_OP(dropout);

}  // namespace tn::ops
