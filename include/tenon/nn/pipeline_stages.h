#pragma once
// Pipelines: stages of a model on parts of a mesh.
#include <concepts>
#include <utility>
#include <vector>

#include "tenon/callback.h"
#include "tenon/mesh.h"
#include "tenon/nn/sequential.h"

namespace tn {

/// The module with its tensors on a mesh, or on a part of one.
template <class M>
  requires std::derived_from<M, nn::ModuleBase>
M place(M module, const Mesh& mesh, std::source_location place = std::source_location::current()) {
  nn::TensorMap tensors = module.state_dict(place);
  for (auto& [name, tensor] : tensors) tensor = tn::place(tensor, mesh, place);
  module.update(tensors, place);
  return module;
}

namespace nn {

/// Stages through which a batch goes in microbatches, so that they work on different ones at the
/// same time. Each stage lies where `place` has put it.
///
///     tn::Mesh mesh = tn::make_mesh({{"stage", 2}, {"data", 2}});
///     tn::nn::Pipeline pipe(8, tn::place(tn::nn::Linear(784, 784), mesh.at("stage", 0)),
///                           tn::place(tn::nn::Linear(784, 10), mesh.at("stage", 1)));
class Pipeline : public Module<Pipeline> {
 public:
  std::vector<Layer> stages;
  int64_t microbatches = 1;

  Pipeline() = default;
  template <class... L>
    requires(sizeof...(L) > 0)
  explicit Pipeline(int64_t count, L&&... all) : microbatches(count) {
    stages.reserve(sizeof...(L));
    (stages.emplace_back(std::forward<L>(all)), ...);
  }

  /// The joined result, on the whole mesh.
  Tensor operator()(const Operand& x);
  /// The mean of `f(result, y)` over the microbatches, computed on the last stage. The backward
  /// pass of a microbatch needs no other one. `f` must itself be a mean over its rows for the
  /// result to be one.
  Tensor loss(const Callback<Tensor(const Tensor& result, const Tensor& y)>& f, const Operand& x,
              const Operand& y);
  static void fields(auto& m, auto&& f) {
    f("stages", m.stages), f("microbatches", m.microbatches);
  }
};

}  // namespace nn
}  // namespace tn
