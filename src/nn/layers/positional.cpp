// Positional encodings for sequence models.
#include <cmath>
#include <numbers>

#include "ir/sizes.h"
#include "nn/layer_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::nn::layers {
namespace {

struct RopeAttrs {
  int64_t dims = 0;
  bool traditional = false;
  double base = 10000, scale = 1;
  static constexpr void fields(auto& a, auto&& f) {
    f("dims", a.dims, required), f("traditional", a.traditional), f("base", a.base);
    f("scale", a.scale);
  }
};

struct SinusoidalAttrs {
  int64_t dims = 0;
  double min_freq = 0.0001, max_freq = 1;
  Maybe<double> scale;
  bool cos_first = false, full_turns = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("dims", a.dims, required), f("min_freq", a.min_freq), f("max_freq", a.max_freq);
    f("scale", a.scale), f("cos_first", a.cos_first), f("full_turns", a.full_turns);
  }
};

/// The position of the first query.
struct OffsetOptions {
  int64_t offset = 0;
  static constexpr void fields(auto& a, auto&& f) { f("offset", a.offset); }
};

struct BiasOptions {
  int64_t heads = 0, queries = 0, keys = 0, offset = 0;
  static constexpr void fields(auto& a, auto&& f) {
    f("heads", a.heads, required), f("queries", a.queries, required), f("keys", a.keys, required);
    f("offset", a.offset);
  }
};

template <class A>
void check_even(const A& a, std::string_view layer) {
  check_sizes(layer, {{"dims", a.dims}});
  if (a.dims % 2 != 0) fail("{}: dims must be even, not {}", layer, a.dims);
}

Tensor turn(const RopeAttrs& a, const LayerCall& call) {
  const Tensor& x = call.in[0];
  if (!decide_at_least(x.shape()[x.rank() - 1], a.dims))
    check_shape(call.layer, x, {"...", "positions", a.dims});
  return rope(x, a.dims, a.base, a.traditional, a.scale, call.options_as<OffsetOptions>().offset);
}

void prepare_sinusoidal(SinusoidalAttrs& a, std::string_view layer) {
  check_even(a, layer);
  if (!(a.min_freq > 0 && a.min_freq <= a.max_freq))
    fail("{}: 0 < min_freq <= max_freq must hold: {} and {}", layer, a.min_freq, a.max_freq);
  a.scale = a.scale.value_or(std::sqrt(2 / static_cast<double>(a.dims)));
}

Tensor encode(const SinusoidalAttrs& a, const LayerCall& call) {
  Tensor logs = linspace(std::log(a.max_freq), std::log(a.min_freq), a.dims / 2);
  Tensor frequencies = exp(logs) * (a.full_turns ? 2 * std::numbers::pi : 1);
  Tensor angles = expand_dims(call.in[0], Axes(-1)) * frequencies;
  Tensors parts{sin(angles), cos(angles)};
  if (a.cos_first) std::swap(parts[0], parts[1]);
  return *a.scale * concat(parts, -1);
}

/// Minus the distances times the slopes: [heads, queries, keys].
Tensor distance_bias(Dim heads, Dim queries, Dim keys, int64_t offset) {
  auto up_to = [](Dim size) { return arange(Scalar(Offset(size))); };
  Tensor slopes = pow(2.0, ops::share_of(-8, heads, DType::f32) * (up_to(heads) + 1));
  Tensor distances = abs(expand_dims(up_to(queries), Axes(-1)) + offset - up_to(keys));
  return -reshape(slopes, {-1, 1, 1}) * distances;
}

Tensor add_bias(const NoAttrs&, const LayerCall& call) {
  const Tensor& scores = call.in[0];
  const Shape& s = scores.shape();
  Tensor bias = distance_bias(s[1], s[2], s[3], call.options_as<OffsetOptions>().offset);
  Tensor out = scores + astype(bias, scores.dtype());
  return call.in[1].defined() ? out + call.in[1] : out;
}

}  // namespace

constinit const LayerDef ALiBi = Layer<>{
    .name = "ALiBi",
    .doc =
        "Attention scores minus the distance between query and key times a slope per head.\n\n"
        "Scores are [batch, heads, queries, keys]; the first query is at position `offset` of "
        "the keys. Head i of n has the slope `2 ** (-8 (i + 1) / n)`. `mask` is added if it is "
        "given. `bias` returns the added term, which can also be the mask of "
        "`tn.scaled_dot_product_attention`.",
    .example = R"(>>> tn.nn.ALiBi()(tn.zeros((1, 1, 2, 3))).tolist()
[[[[0.0, -0.00390625, -0.0078125], [-0.00390625, 0.0, -0.00390625]]]]
)",
    .module = "positional",
    .inputs = {{"scores", "batch heads queries keys"},
               {.name = "mask", .optional = true, .last = true}},
    .output = "batch heads queries keys",
    .options = &attr_kind<OffsetOptions>,
    .forward = ops::rule<add_bias>,
    .also = {.name = "bias",
             .doc = "The negative distances times the slopes: [heads, queries, keys].",
             .example = ">>> tn.nn.ALiBi().bias(8, 5, 5).shape\n(8, 5, 5)\n",
             .inputs = {},
             .options = &attr_kind<BiasOptions>,
             .run = [](const void*, const LayerCall& call) -> Tensors {
               const auto& o = call.options_as<BiasOptions>();
               return {distance_bias(o.heads, o.queries, o.keys, o.offset)};
             }},
};

constinit const LayerDef RoPE = Layer<RopeAttrs>{
    .name = "RoPE",
    .doc =
        "Rotary positional encoding: rotates pairs of the first `dims` features by their "
        "position.\n\n"
        "`x` is [..., positions, features]. At position p, pair i is rotated by the angle "
        "`(p + offset) * scale * base ** (-2 i / dims)`. A pair is features i and i + dims / 2, "
        "or 2 i and 2 i + 1 when `traditional`.",
    .example = R"(>>> tn.nn.RoPE(4)(tn.ones((2, 5, 8))).shape
(2, 5, 8)
)",
    .module = "positional",
    .shown = "{dims}",
    .prepare = ops::rule<check_even<RopeAttrs>>,
    .inputs = {{"x", "... positions features"}},
    .output = "... positions features",
    .options = &attr_kind<OffsetOptions>,
    .forward = ops::rule<turn>,
};

constinit const LayerDef SinusoidalPositionalEncoding = Layer<SinusoidalAttrs>{
    .name = "SinusoidalPositionalEncoding",
    .doc =
        "`scale` times the sines, then the cosines, of positions times `dims / 2` "
        "frequencies.\n\n"
        "The frequencies decrease geometrically from `max_freq` to `min_freq`, in radians per "
        "position, or in full turns if `full_turns`. `scale` defaults to sqrt(2 / dims), which "
        "gives encodings of length 1. `cos_first` puts the cosines first.",
    .example = R"(>>> encoding = tn.nn.SinusoidalPositionalEncoding(8)
>>> encoding(tn.arange(5)).shape
(5, 8)
>>> encoding(tn.array(0)).tolist()
[0.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.5, 0.5]
)",
    .module = "positional",
    .shown = "{dims}",
    .prepare = ops::rule<prepare_sinusoidal>,
    .inputs = {{"positions", "...", DType::i64}},
    .output = "... dims",
    .forward = ops::rule<encode>,
};

}  // namespace tn::nn::layers
