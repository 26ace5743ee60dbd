#include <cmath>

#include "base/error.h"
#include "tenon/model_blocks.h"
#include "tenon/ops.h"
#include "tenon/random.h"

namespace tn::model {
namespace {

/// Uniform between plus and minus 1 / sqrt(the number of weights behind an output): the product of
/// the last axes of the weight; that of a bias is not known from its own shape.
Tensor drawn(const Shape& shape, DType type, const Tensor& key) {
  int64_t inputs = 1;
  for (int axis = 1; axis < shape.rank(); ++axis) inputs *= shape[axis].value();
  double bound = std::pow(static_cast<double>(inputs), -0.5);
  return random::uniform(shape, -bound, bound, type, key);
}

Tensor nothing(const Shape& shape, DType type, const Tensor&) { return zeros(shape, type); }

}  // namespace

Block Linear(int64_t out, const LinearSettings& settings) {
  BlockDef def{
      .kind = "Linear",
      .terminals = {
          {.name = "input", .shape = "... in"},
          {.name = "weight", .role = Role::parameter, .shape = "out in", .initial = drawn}}};
  if (settings.bias)
    def.terminals.push_back(
        {.name = "bias", .role = Role::parameter, .shape = "out", .initial = nothing});
  def.terminals.push_back({.name = "output", .role = Role::output, .shape = "... out"});
  def.sizes.emplace("out", out);
  if (settings.in) def.sizes.emplace("in", *settings.in);
  def.compute = [bias = settings.bias](const BlockCall& call) {
    return Tensors{linear(call.in[0], call.in[1], bias ? call.in[2] : Tensor())};
  };
  return def;
}

}  // namespace tn::model
