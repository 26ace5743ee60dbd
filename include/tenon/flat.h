#pragma once
// Transforms and control flow on lists of tensors: the core below the typed functions of
// transforms.h and control_flow.h, and below bindings of other languages.
#include <string>
#include <string_view>
#include <vector>

#include "tenon/callback.h"
#include "tenon/shared_ptr.h"
#include "tenon/tensor.h"

namespace tn {

using Function = Callback<Tensors(const Tensors&)>;

namespace flat {

/// Names for errors: of the transform, its arguments and results. Numbers by default.
struct Names {
  std::string_view transform;
  Callback<std::string(size_t)> argument = {}, result = {};
};

/// The results of a function and its reverse derivative: called with cotangents of the results
/// (null: zero), it returns those of the arguments.
class Pullback {
 public:
  /// The arguments at `argnums` are `lists` lists in a row whose tensors stand for one another, and
  /// have the same shapes: each gets the cotangent of all.
  Pullback(const Function& f, const Tensors& primals, const std::vector<int>& argnums,
           Names names = {"vjp"}, size_t lists = 1);
  const Tensors& outputs() const { return outputs_; }
  Tensors operator()(const Tensors& cotangents) const;

 private:
  struct Record;
  SharedPtr<const Record> record_;
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
Function grad(Function f, std::vector<int> argnums = {0});
/// The results of `f` with the gradient of the first. `lists` is that of a Pullback.
Callback<Derivatives(const Tensors&)> value_and_grad(Function f, std::vector<int> argnums = {0},
                                                     Names names = {"grad"}, size_t lists = 1);

/// The Jacobians of the results of `f` with respect to the arguments at `argnums`, each of the
/// shape of the result followed by that of the argument: all of the first result, then of the
/// second. `jacrev` works row by row, `jacfwd` column by column; use the one with fewer of them.
Function jacrev(Function f, std::vector<int> argnums = {0}, Names names = {"jacrev"});
Function jacfwd(Function f, std::vector<int> argnums = {0}, Names names = {"jacfwd"});
/// The second derivatives of `f`, which returns one scalar.
Function hessian(Function f, std::vector<int> argnums = {0});

/// `f` applied along axis `in_axes[i]` of each argument, and its results stacked along `out_axes`.
/// No value: all examples share the argument. Empty lists mean axis 0 everywhere.
using BatchAxes = std::vector<Maybe<int>>;
Function vmap(Function f, BatchAxes in_axes = {}, BatchAxes out_axes = {});
/// One such call. `out_axes` is called once the results are known.
Tensors call_mapped(const Function& f, const Tensors& args, const BatchAxes& in_axes,
                    const Callback<BatchAxes()>& out_axes, const Names& names);

/// `f`, whose derivatives keep only the arguments and rematerialise intermediate values. Values and
/// gradients have the same bits as those of `f`, except that gradients of an argument of several
/// such calls may be added in another order. With several `segments` the values at their boundaries
/// are kept too, and one segment at a time is rematerialised.
Function checkpoint(Function f, int segments = 1);

/// User-defined rules for differentiating and batching a function. Each is optional.
struct CustomRules {
  /// Cotangents of the arguments (null: zero), from those of the results (null: integers).
  Callback<Tensors(const Tensors& primals, const Tensors& cotangents, const Tensors& outputs)> vjp;
  /// Tangents of the results (null: zero), from those of the arguments (null: integers).
  Callback<Tensors(const Tensors& primals, const Tensors& tangents)> jvp;
  /// Results on a batch of `size`, and which of them are batched: arguments in `batched`, and such
  /// results, have the batch as axis 0.
  Callback<std::pair<Tensors, std::vector<bool>>(const Tensors& args,
                                                 const std::vector<bool>& batched, int64_t size)>
      vmap;
  /// Names of the last arguments, which are constants: rules do not receive them.
  std::vector<std::string> constants = {};
};
/// `f` with user-defined rules. Missing rules are derived from the others, or from `f` itself.
Function custom_function(Function f, CustomRules rules);

/// `then(operands)` where `pred`, one bool, is true, `otherwise(operands)` where it is false. Both
/// are traced and must return the same types; one of them runs.
Tensors cond(const Operand& pred, const Function& then, const Function& otherwise,
             const Tensors& operands);

/// The carry after `body`, which takes and returns it, has been applied as long as `go_on` of it is
/// true. Types of the carry stay the same.
Tensors while_loop(const Function& go_on, const Function& body, const Tensors& carry);

struct ScanResult {
  Tensors carry, ys;
};
/// From the carry and the current slice of every x to the new carry and the slices of every y.
using ScanBody = Callback<ScanResult(const Tensors& carry, const Tensors& x)>;

/// Goes over the first axis of `xs` (from the end when `reverse`): the final carry, and ys stacked
/// along their first axis. Without xs `length` says how often.
ScanResult scan(const ScanBody& body, const Tensors& carry, const Tensors& xs,
                Maybe<int64_t> length = {}, bool reverse = false);

/// Sets the place that errors report, that of the user's call, until the end of the scope.
class Place {
 public:
  explicit Place(const std::source_location& at);
  ~Place();
  Place(const Place&) = delete;

 private:
  uint64_t outer_;
};

}  // namespace flat
}  // namespace tn
