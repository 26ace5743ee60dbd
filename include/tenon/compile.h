#pragma once
// compile: a function traced once for every combination of argument types, then run as one plan.
#include <memory>
#include <string>
#include <string_view>

#include "tenon/transforms.h"

namespace tn {

/// A function that runs as a plan. Copies share their plans; calls may come from any thread.
class CompiledFunction {
 public:
  CompiledFunction(Function f, int optimization_level);
  Tensors operator()(const Tensors& args) const;
  /// A stage of the compilation for arguments like these, as text: "graph", "optimized", "loops",
  /// "kernels", "plan", "memory" or "decisions".
  std::string show(std::string_view stage, const Tensors& args) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// `f` compiled when it is first called with tensors of some types, and run from then on without
/// calling it again. Tensors that it closes over are constants. Under a transform, and inside
/// another compiled function, it is a part of what is transformed or compiled.
///
///     auto gelu = tn::compile([](const tn::Tensors& x) {
///       return tn::Tensors{x[0] * (1 + tn::erf(x[0] / std::sqrt(2.f))) / 2};
///     });
///     gelu({x});
///
/// `optimization_level` 0 interprets; 1 generates code after one round of simplification; 2 and
/// above do all that is known.
CompiledFunction compile(Function f, int optimization_level = 3);

}  // namespace tn
