#pragma once
// Transforms: from a function on tensors to another function on tensors. They compose in any order.
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tenon/tensor.h"

namespace tn {

using Function = std::function<Tensors(const Tensors&)>;

/// What errors call the transform, and its arguments and results: numbers when left out.
struct Names {
  std::string_view transform;
  std::function<std::string(size_t)> argument = {}, result = {};
};

/// The results of a function and its derivative, backwards: called with cotangents of the results
/// (null: zero), it gives those of the arguments.
class Pullback {
 public:
  Pullback(const Function& f, const Tensors& primals, const std::vector<int>& argnums,
           Names names = {"vjp"});
  const Tensors& outputs() const { return outputs_; }
  Tensors operator()(const Tensors& cotangents) const;

 private:
  struct Record;
  std::shared_ptr<const Record> record_;
  Tensors outputs_;
};

struct Derivatives {
  Tensors values, derivatives;
};

/// The results of `f` and the cotangents of its arguments, from those of its results.
Derivatives vjp(const Function& f, const Tensors& primals, const Tensors& cotangents);
/// The results of `f` and their tangents, from those of its arguments (null: zero).
Derivatives jvp(const Function& f, const Tensors& primals, const Tensors& tangents,
                const Names& names = {"jvp"});

/// The gradient of `f`, whose first result must be a scalar, with respect to the arguments at
/// `argnums`.
///
///     auto df = tn::grad([](const tn::Tensors& x) { return tn::Tensors{tn::sum(x[0] * x[0])}; });
///     df({tn::array({1.f, 2.f, 3.f})});   // [2, 4, 6]
Function grad(Function f, std::vector<int> argnums = {0});
/// The results of `f` with the gradient of the first.
std::function<Derivatives(const Tensors&)> value_and_grad(Function f,
                                                          std::vector<int> argnums = {0},
                                                          Names names = {"grad"});

/// The Jacobians of the results of `f` with respect to the arguments at `argnums`, each of the
/// shape of the result followed by that of the argument: all of the first result, then of the
/// second. `jacrev` works row by row, `jacfwd` column by column: the fewer, the better.
Function jacrev(Function f, std::vector<int> argnums = {0}, Names names = {"jacrev"});
Function jacfwd(Function f, std::vector<int> argnums = {0}, Names names = {"jacfwd"});
/// The second derivatives of `f`, which returns one scalar.
Function hessian(Function f, std::vector<int> argnums = {0});

/// `f` applied along axis `in_axes[i]` of each argument, and its results stacked along `out_axes`.
/// Nothing: an argument is the same for every example. Empty lists mean axis 0 everywhere.
Function vmap(Function f, std::vector<Maybe<int>> in_axes = {},
              std::vector<Maybe<int>> out_axes = {});

/// `f`, of which a derivative keeps the arguments only: what lies between is computed again when it
/// is needed. Values have the same bits as those of `f`, and so have gradients,
/// but for the order in which those of an argument of several such calls are added up. With several
/// `segments` what passes from one to the next is kept too, and one at a time is computed again.
Function checkpoint(Function f, int segments = 1);

/// How to differentiate and batch a function, from its user. Any of them may be left out.
struct CustomRules {
  /// Cotangents of the arguments (null: zero), from those of the results (null: integers).
  std::function<Tensors(const Tensors& primals, const Tensors& cotangents, const Tensors& outputs)>
      vjp;
  /// Tangents of the results (null: zero), from those of the arguments (null: integers).
  std::function<Tensors(const Tensors& primals, const Tensors& tangents)> jvp;
  /// Results on a batch of `size`, and which of them are batched: arguments in `batched`, and such
  /// results, have the batch as axis 0.
  std::function<std::pair<Tensors, std::vector<bool>>(
      const Tensors& args, const std::vector<bool>& batched, int64_t size)>
      vmap;
  /// Names of the last arguments, which rules are not given: there is no derivative in them.
  std::vector<std::string> constants = {};
};
/// `f` with rules of its own. What is left out follows from the rest, and at last from `f` itself.
Function custom_function(Function f, CustomRules rules);

}  // namespace tn
