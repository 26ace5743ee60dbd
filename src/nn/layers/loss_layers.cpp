// Losses as layers, with PyTorch's names and defaults. Most are an op with its attributes.
#include "ir/sizes.h"
#include "nn/layer_decls.h"
#include "ops/loss_parts.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/nn/functions.h"
#include "tenon/operators.h"

namespace tn::nn::layers {
namespace {

using ops::Reduce;

/// `kEach`: of a loss for each element, otherwise for each example.
template <class A, bool kEach = true>
std::string_view shape_of_loss(const A& a) {
  if (a.reduction != Reduce::none) return "";
  return kEach ? "..." : "*";
}

/// The parameters of layers that wrap a single op.
struct LossOf {
  std::string_view name, doc, example, options;
  List<InputDef, 5> inputs = {{"input", "..."}, {"target", "..."}};
};

template <const OpDef& kOp, class A, bool kEach = true>
constexpr LayerDef loss_layer(const LossOf& of) {
  return Layer<A>{
      .name = of.name,
      .doc = of.doc,
      .example = of.example,
      .module = "loss_modules",
      .keyword_only = of.options,
      .inputs = of.inputs,
      .output = "",
      .result = ops::rule<shape_of_loss<A, kEach>>,
      .forward =
          [](const A& a, const LayerCall& call) {
            A given = a;
            return call_with(kOp, call.in, &given)[0];
          },
  };
}

using BceAttrs = ops::LossAttrs<Reduce::mean>;

Tensor bce_with_logits(const BceAttrs& a, const LayerCall& call) {
  const Tensor &x = call.in[0], &target = call.in[1], &pos_weight = call.held[1];
  if (!pos_weight.defined())
    return binary_cross_entropy(x, target, call.held[0], true,
                                ops::kReduces[static_cast<size_t>(a.reduction)]);
  ops::check_alike(call.layer, {{"input", x}, {"target", target}});
  Tensor loss = pos_weight * target * softplus(-x) + (1 - target) * softplus(x);
  return ops::reduced(ops::weighted(call.layer, loss, call.held[0]), a.reduction);
}

enum class KlReduce : uint8_t { none, mean, sum, batchmean };
constexpr std::string_view kKlReduces[] = {"none", "mean", "sum", "batchmean"};
constexpr ChoiceNames choice_names(KlReduce) { return kKlReduces; }

struct KlDivAttrs {
  bool log_target = false;
  KlReduce reduction = KlReduce::mean;
  static constexpr void fields(auto& a, auto&& f) {
    f("log_target", a.log_target), f("reduction", a.reduction);
  }
};

Tensor kl_div(const KlDivAttrs& a, const LayerCall& call) {
  const Tensor &x = call.in[0], &target = call.in[1];
  ops::check_alike(call.layer, {{"input", x}, {"target", target}});
  Tensor p = a.log_target ? exp(target) : target;
  Tensor log_p = a.log_target ? target : log(where(greater(target, 0), target, 1));
  // Probability 0 contributes 0, although its log is -inf.
  Tensor loss = p * where(greater(p, 0), log_p - x, 0);
  if (a.reduction == KlReduce::batchmean) return ops::over_count(sum(loss), x.shape()[0]);
  return ops::reduced(loss, static_cast<Reduce>(a.reduction));
}

struct ClassAttrs {
  int64_t ignore_index = -100;
  Reduce reduction = Reduce::mean;
  Maybe<Axis> axis;
  static constexpr void fields(auto& a, auto&& f) {
    f("ignore_index", a.ignore_index), f("reduction", a.reduction), f("axis", a.axis);
  }
};

struct SmoothClassAttrs {
  double label_smoothing = 0;
  int64_t ignore_index = -100;
  Reduce reduction = Reduce::mean;
  Maybe<Axis> axis;
  static constexpr void fields(auto& a, auto&& f) {
    f("label_smoothing", a.label_smoothing), f("ignore_index", a.ignore_index);
    f("reduction", a.reduction), f("axis", a.axis);
  }
};

/// Where the classes are: PyTorch has them after the axis of examples, if there is one.
template <class A>
int class_axis(const A& a, const LayerCall& call) {
  int rank = call.in[0].rank();
  if (rank == 0)
    fail("{}: expected an axis of classes, given {}", call.layer, *type_of(call.in[0]));
  if (a.axis) return normal_axis(a.axis.value, rank, call.layer);
  const Shape &x = call.in[0].shape(), &target = call.in[1].shape();
  // The loss makes the first comparison, too: shapes that fit get no further guards.
  if (rank > 2 && !decide_equal(target, ops::without_axes(x, Axes(1))) &&
      decide_equal(target, ops::without_axes(x, Axes(rank - 1))))
    fail(Hint{format("for classes along the last axis: {}(axis=-1)", call.layer)},
         "{}: classes are along axis 1: input {} and target {}", call.layer, *type_of(call.in[0]),
         *type_of(call.in[1]));
  return std::min(1, rank - 1);
}

/// Shapes of which a model knows something: classes along the last axis or after the examples.
template <class A>
std::string_view logits_shape(const void* attrs) {
  const Maybe<Axis>& axis = static_cast<const A*>(attrs)->axis;
  if (!axis) return "...";
  return axis.value.i == -1 ? "... classes" : axis.value.i == 1 ? "n classes ..." : "...";
}
template <class A>
std::string_view classes_shape(const void* attrs) {
  const Maybe<Axis>& axis = static_cast<const A*>(attrs)->axis;
  if (!axis) return "*";
  return axis.value.i == -1 ? "..." : axis.value.i == 1 ? "n ..." : "*";
}
template <class A>
std::string_view class_loss_shape(const A& a) {
  return a.reduction == Reduce::none ? classes_shape<A>(&a) : "";
}

/// Minus the log probabilities of the targets, times the weights of their classes.
Tensor weighted_loss(const SmoothClassAttrs& a, const LayerCall& call, const Tensor& log_p,
                     int axis) {
  Tensor target = call.in[1];
  const Tensor& weight = call.held[0];
  Dim classes = log_p.shape()[axis];
  if (weight.rank() != 1 || !decide_equal(weight.shape()[0], classes))
    fail("{}: weight must be one number for each of {} classes, not {}", call.layer, classes,
         *type_of(weight));
  Shape along{-1};
  for (int i = axis + 1; i < log_p.rank(); ++i) along.push_back(1);
  Tensor weighted = log_p * reshape(weight, along);
  double smoothing = a.label_smoothing;
  if (decide_equal(target.shape(), log_p.shape())) {
    Tensor smooth = (1 - smoothing) * target + ops::share_of(smoothing, classes, target.dtype());
    return ops::reduced(-sum(weighted * smooth, Axes(axis)), a.reduction);
  }
  Tensor counted = not_equal(target, a.ignore_index);
  target = where(counted, target, 0);
  Tensor loss = (1 - smoothing) * nll_loss(weighted, target, axis);
  if (smoothing != 0)
    loss = loss - ops::share_of(smoothing, classes, loss.dtype()) * sum(weighted, Axes(axis));
  loss = where(counted, loss, 0);
  if (a.reduction != Reduce::mean) return ops::reduced(loss, a.reduction);
  return sum(loss) / sum(where(counted, take(weight, target), 0));
}

Tensor cross_entropy_forward(const SmoothClassAttrs& a, const LayerCall& call) {
  int axis = class_axis(a, call);
  if (call.held[0].defined())
    return weighted_loss(a, call, log_softmax(call.in[0], Axes(axis)), axis);
  return cross_entropy_loss(call.in[0], call.in[1], nullptr, axis, a.label_smoothing,
                            ops::kReduces[static_cast<size_t>(a.reduction)], a.ignore_index);
}

Tensor nll_forward(const ClassAttrs& a, const LayerCall& call) {
  int axis = class_axis(a, call);
  if (call.held[0].defined())
    return weighted_loss({0.0, a.ignore_index, a.reduction, a.axis}, call, call.in[0], axis);
  return nll_loss(call.in[0], call.in[1], axis, ops::kReduces[static_cast<size_t>(a.reduction)],
                  a.ignore_index);
}

}  // namespace

constinit const LayerDef BCELoss = Layer<BceAttrs>{
    .name = "BCELoss",
    .doc =
        "Minus the log of the probability of targets 0 and 1 (or between).\n\n"
        "`input` is the probabilities of 1. `weight` multiplies the losses.",
    .example = R"(>>> tn.nn.BCELoss()(tn.array([0.5]), tn.array([1.0]))
tensor(0.6931472, dtype=float32)
)",
    .module = "loss_modules",
    .keyword_only = "reduction",
    .tensors = {{"weight", "*", nullptr}},
    .inputs = {{"input", "..."}, {"target", "..."}},
    .output = "",
    .result = ops::rule<shape_of_loss<BceAttrs>>,
    .forward =
        [](const BceAttrs& a, const LayerCall& call) {
          return binary_cross_entropy(call.in[0], call.in[1], call.held[0], false,
                                      ops::kReduces[static_cast<size_t>(a.reduction)]);
        },
};

constinit const LayerDef BCEWithLogitsLoss = Layer<BceAttrs>{
    .name = "BCEWithLogitsLoss",
    .doc =
        "`BCELoss` of `sigmoid(input)`.\n\n"
        "`pos_weight` multiplies the losses of targets 1: above 1, fewer of them are missed.",
    .example = R"(>>> tn.nn.BCEWithLogitsLoss()(tn.array([0.0]), tn.array([1.0]))
tensor(0.6931472, dtype=float32)
)",
    .module = "loss_modules",
    .keyword_only = "reduction",
    .tensors = {{"weight", "*", nullptr}, {"pos_weight", "*", nullptr}},
    .inputs = {{"input", "..."}, {"target", "..."}},
    .output = "",
    .result = ops::rule<shape_of_loss<BceAttrs>>,
    .forward = ops::rule<bce_with_logits>,
};

constinit const LayerDef CrossEntropyLoss = Layer<SmoothClassAttrs>{
    .name = "CrossEntropyLoss",
    .doc =
        "Minus the log of the probability that `softmax(input)` gives the targets.\n\n"
        "They are classes, or probabilities like `input`. Classes are along axis 1 of `input`, "
        "along its only one, or along `axis`. `weight` is one number for each class; the mean "
        "is that of weighted losses. Targets `ignore_index` do not count.",
    .example = R"(>>> tn.nn.CrossEntropyLoss()(tn.array([[2.0, 0.0], [0.0, 0.0]]), tn.array([0, 1]))
tensor(0.41003764, dtype=float32)
)",
    .module = "loss_modules",
    .keyword_only = "label_smoothing ignore_index reduction axis",
    .tensors = {{"weight", "classes", nullptr}},
    .inputs = {{.name = "input", .shape_of = logits_shape<SmoothClassAttrs>},
               {.name = "target",
                .usual = DType::i64,
                .shape_of = classes_shape<SmoothClassAttrs>}},
    .output = "",
    .result = ops::rule<class_loss_shape<SmoothClassAttrs>>,
    .forward = ops::rule<cross_entropy_forward>,
};

constinit const LayerDef NLLLoss = Layer<ClassAttrs>{
    .name = "NLLLoss",
    .doc =
        "Minus the log probability, in `input`, of the target classes.\n\n"
        "Its arguments are those of `CrossEntropyLoss`, whose `input` is not normalized.",
    .example = R"(>>> tn.nn.NLLLoss()(tn.log(tn.array([[0.25, 0.75]])), tn.array([1]))
tensor(0.28768206, dtype=float32)
)",
    .module = "loss_modules",
    .keyword_only = "ignore_index reduction axis",
    .tensors = {{"weight", "classes", nullptr}},
    .inputs = {{.name = "input", .shape_of = logits_shape<ClassAttrs>},
               {.name = "target", .usual = DType::i64, .shape_of = classes_shape<ClassAttrs>}},
    .output = "",
    .result = ops::rule<class_loss_shape<ClassAttrs>>,
    .forward = ops::rule<nll_forward>,
};

constinit const LayerDef KLDivLoss = Layer<KlDivAttrs>{
    .name = "KLDivLoss",
    .doc =
        "`target * (log(target) - input)`, where `input` is log probabilities.\n\n"
        "So is `target` with `log_target`. The mean is that of all elements; that of examples "
        "is the reduction \"batchmean\".",
    .example =
        R"(>>> tn.nn.KLDivLoss(reduction="sum")(tn.log(tn.array([0.5, 0.5])), tn.array([1.0, 0.0]))
tensor(0.6931472, dtype=float32)
)",
    .module = "loss_modules",
    .keyword_only = "log_target reduction",
    .inputs = {{"input", "..."}, {"target", "..."}},
    .output = "",
    .result = [](const KlDivAttrs& a) -> std::string_view {
      return a.reduction == KlReduce::none ? "..." : "";
    },
    .forward = ops::rule<kl_div>,
};

constinit const LayerDef GaussianNLLLoss = loss_layer<ops::gaussian_nll_loss, ops::GaussianAttrs>({
    .name = "GaussianNLLLoss",
    .doc = "Minus the log density of `target` for normal variables with means `input`.\n\n"
           "`var` is their variances, taken as at least `eps`; the constant term is there when "
           "`full`.",
    .example = R"(>>> tn.nn.GaussianNLLLoss()(tn.array([1.0]), tn.array([3.0]), tn.array([1.0]))
tensor(2., dtype=float32)
)",
    .options = "full eps reduction",
    .inputs = {{"input", "..."}, {"target", "..."}, {"var", "..."}},
});

constinit const LayerDef HuberLoss = loss_layer<ops::huber_loss, ops::HuberAttrs<Reduce::mean>>({
    .name = "HuberLoss",
    .doc = "Half the squared difference up to `delta`, and from there on along its tangent.",
    .example = R"(>>> tn.nn.HuberLoss(delta=0.5)(tn.array([0.0, 3.0]), tn.array([0.0, 0.0]))
tensor(0.6875, dtype=float32)
)",
    .options = "delta reduction",
});

constinit const LayerDef L1Loss = loss_layer<ops::l1_loss, ops::LossAttrs<Reduce::mean>>({
    .name = "L1Loss",
    .doc = "The absolute differences.",
    .example = R"(>>> tn.nn.L1Loss()(tn.array([0.0, 3.0]), tn.array([0.0, 0.0]))
tensor(1.5, dtype=float32)
)",
    .options = "reduction",
});

constinit const LayerDef MSELoss = loss_layer<ops::mse_loss, ops::LossAttrs<Reduce::mean>>({
    .name = "MSELoss",
    .doc = "The squared differences.",
    .example = R"(>>> tn.nn.MSELoss()(tn.array([0.0, 3.0]), tn.array([0.0, 0.0]))
tensor(4.5, dtype=float32)
)",
    .options = "reduction",
});

constinit const LayerDef MarginRankingLoss =
    loss_layer<ops::margin_ranking_loss, ops::MarginAttrs<Reduce::mean>>({
        .name = "MarginRankingLoss",
        .doc = "`max(0, margin - target * (input1 - input2))`.\n\n"
               "A target is 1 where the first input should be the larger one, and -1 otherwise.",
        .example = R"(>>> loss = tn.nn.MarginRankingLoss(margin=0.5)
>>> loss(tn.array([1.0]), tn.array([0.75]), tn.array([1.0]))
tensor(0.25, dtype=float32)
)",
        .options = "margin reduction",
        .inputs = {{"input1", "..."}, {"input2", "..."}, {"target", "..."}},
    });

constinit const LayerDef SmoothL1Loss = loss_layer<ops::smooth_l1_loss, ops::SmoothL1Attrs>({
    .name = "SmoothL1Loss",
    .doc = "`HuberLoss` with `delta=beta`, divided by `beta`: smooth around 0.",
    .example = R"(>>> tn.nn.SmoothL1Loss()(tn.array([0.0, 3.0]), tn.array([0.0, 0.0]))
tensor(1.25, dtype=float32)
)",
    .options = "beta reduction",
});

constinit const LayerDef TripletMarginLoss =
    loss_layer<ops::triplet_loss, ops::TripletAttrs<Reduce::mean>, false>({
        .name = "TripletMarginLoss",
        .doc = "`max(0, d(anchor, positive) - d(anchor, negative) + margin)`.\n\n"
               "`d(x, y)` is the norm of order `p` of `x - y + eps` along `axis`.",
        .example = R"(>>> x, near, far = tn.zeros((1, 3)), tn.full((1, 3), 0.01), tn.ones((1, 3))
>>> tn.nn.TripletMarginLoss()(x, near, far).item()
0.0
)",
        .options = "axis p margin eps reduction",
        .inputs = {{"anchor", "..."}, {"positive", "..."}, {"negative", "..."}},
    });

}  // namespace tn::nn::layers
