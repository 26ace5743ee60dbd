#pragma once
// What a step of a plan does, for those who print plans in another language.
#include "ir/opdef.h"
#include "ir/place.h"
#include "loop/kernel.h"
#include "runtime/plan.h"

namespace tn {

/// A kernel over the step's buffers. Or a call of the library, whose buffers are its operands, its
/// results and those of the kernel, if there is one: that runs afterwards. Or several steps at
/// once.
struct StepSource {
  std::shared_ptr<const loop::Kernel> kernel = {};
  const OpDef* op = nullptr;
  const Attrs* attrs = nullptr;
  std::vector<TypeRef> in = {}, out = {};
  std::vector<Strided> at = {};  // where the elements of the operands lie; empty: row-major
  struct Op {
    const OpDef* op;
    TypeRef type;  // of its first result
    Loc loc;
  };
  std::vector<Op> ops = {};      // of the graph, computed here; empty: `op` alone
  std::vector<Step> parts = {};  // that were joined
};

}  // namespace tn
