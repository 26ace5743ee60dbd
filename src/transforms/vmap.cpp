#include "base/error.h"
#include "ir/trace.h"
#include "tenon/ops.h"
#include "tenon/transforms.h"
#include "transforms/sweep.h"

namespace tn {

namespace {

using InAxes = std::vector<Maybe<int>>;

/// Every argument with its batch as axis 0, and how many examples there are.
struct BatchArgs {
  std::vector<Batched> args;
  Dim size = 1;
};

BatchArgs batch_args(const Tensors& args, const InAxes& in_axes) {
  if (!in_axes.empty() && in_axes.size() != args.size())
    fail("vmap: {} in_axes for {} arguments", in_axes.size(), args.size());
  BatchArgs made;
  int first = -1;
  for (size_t i = 0; i < args.size(); ++i) {
    Maybe<int> given = in_axes.empty() ? Maybe<int>(0) : in_axes[i];
    if (!given) {
      made.args.push_back({args[i], false});
      continue;
    }
    if (args[i].rank() == 0)
      fail(Hint{"give it in_axes None to use the same value for every example"},
           "vmap: argument {} has no axis to map over: {}", i, *type_of(args[i]));
    int axis = normal_axis(*given, args[i].rank(), "vmap");
    Dim size = args[i].shape()[axis];
    if (first >= 0 && made.size != size)
      fail("vmap: the mapped axes differ in size: {} (argument {}, {}) and {} (argument {}, {})",
           made.size, first, *type_of(args[static_cast<size_t>(first)]), size, i,
           *type_of(args[i]));
    if (first < 0) first = static_cast<int>(i), made.size = size;
    made.args.push_back({axis ? tn::moveaxis(args[i], Axes(axis), Axes(0)) : args[i], true});
  }
  if (first < 0)
    fail(Hint{"map at least one argument: in_axes=0"}, "vmap: no argument is mapped over");
  return made;
}

Tensor place_batch(const Batched& out, const Maybe<int>& axis, Dim size, size_t i) {
  if (!axis) {
    if (out.batched)
      fail("vmap: result {} differs between examples, so its out_axes cannot be None", i);
    return out.value;
  }
  Tensor value = out.value;
  if (!out.batched) {
    Shape shape = value.shape();
    shape.insert(0, size);
    value = tn::broadcast_to(value, shape);
  }
  int to = normal_axis(*axis, value.rank(), "vmap");
  return to ? tn::moveaxis(value, Axes(0), Axes(to)) : value;
}

}  // namespace

Function vmap(Function f, std::vector<Maybe<int>> in_axes, std::vector<Maybe<int>> out_axes) {
  return [f = std::move(f), in_axes = std::move(in_axes),
          out_axes = std::move(out_axes)](const Tensors& args) {
    BatchArgs given = batch_args(args, in_axes);
    Tensors params, examples = args;
    std::vector<Batched> batches;
    for (size_t i = 0; i < args.size(); ++i) {
      if (!given.args[i].batched) continue;
      Type type = *type_of(given.args[i].value);
      type.shape.erase(0);
      params.push_back(examples[i] = make_param(intern(type.dtype, type.shape)));
      batches.push_back(given.args[i]);
    }
    Trace trace("vmap", Trace::Values::unknown);
    Tensors out = f(examples);
    trace.end();
    if (!out_axes.empty() && out_axes.size() != out.size())
      fail("vmap: {} out_axes for {} results", out_axes.size(), out.size());
    std::vector<Batched> made =
        sweep_batch(tape_of(params, out), std::move(batches), out, given.size);
    Tensors result;
    for (size_t i = 0; i < made.size(); ++i)
      result.push_back(
          place_batch(made[i], out_axes.empty() ? Maybe<int>(0) : out_axes[i], given.size, i));
    return result;
  };
}

}  // namespace tn
