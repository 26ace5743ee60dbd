// Attention and rotary positions.
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ir/body.h"
#include "ir/rewrite.h"
#include "ir/sizes.h"
#include "ops/contract.h"
#include "ops/families.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "plan/library.h"
#include "plan/target.h"
#include "runtime/device.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

constexpr std::string_view kAttention = "scaled_dot_product_attention";
constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// The sizes of an attention: leading axes, key heads, query heads per key head, queries, keys.
struct Sizes {
  Shape lead, heads;  // heads: key heads and group, empty for matrices without heads
  Dim queries, keys, depth, out_depth;

  Sizes(const Type& q, const Type& k, const Type& v) {
    int r = q.rank();
    for (int i = 0; i < r - 3; ++i) lead.push_back(q.shape[i]);
    if (r > 2)
      heads = {k.shape[r - 3],
               k.shape[r - 3].is(0) ? Dim(0) : floor_div(q.shape[r - 3], k.shape[r - 3])};
    queries = q.shape[r - 2], depth = q.shape[r - 1];
    keys = k.shape[r - 2], out_depth = v.shape[r - 1];
  }
  /// Leading axes, then the query heads in one axis or in two, then rows and columns.
  Shape merged(Dim rows, Dim columns) const {
    Shape out = lead;
    if (!heads.empty()) out.push_back(heads[0] * heads[1]);
    out.push_back(rows), out.push_back(columns);
    return out;
  }
  Shape split(Dim rows, Dim columns) const {
    Shape out = lead;
    for (Dim d : heads) out.push_back(d);
    out.push_back(rows), out.push_back(columns);
    return out;
  }
  Labels lead_labels() const {
    Labels out;
    for (int i = 0; i < lead.rank(); ++i) out += static_cast<char>('A' + i);
    return out;
  }
};

void check_operands(const Type& q, const Type& k, const Type& v) {
  int r = q.rank();
  bool ranks = r >= 2 && k.rank() == r && v.rank() == r;
  if (!ranks)
    fail("{}: q, k and v need one rank, 2 or more, [..., heads, length, depth]: {}, {} and {}",
         kAttention, q, k, v);
  if (!decide_equal(q.shape[r - 1], k.shape[r - 1]))
    fail("{}: depths differ: {} (q {}) and {} (k {})", kAttention, q.shape[r - 1], q,
         k.shape[r - 1], k);
  if (!decide_equal(k.shape[r - 2], v.shape[r - 2]))
    fail("{}: keys and values differ in number: {} (k {}) and {} (v {})", kAttention,
         k.shape[r - 2], k, v.shape[r - 2], v);
  for (int i = 0; i < r - 2; ++i) {
    bool same = decide_equal(k.shape[i], v.shape[i]);
    bool fits = decide_equal(q.shape[i], k.shape[i]);
    if (i == r - 3 && !fits) fits = divided(q.shape[i], k.shape[i]).has_value();
    if (!same || !fits)
      fail("{}: {} do not fit: q {}, k {} and v {}", kAttention,
           i == r - 3 ? "heads" : "leading axes", q, k, v);
  }
}

/// How many keys the first query sees beyond the first.
Tensor causal_offset(const Sizes& s) {
  return make_scalar(Scalar(Offset(s.keys) - s.queries), DType::i64, true);
}

/// The factor of the scores, in their type.
Tensor scale_of(const AttentionAttrs& a, Dim depth, DType type) {
  if (a.scale) return make_scalar(*a.scale, type, false);
  return cast_to(1.0 / tn::sqrt(value_of(depth, DType::f64)), type);
}

void prepare_attention(AttentionAttrs& a, Tensors& in) {
  Tensors operands(in.begin(), in.begin() + 3);
  promote_all(operands, kAttention, floats, true);
  std::copy(operands.begin(), operands.end(), in.begin());
  const Type &q = *type_of(in[0]), &k = *type_of(in[1]), &v = *type_of(in[2]);
  check_operands(q, k, v);
  Sizes sizes(q, k, v);
  if (in.size() > 3 && in[3].defined()) {
    check_kind(kAttention, booleans | floats, in[3].dtype());
    Shape wanted = sizes.merged(sizes.queries, sizes.keys);
    const Shape& mask = in[3].shape();
    if (!can_broadcast(mask, wanted) || !decide_equal(broadcast(mask, wanted, kAttention), wanted))
      fail("{}: the mask does not broadcast to {}: {}", kAttention, wanted, *type_of(in[3]));
  }
  if (a.scale && *a.scale == 0)
    fail(Hint{"name arguments after the mask: the fifth is dropout_p in PyTorch, and scale here"},
         "{}: scale must not be 0", kAttention);
  if (!a.scale && sizes.depth.is_const()) a.scale = a.scale_at(sizes.depth.raw);
}

/// The last query sees every key, each one before it a key less.
Tensor causal_mask(const Sizes& s) {
  Shape shape{s.queries, s.keys};
  Tensor row = tn::iota(shape, 0), column = tn::iota(shape, 1);
  return tn::less_equal(column, row + causal_offset(s));
}

Tensor masked(Tensor scores, const AttentionAttrs& a, const Tensor& mask, const Sizes& sizes) {
  if (mask.defined() && mask.dtype() == DType::b1)
    scores = tn::where(mask, scores, kMinusInfinity);
  else if (mask.defined())
    scores = scores + cast_to(mask, scores.dtype());
  if (a.is_causal) scores = tn::where(causal_mask(sizes), scores, kMinusInfinity);
  return scores;
}

Tensors attention_body(const AttentionAttrs& a, const Tensors& in) {
  Sizes sizes(*type_of(in[0]), *type_of(in[1]), *type_of(in[2]));
  DType type = in[0].dtype(), wide = info(type).compute;
  if (sizes.keys.is(0))
    return {filled(Scalar(0.0), type, sizes.merged(sizes.queries, sizes.out_depth))};
  Labels lead = sizes.lead_labels(), h = sizes.heads.empty() ? "" : "h",
         hg = sizes.heads.empty() ? "" : "hg";
  Tensor q = tn::reshape(cast_to(in[0], wide) * scale_of(a, sizes.depth, wide),
                         sizes.split(sizes.queries, sizes.depth));
  Tensor scores =
      contract(q, lead + hg + "td", cast_to(in[1], wide), lead + h + "sd", lead + hg + "ts");
  scores = tn::reshape(scores, sizes.merged(sizes.queries, sizes.keys));
  scores = masked(scores, a, in.size() > 3 ? in[3] : Tensor(), sizes);
  // A query without keys has only -inf: shifted by 0 its weights are 0, and so is its result.
  Axes last(scores.rank() - 1);
  Tensor largest = tn::stop_gradient(tn::max(scores, last, true));  // any shift gives the same
  Tensor weights = tn::exp(scores - tn::where(tn::isfinite(largest), largest, 0.0));
  Tensor total = tn::sum(weights, last, {}, true);
  total = tn::where(tn::equal(total, 0.0), 1.0, total);
  Tensor mixed =
      contract(tn::reshape(weights, sizes.split(sizes.queries, sizes.keys)), lead + hg + "ts",
               cast_to(in[2], wide), lead + h + "sd", lead + hg + "td");
  mixed = tn::reshape(mixed, sizes.merged(sizes.queries, sizes.out_depth)) / total;
  return {cast_to(mixed, type)};
}

/// Whether the device of the operands computes an op by a kernel of its own.
bool has_kernel(const OpDef& op, const Tensors& in) {
  Device at = in[0].device();
  std::vector<TypeRef> types;
  for (const Tensor& t : in) types.push_back(type_of(t));
  return library_kernel(op, types, at.is_host() ? host_target() : runtime_of(at).target(at));
}

/// The derivative of the body: `out` follows from the other operands.
Tensors gradients_body(const AttentionAttrs& a, const Tensors& in) {
  Tensors operands(in.begin(), in.begin() + 3);
  if (in.size() > 5 && in[5].defined()) operands.push_back(in[5]);
  std::vector<TypeRef> types;
  for (const Tensor& t : operands) types.push_back(type_of(t));
  Mask wanted = {true, true, true};
  wanted.resize(operands.size(), false);
  Graph body = body_graph(scaled_dot_product_attention, &a, types);
  Derived d = vjp_graph(intern(std::move(body)), wanted, {true});
  operands.push_back(in[4]);
  Tensors made = spread(d.on(operands), d.outputs);
  made.resize(3);
  for (size_t k = 0; k < made.size(); ++k)
    if (!made[k].defined()) made[k] = filled(Scalar(0.0), in[k].dtype(), in[k].shape());
  return made;
}

/// One op where the device has a kernel for it, which keeps no scores in memory; else that of the
/// body, which shares its parts with the attention. A mask's cotangent is as large as the scores.
Tensors vjp_attention(const AttentionAttrs& a, const Primal& p, const Tensors& cts) {
  bool has_mask = p.in.size() > 3 && p.in[3].defined();
  if (has_mask && p.wanted[3]) return {};
  Tensors in = {p.in[0], p.in[1], p.in[2], p.out[0], cts[0]};
  if (has_mask) in.push_back(p.in[3]);
  if (!has_kernel(scaled_dot_product_attention_gradients, in)) return {};
  Tensors made = emit_all(scaled_dot_product_attention_gradients, in, &a);
  made.resize(p.in.size());
  for (size_t k = 0; k < made.size(); ++k)
    if (!p.wanted[k]) made[k] = Tensor();
  return made;
}

struct RopeAttrs {
  int64_t dims = 0;
  double base = 10000;
  bool traditional = false;
  double scale = 1;
  int64_t offset = 0;
  static constexpr void fields(auto& a, auto&& f) {
    f("dims", a.dims, required), f("base", a.base), f("traditional", a.traditional);
    f("scale", a.scale), f("offset", a.offset);
  }
};

void prepare_rope(RopeAttrs& a, Tensors& in) {
  promote_all(in, "rope", floats, true);
  const Type& x = *type_of(in[0]);
  if (x.rank() < 2) fail("rope: x needs an axis of positions and one of features: {}", x);
  Dim features = x.shape[x.rank() - 1];
  if (a.dims < 2 || a.dims % 2 || !decide_at_least(features, Dim(a.dims)))
    fail("rope: dims must be even and lie in [2, {}]: {} ({})", features, a.dims, x);
  if (!(a.base > 0)) fail("rope: base must be positive: {}", a.base);
}

Tensors rope_body(const RopeAttrs& a, const Tensors& in) {
  DType type = in[0].dtype(), wide = info(type).compute;
  Tensor x = cast_to(in[0], wide);
  int last = x.rank() - 1;
  int64_t half = a.dims / 2;
  Dim length = x.shape()[last - 1];
  // Feature pair i turns by base^(-i/half) per position.
  Tensor at = (tn::iota({length, 1}, 0, wide) + static_cast<double>(a.offset)) * a.scale;
  Tensor rate =
      tn::exp2(tn::iota({1, half}, 1, wide) * (-std::log2(a.base) / static_cast<double>(half)));
  Tensor angle = at * rate, c = tn::cos(angle), s = tn::sin(angle);
  int64_t step = a.traditional ? 2 : 1, second = a.traditional ? 1 : half;
  Tensor u = slice_axis(x, last, 0, a.traditional ? a.dims : half, step);
  Tensor v = slice_axis(x, last, second, a.dims, step);
  Tensor first = u * c - v * s, other = u * s + v * c;
  if (a.traditional) {
    Shape pairs = first.shape();
    pairs.push_back(1);
    first =
        tn::reshape(tn::concat({tn::reshape(first, pairs), tn::reshape(other, pairs)}, last + 1),
                    with_extent(x.shape(), last, a.dims));
  } else {
    first = tn::concat({first, other}, last);
  }
  Dim features = x.shape()[last];
  if (!decide_equal(features, a.dims))
    first = tn::concat({first, slice_axis(x, last, a.dims, features)}, last);
  return {cast_to(first, type)};
}

}  // namespace

constexpr auto scaled_dot_product_attention_def = Composite<AttentionAttrs>{
    .doc =
        "`softmax(scale * q @ k.T + mask) @ v` for `q` of shape [batch, heads, queries, depth] and "
        "`k`, "
        "`v` of shape [batch, key heads, keys, depth]. Each key head serves heads / key heads "
        "query "
        "heads. `scale` defaults to 1 / sqrt(depth). `mask` broadcasts to [batch, heads, queries, "
        "keys]: "
        "bool keeps where true, floats are added. With `is_causal` the last query sees every key "
        "and each "
        "one before it a key less. A query that sees no key gives 0. float16 and bfloat16 are "
        "computed in "
        "float32 and rounded once.",
    .args = {"q", "k", "v", "?mask"},
    .recorded = true,
    .prepare = rule<prepare_attention>,
    .body = rule<attention_body>,
    .vjp = rule<vjp_attention>,
    .precision = Precision::low,
    .samples = {{"f32[2,4,3,5], f32[2,2,6,5], f32[2,2,6,5], bool[3,6]"},
                {"f32[1,2,3,4], f32[1,2,3,4], f32[1,2,3,2]", "scale=0.5, is_causal=true"},
                {"f32[2,2,3,4], f32[2,1,5,4], f32[2,1,5,4], f32[2,1,3,5]"}},
};
TN_OP(scaled_dot_product_attention);

constexpr auto scaled_dot_product_attention_gradients_def = Composite<AttentionAttrs>{
    .doc =
        "Cotangents of `q`, `k` and `v` of an attention, from its result `out` and the cotangent "
        "`ct` of that. The derivative records it where the device has a kernel for it.",
    .args = {"q", "k", "v", "out", "ct", "?mask"},
    .results = {"q", "k", "v"},
    .recorded = true,
    .surface = false,
    .infer = [](const AttentionAttrs&, Types in) -> TypeList { return {*in[0], *in[1], *in[2]}; },
    .body = rule<gradients_body>,
};
TN_OP(scaled_dot_product_attention_gradients);

constexpr auto rope_def = Composite<RopeAttrs>{
    .doc =
        "Rotary positions: turns pairs of the first `dims` features (last axis) at position p "
        "(last axis "
        "but one) by `(p + offset) * scale * base ** (-2 i / dims)` for pair i. A pair is features "
        "i and "
        "i + dims / 2, or 2 i and 2 i + 1 when `traditional`. The other features stay. float16 and "
        "bfloat16 are computed in float32 and rounded once.",
    .args = {"x"},
    .recorded = true,
    .prepare = rule<prepare_rope>,
    .body = rule<rope_body>,
    .batch = Batch::aligned,
    .samples = {{"f32[2,3,4]", "dims=4"},
                {"f32[2,3,6]", "dims=4, traditional=true, offset=2"},
                {"f32[3,6]", "dims=2, base=100, scale=0.5"}},
};
TN_OP(rope);

}  // namespace tn::ops
