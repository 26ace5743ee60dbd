// Activations as layers.
#include "tenon/nn/activations.h"

#include "nn/layer_decls.h"

namespace tn::nn::layers {
namespace {

struct AlphaAttrs {
  double alpha = 1;
  static constexpr void fields(auto& a, auto&& f) { f("alpha", a.alpha); }
};

struct AxisAttrs {
  Axis axis = -1;
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis); }
};

enum class GeluBy : uint8_t { none, tanh, fast };
constexpr std::string_view kGelus[] = {"none", "tanh", "fast"};
constexpr ChoiceNames choice_names(GeluBy) { return kGelus; }

struct GeluAttrs {
  GeluBy approximate = GeluBy::none;
  static constexpr void fields(auto& a, auto&& f) { f("approximate", a.approximate); }
};

struct ShrinkAttrs {
  double lambd = 0.5;
  static constexpr void fields(auto& a, auto&& f) { f("lambd", a.lambd); }
};

struct BoundsAttrs {
  double min_val = -1, max_val = 1;
  static constexpr void fields(auto& a, auto&& f) {
    f("min_val", a.min_val), f("max_val", a.max_val);
  }
};

struct SlopeAttrs {
  double negative_slope = 0.01;
  static constexpr void fields(auto& a, auto&& f) { f("negative_slope", a.negative_slope); }
};

struct PreluAttrs {
  int64_t num_parameters = 1;
  double init = 0.25;
  bool channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("num_parameters", a.num_parameters), f("init", a.init);
    f("channels_last", a.channels_last);
  }
};

struct StepAttrs {
  double threshold = 0;
  static constexpr void fields(auto& a, auto&& f) { f("threshold", a.threshold); }
};

struct Activation {
  std::string_view name, doc, example, shown = {}, shape = "...";
};

/// A layer that calls `L`, a function of the input and the attributes. `axis` is PyTorch's `dim`.
template <class A, class L>
constexpr LayerDef activation(const Activation& of, L) {
  List<AlsoCalled, 4> also;
  if constexpr (std::is_same_v<A, AxisAttrs>) also = {{"dim", "axis"}};
  return Layer<A>{
      .name = of.name,
      .doc = of.doc,
      .example = of.example,
      .module = "activations",
      .shown = of.shown,
      .also_called = also,
      .inputs = {{"x", of.shape}},
      .output = of.shape,
      .forward = [](const A& a, const LayerCall& call) { return L{}(call.in[0], a); },
  };
}

/// A layer that calls a function of the input alone.
template <Tensor (*kFunction)(const Operand&)>
constexpr LayerDef activation(const Activation& of) {
  return activation<NoAttrs>(of, [](const Tensor& x, const NoAttrs&) { return kFunction(x); });
}

/// One slope is for any input, several are for its channels.
std::string_view prelu_shape(const void* attrs) {
  bool several = static_cast<const PreluAttrs*>(attrs)->num_parameters > 1;
  return several ? "batch num_parameters ..." : "...";
}

Tensor prelu_of_channels(const PreluAttrs& a, const LayerCall& call) {
  const Tensor& x = call.in[0];
  if (a.num_parameters == 1 || a.channels_last) return prelu(x, call.held[0]);
  Shape shape = Shape::filled(x.rank() - 1, 1);
  shape[0] = a.num_parameters;
  return prelu(x, reshape(call.held[0], shape));
}

}  // namespace

constinit const LayerDef CELU =
    activation<AlphaAttrs>({.name = "CELU",
                            .doc = "`x` where it is positive, else `alpha * (exp(x / alpha) - 1)`.",
                            .example = R"(>>> tn.nn.CELU()(tn.array([0.0, 2.0])).tolist()
[0.0, 2.0]
)",
                            .shown = "alpha={alpha}"},
                           [](const Tensor& x, const AlphaAttrs& a) { return celu(x, a.alpha); });

constinit const LayerDef ELU =
    activation<AlphaAttrs>({.name = "ELU",
                            .doc = "`x` where it is positive, else `alpha * (exp(x) - 1)`.",
                            .example = R"(>>> tn.nn.ELU()(tn.array([0.0, 2.0])).tolist()
[0.0, 2.0]
)",
                            .shown = "alpha={alpha}"},
                           [](const Tensor& x, const AlphaAttrs& a) { return elu(x, a.alpha); });

constinit const LayerDef GELU = activation<GeluAttrs>(
    {.name = "GELU",
     .doc = "`x` times the cumulative distribution function of the normal distribution at "
            "`x`.\n\n`approximate` is \"none\", \"tanh\" (`gelu_approx`) or \"fast\" "
            "(`gelu_fast_approx`).",
     .example = R"(>>> tn.nn.GELU()(tn.array([0.0, 100.0])).tolist()
[0.0, 100.0]
)",
     .shown = "approximate='{approximate}'"},
    [](const Tensor& x, const GeluAttrs& a) {
      if (a.approximate == GeluBy::none) return gelu(x);
      return a.approximate == GeluBy::tanh ? gelu_tanh(x) : gelu_fast_approx(x);
    });

constinit const LayerDef GLU = activation<AxisAttrs>(
    {.name = "GLU",
     .doc = "`a * sigmoid(b)`, where `a` and `b` are the halves of `x` along `axis`.",
     .example = R"(>>> tn.nn.GLU()(tn.array([2.0, 0.0])).tolist()
[1.0]
)",
     .shown = "axis={axis}",
     .shape = "*"},
    [](const Tensor& x, const AxisAttrs& a) { return glu(x, a.axis); });

constinit const LayerDef HardShrink = activation<ShrinkAttrs>(
    {.name = "HardShrink",
     .doc = "`x` where its magnitude exceeds `lambd`, else 0.",
     .example = R"(>>> tn.nn.HardShrink()(tn.array([-1.0, 0.5, 2.0])).tolist()
[-1.0, 0.0, 2.0]
)",
     .shown = "lambd={lambd}"},
    [](const Tensor& x, const ShrinkAttrs& a) { return hard_shrink(x, a.lambd); });

constinit const LayerDef Hardswish =
    activation<hardswish>({.name = "Hardswish",
                           .doc = "`x * relu6(x + 3) / 6`.",
                           .example = R"(>>> tn.nn.Hardswish()(tn.array([0.0, 3.0])).tolist()
[0.0, 3.0]
)"});

constinit const LayerDef HardTanh = activation<BoundsAttrs>(
    {.name = "HardTanh",
     .doc = "`x` limited to [`min_val`, `max_val`].",
     .example = R"(>>> tn.nn.HardTanh()(tn.array([-3.0, 0.5])).tolist()
[-1.0, 0.5]
)",
     .shown = "min_val={min_val}, max_val={max_val}"},
    [](const Tensor& x, const BoundsAttrs& a) { return hard_tanh(x, a.min_val, a.max_val); });

constinit const LayerDef LeakyReLU = activation<SlopeAttrs>(
    {.name = "LeakyReLU",
     .doc = "`x`, multiplied by `negative_slope` where it is negative.",
     .example = R"(>>> tn.nn.LeakyReLU(0.25)(tn.array([-2.0, 3.0])).tolist()
[-0.5, 3.0]
)",
     .shown = "negative_slope={negative_slope}"},
    [](const Tensor& x, const SlopeAttrs& a) { return leaky_relu(x, a.negative_slope); });

constinit const LayerDef LogSigmoid =
    activation<log_sigmoid>({.name = "LogSigmoid",
                             .doc = "`log(sigmoid(x))`, without overflow.",
                             .example = R"(>>> tn.nn.LogSigmoid()(tn.array([-200.0])).tolist()
[-200.0]
)"});

constinit const LayerDef LogSoftmax = activation<AxisAttrs>(
    {.name = "LogSoftmax",
     .doc = "`log(softmax(x))` along `axis`, without overflow.",
     .example = R"(>>> tn.nn.LogSoftmax()(tn.array([-200.0, 0.0])).tolist()
[-200.0, 0.0]
)",
     .shown = "axis={axis}"},
    [](const Tensor& x, const AxisAttrs& a) { return log_softmax(x, Axes{a.axis}); });

constinit const LayerDef Mish =
    activation<mish>({.name = "Mish",
                      .doc = "`x * tanh(softplus(x))`.",
                      .example = R"(>>> tn.nn.Mish()(tn.array([0.0, 100.0])).tolist()
[0.0, 100.0]
)"});

constinit const LayerDef PReLU = Layer<PreluAttrs>{
    .name = "PReLU",
    .doc =
        "`x`, multiplied by a learned slope where it is negative.\n\nThere is one slope, or one "
        "per channel of [batch, channels, ...], or with `channels_last` of [batch, ..., channels].",
    .example = R"(>>> tn.nn.PReLU()(tn.array([-2.0, 3.0])).tolist()
[-0.5, 3.0]
)",
    .module = "activations",
    .shown = "{num_parameters}",
    .keyword_only = "channels_last",
    .tensors = {{"weight", "num_parameters",
                 [](const void* attrs, const DrawCall& call) {
                   return full(call.shape, ops::attrs_of<PreluAttrs>(attrs).init, call.type);
                 }}},
    .inputs = {{.name = "x", .shape_of = prelu_shape}},
    .result = [](const PreluAttrs& a) { return prelu_shape(&a); },
    .forward = ops::rule<prelu_of_channels>,
};

constinit const LayerDef ReLU =
    activation<relu>({.name = "ReLU",
                      .doc = "`max(x, 0)`.",
                      .example = R"(>>> tn.nn.ReLU()(tn.array([-2.0, 3.0])).tolist()
[0.0, 3.0]
)"});

constinit const LayerDef ReLU2 =
    activation<relu2>({.name = "ReLU2",
                       .doc = "`relu(x)` squared.",
                       .example = R"(>>> tn.nn.ReLU2()(tn.array([-2.0, 3.0])).tolist()
[0.0, 9.0]
)"});

constinit const LayerDef ReLU6 =
    activation<relu6>({.name = "ReLU6",
                       .doc = "`x` limited to [0, 6].",
                       .example = R"(>>> tn.nn.ReLU6()(tn.array([-2.0, 3.0, 7.0])).tolist()
[0.0, 3.0, 6.0]
)"});

constinit const LayerDef SELU = activation<selu>(
    {.name = "SELU",
     .doc = "A scaled `elu` whose constants preserve mean 0 and variance 1 from layer to layer.",
     .example = R"(>>> tn.nn.SELU()(tn.array([0.0, 1.0])).tolist()
[0.0, 1.0507010221481323]
)"});

constinit const LayerDef Sigmoid =
    activation<sigmoid>({.name = "Sigmoid",
                         .doc = "`1 / (1 + exp(-x))`.",
                         .example = R"(>>> tn.nn.Sigmoid()(tn.array([0.0])).tolist()
[0.5]
)"});

constinit const LayerDef SiLU =
    activation<silu>({.name = "SiLU",
                      .doc = "`x * sigmoid(x)`.",
                      .example = R"(>>> tn.nn.SiLU()(tn.array([0.0, 100.0])).tolist()
[0.0, 100.0]
)"});

constinit const LayerDef Softmax = activation<AxisAttrs>(
    {.name = "Softmax",
     .doc = "`exp(x)`, scaled to sum to 1 along `axis`.",
     .example = R"(>>> tn.nn.Softmax()(tn.array([1.0, 1.0])).tolist()
[0.5, 0.5]
)",
     .shown = "axis={axis}"},
    [](const Tensor& x, const AxisAttrs& a) { return softmax(x, Axes{a.axis}); });

constinit const LayerDef Softmin =
    activation<AxisAttrs>({.name = "Softmin",
                           .doc = "`softmax(-x)` along `axis`.",
                           .example = R"(>>> tn.nn.Softmin()(tn.array([-200.0, 0.0])).tolist()
[1.0, 0.0]
)",
                           .shown = "axis={axis}"},
                          [](const Tensor& x, const AxisAttrs& a) { return softmin(x, a.axis); });

constinit const LayerDef Softplus =
    activation<softplus>({.name = "Softplus",
                          .doc = "`log(1 + exp(x))`, without overflow.",
                          .example = R"(>>> tn.nn.Softplus()(tn.array([-200.0, 200.0])).tolist()
[0.0, 200.0]
)"});

constinit const LayerDef Softshrink = activation<ShrinkAttrs>(
    {.name = "Softshrink",
     .doc = "`x` shrunk towards 0 by `lambd`; 0 where its magnitude is at most `lambd`.",
     .example = R"(>>> tn.nn.Softshrink()(tn.array([-1.0, 0.25])).tolist()
[-0.5, 0.0]
)",
     .shown = "lambd={lambd}"},
    [](const Tensor& x, const ShrinkAttrs& a) { return softshrink(x, a.lambd); });

constinit const LayerDef Softsign =
    activation<softsign>({.name = "Softsign",
                          .doc = "`x / (1 + abs(x))`.",
                          .example = R"(>>> tn.nn.Softsign()(tn.array([-1.0, 3.0])).tolist()
[-0.5, 0.75]
)"});

constinit const LayerDef Step =
    activation<StepAttrs>({.name = "Step",
                           .doc = "1 where `x` exceeds `threshold`, else 0.",
                           .example = R"(>>> tn.nn.Step()(tn.array([-1.0, 2.0])).tolist()
[0.0, 1.0]
)",
                           .shown = "threshold={threshold}"},
                          [](const Tensor& x, const StepAttrs& a) { return step(x, a.threshold); });

constinit const LayerDef Tanh =
    activation<tanh>({.name = "Tanh",
                      .doc = "`tanh(x)`.",
                      .example = R"(>>> tn.nn.Tanh()(tn.array([0.0, 100.0])).tolist()
[0.0, 1.0]
)"});

}  // namespace tn::nn::layers
