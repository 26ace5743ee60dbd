#include "base/error.h"
#include "ir/interned.h"
#include "ir/sizes.h"
#include "ir/trace.h"
#include "ops/control_flow.h"
#include "ops/shapes.h"
#include "tenon/ops.h"
#include "transforms/names.h"
#include "transforms/sweep.h"

namespace tn::flat {

namespace {

/// Every argument with its batch as axis 0, and how many examples there are.
struct BatchArgs {
  std::vector<Batched> args;
  Dim size = 1;
};

int batch_axis(int axis, const Type& type, const Names& names, NameOf name, size_t i) {
  int rank = type.shape.rank();
  if (axis < -rank || axis >= rank)
    fail(Fault::index, "vmap: axis {} is out of range for {}: {}", axis, name(names, i), type);
  return axis < 0 ? axis + rank : axis;
}

BatchArgs batch_args(const Tensors& args, const BatchAxes& in_axes, const Names& names) {
  if (!in_axes.empty() && in_axes.size() != args.size())
    fail("vmap: {} in_axes for {} arguments", in_axes.size(), args.size());
  BatchArgs made;
  std::optional<size_t> first;
  for (size_t i = 0; i < args.size(); ++i) {
    Maybe<int> given = in_axes.empty() ? Maybe<int>(0) : in_axes[i];
    if (!given) {
      made.args.push_back({args[i], false});
      continue;
    }
    if (args[i].rank() == 0)
      fail(Hint{"give it in_axes None to use the same value for every example",
                "give it the axis tn::none to use the same value for every example"},
           "vmap: {} has no axis to map over: {}", argument_name(names, i), *type_of(args[i]));
    int axis = batch_axis(*given, *type_of(args[i]), names, argument_name, i);
    Dim size = args[i].shape()[axis];
    if (first && !decide_equal(made.size, size))
      fail("vmap: the mapped axes differ in size: {} ({}, {}) and {} ({}, {})", made.size,
           argument_name(names, *first), *type_of(args[*first]), size, argument_name(names, i),
           *type_of(args[i]));
    if (!first) first = i, made.size = size;
    made.args.push_back({axis ? tn::moveaxis(args[i], Axes(axis), Axes(0)) : args[i], true});
  }
  if (!first)
    fail(Hint{"map at least one argument: in_axes=0", "map at least one argument: vmap(f, {0})"},
         "vmap: no argument is mapped over");
  return made;
}

Tensor place_batch(const Batched& out, const Maybe<int>& axis, Dim size, const Names& names,
                   size_t i) {
  if (!axis) {
    if (out.batched)
      fail("vmap: {} differs between examples, so its out_axes cannot be None",
           result_name(names, i));
    return out.value;
  }
  Tensor value = out.batched ? out.value : ops::with_batch(out.value, size);
  int to = batch_axis(*axis, *type_of(value), names, result_name, i);
  return to ? tn::moveaxis(value, Axes(0), Axes(to)) : value;
}

}  // namespace

Tensors call_mapped(const Function& f, const Tensors& args, const BatchAxes& in_axes,
                    const Callback<BatchAxes()>& out_axes, const Names& names) {
  check_given(args, names.transform, "argument");
  BatchArgs given = batch_args(args, in_axes, names);
  Tensors params, examples = args;
  std::vector<Batched> batches;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!given.args[i].batched) continue;
    RecordScope scope;
    TypeRef example = intern(ops::slice_type(*type_of(given.args[i].value)));
    params.push_back(examples[i] = make_param(example));
    batches.push_back(given.args[i]);
  }
  Trace trace(names.transform, Trace::Values::unknown);
  Tensors out = f(examples);
  check_given(out, names.transform, "result");
  trace.end();
  BatchAxes axes = out_axes();
  if (!axes.empty() && axes.size() != out.size())
    fail("vmap: {} out_axes for {} results", axes.size(), out.size());
  size_t results = out.size();
  out.insert(out.end(), trace.effects.begin(), trace.effects.end());
  std::vector<Batched> made =
      sweep_batch(tape_of(params, out), std::move(batches), out, given.size);
  Tensors result, effects;
  for (size_t i = results; i < made.size(); ++i) effects.push_back(made[i].value);
  for (size_t i = 0; i < results; ++i)
    result.push_back(
        place_batch(made[i], axes.empty() ? Maybe<int>(0) : axes[i], given.size, names, i));
  if (!Trace::current() && results) return tied(std::move(result), effects);
  for (const Tensor& done : effects) Trace::perform(done);
  return result;
}

Function vmap(Function f, BatchAxes in_axes, BatchAxes out_axes) {
  return [f = std::move(f), in_axes = std::move(in_axes),
          out_axes = std::move(out_axes)](const Tensors& args) {
    return call_mapped(f, args, in_axes, [&] { return out_axes; }, {"vmap"});
  };
}

}  // namespace tn::flat
