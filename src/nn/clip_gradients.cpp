// Bounds for gradients.
#include <algorithm>

#include "base/error.h"
#include "ir/place.h"
#include "nn/whole_mesh.h"
#include "tenon/backward.h"
#include "tenon/operators.h"
#include "tenon/optim.h"

namespace tn::optim {
namespace {

Tensor norm_of(std::string_view by, const TensorMap& gradients) {
  if (gradients.empty()) fail("{}: there are no gradients; call loss.backward() first", by);
  Tensors squares;
  for (const auto& [name, gradient] : gradients)
    squares.push_back(sum(square(astype(gradient, promote(gradient.dtype(), DType::f32)))));
  auto is_elsewhere = [&](const Tensor& x) { return x.device() != squares[0].device(); };
  if (std::ranges::any_of(squares, is_elsewhere))  // stages of a pipeline
    for (Tensor& x : squares) x = nn::on_whole_mesh(x);
  return sqrt(sum(stack(squares)));
}

void check_bound(std::string_view by, std::string_view name, double bound) {
  if (!(bound >= 0)) fail("{}: {} must be at least 0, not {}", by, name, bound);
}

Clipped clipped(std::string_view by, const TensorMap& gradients, double max_norm) {
  Tensor norm = norm_of(by, gradients);
  check_bound(by, "max_norm", max_norm);
  Tensor scale = minimum(max_norm / (norm + 1e-6), 1);
  TensorMap scaled;
  for (const auto& [name, gradient] : gradients)
    scaled.emplace(name, astype(gradient * scale.to(gradient.device()), gradient.dtype()));
  return {std::move(scaled), norm};
}

TensorMap gradients_in(const nn::Parameters& parameters) {
  TensorMap all;
  for (const auto& [name, parameter] : parameters)
    if (Tensor gradient = grad(parameter); gradient.defined())
      all.emplace(name, std::move(gradient));
  return all;
}

void put_gradients(const nn::Parameters& parameters, const TensorMap& gradients) {
  for (const auto& [name, parameter] : parameters)
    if (auto found = gradients.find(name); found != gradients.end())
      set_grad(parameter, found->second);
}

}  // namespace

Clipped clip_grad_norm(const TensorMap& gradients, double max_norm, std::source_location place) {
  LocScope at(place);
  return clipped("clip_grad_norm", gradients, max_norm);
}

TensorMap clip_grad_value(const TensorMap& gradients, double clip_value,
                          std::source_location place) {
  LocScope at(place);
  check_bound("clip_grad_value", "clip_value", clip_value);
  TensorMap made;
  for (const auto& [name, gradient] : gradients)
    made.emplace(name, clip(gradient, -clip_value, clip_value));
  return made;
}

Tensor clip_grad_norm_(const nn::Parameters& parameters, double max_norm,
                       std::source_location place) {
  LocScope at(place);
  NoGrad plain;
  auto [gradients, norm] = clipped("clip_grad_norm_", gradients_in(parameters), max_norm);
  put_gradients(parameters, gradients);
  return norm;
}

void clip_grad_value_(const nn::Parameters& parameters, double clip_value,
                      std::source_location place) {
  NoGrad plain;
  put_gradients(parameters, clip_grad_value(gradients_in(parameters), clip_value, place));
}

}  // namespace tn::optim
