#include "tenon/nn/normalization.h"

#include "ir/dim.h"
#include "ir/node.h"
#include "nn/checks.h"
#include "tenon/operators.h"
#include "tenon/ops.h"

namespace tn::nn {
namespace {

/// Weights of 1 and biases of 0; they are null where there are none.
template <class Norm>
void set_affine(Norm& norm, int64_t size, bool has_weight, bool has_bias) {
  if (has_weight) norm.weight = ones({size});
  if (has_bias) norm.bias = zeros({size});
}

/// All axes but that of the channels.
Axes other_axes(const Tensor& x) {
  Axes others{Axis(0)};
  for (int axis = 2; axis < x.rank(); ++axis) others.push_back(axis);
  return others;
}

}  // namespace

LayerNorm::LayerNorm(int64_t dims, double eps, bool affine, bool has_bias) : dims(dims), eps(eps) {
  check_sizes("LayerNorm", {{"dims", dims}});
  set_affine(*this, dims, affine, affine && has_bias);
}

Tensor LayerNorm::operator()(const Operand& x) const {
  return computed(*this, x, [&] {
    check_shape("LayerNorm", x, {"...", dims});
    return tn::layer_norm(x, weight, bias, eps);
  });
}

RMSNorm::RMSNorm(int64_t dims, double eps, bool affine) : dims(dims), eps(eps) {
  check_sizes("RMSNorm", {{"dims", dims}});
  if (affine) weight = ones({dims});
}

Tensor RMSNorm::operator()(const Operand& x) const {
  return computed(*this, x, [&] {
    check_shape("RMSNorm", x, {"...", dims});
    return tn::rms_norm(x, weight, eps);
  });
}

GroupNorm::GroupNorm(int64_t num_groups, int64_t num_channels, double eps, bool affine)
    : num_groups(num_groups), num_channels(num_channels), eps(eps) {
  check_sizes("GroupNorm", {{"num_groups", num_groups}, {"num_channels", num_channels}});
  check_divides("GroupNorm", {"num_groups", num_groups}, {{"num_channels", num_channels}});
  set_affine(*this, num_channels, affine, affine);
}

Tensor GroupNorm::operator()(const Operand& x) const {
  return computed(*this, x, [&] {
    check_shape("GroupNorm", x, {"batch", num_channels, "..."});
    return tn::group_norm(x, weight, bias, num_groups, eps, 1);
  });
}

BatchNorm::BatchNorm(int64_t num_features, const BatchNormSettings& settings)
    : num_features(num_features), settings(settings) {
  check_sizes("BatchNorm", {{"num_features", num_features}});
  set_affine(*this, num_features, settings.affine, settings.affine);
  if (!settings.track_running_stats) return;
  running_mean = zeros({num_features});
  running_var = ones({num_features});
}

Tensor BatchNorm::operator()(const Operand& operand) {
  if (!training || !running_mean) return std::as_const(*this)(operand);
  return computed(*this, operand, [&] {
    Tensor x = checked(operand);
    Dim count = floor_div(x.shape().elements(), num_features);
    if (count == 1)
      fail("BatchNorm: training needs more than one value a channel: {}", *type_of(x));
    Axes others = other_axes(x);
    Tensor mean = tn::mean(x, others), var = tn::var(x, others);
    track(mean, var * count / (count - 1));
    return normalized(x, mean, var);
  });
}

void BatchNorm::track(const Tensor& mean, const Tensor& var) {
  // A loop that never looks at them would keep what they come from: all activations.
  if (!running_mean.node()->traced) tn::eval({running_mean, running_var});
  auto moved = [&](const Tensor& running, const Tensor& now) {
    double share = settings.momentum;
    return astype((1 - share) * running + share * stop_gradient(now), running.dtype());
  };
  running_mean = moved(running_mean, mean);
  running_var = moved(running_var, var);
}

Tensor BatchNorm::operator()(const Operand& operand) const {
  return computed(*this, operand, [&] {
    Tensor x = checked(operand);
    if (training && running_mean)
      fail(Hint{"call it in what is no constant (declare forward without const), or call eval()"},
           "BatchNorm: a constant module cannot be in training, since its statistics move");
    if (running_mean) return normalized(x, running_mean, running_var);
    Axes others = other_axes(x);
    return normalized(x, tn::mean(x, others), tn::var(x, others));
  });
}

Tensor BatchNorm::checked(const Operand& x) const {
  check_shape("BatchNorm", x, {"batch", num_features, "..."});
  return taken(x);
}

Tensor BatchNorm::normalized(const Tensor& x, const Tensor& mean, const Tensor& var) const {
  return tn::batch_norm(x, mean, var, weight, bias, settings.eps, 1);
}

}  // namespace tn::nn
