#pragma once
// Decisions and loops as ops: they run where values are not known while recording, take constant
// memory, and are recorded once however often they run.
#include "tenon/transforms.h"

namespace tn {

/// `then(operands)` where `pred`, one bool, is true, `otherwise(operands)` where it is false. Both
/// are traced and must return the same types; one of them runs.
///
///     tn::cond(tn::sum(x) > 0, [](const auto& in) { return tn::Tensors{tn::sqrt(in[0])}; },
///              [](const auto& in) { return tn::Tensors{tn::zeros_like(in[0])}; }, {x});
Tensors cond(const Operand& pred, const Function& then, const Function& otherwise,
             const Tensors& operands);

/// The carry after `body`, which takes and returns it, has been applied as long as `go_on` of it is
/// true. Types of the carry stay the same.
Tensors while_loop(const Function& go_on, const Function& body, const Tensors& carry);

struct ScanResult {
  Tensors carry, ys;
};
/// From the carry and the current slice of every x to the new carry and the slices of every y.
using ScanBody = std::function<ScanResult(const Tensors& carry, const Tensors& x)>;

/// Goes over the first axis of `xs` (from the end when `reverse`): the final carry, and ys stacked
/// along their first axis. Without xs `length` says how often.
ScanResult scan(const ScanBody& body, const Tensors& carry, const Tensors& xs,
                Maybe<int64_t> length = {}, bool reverse = false);

}  // namespace tn
