#pragma once
// One call of a function under vmap.
#include "base/function_ref.h"
#include "tenon/transforms.h"

namespace tn {

/// An axis per argument or result; nothing: the same for every example. Empty: axis 0 everywhere.
using BatchAxes = std::vector<Maybe<int>>;

/// `out_axes` is called when the results are known.
Tensors call_mapped(const Function& f, const Tensors& args, const BatchAxes& in_axes,
                    FunctionRef<BatchAxes()> out_axes, const Names& names);

}  // namespace tn
