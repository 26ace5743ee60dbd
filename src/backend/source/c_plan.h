#pragma once
// A plan as C: a header and a source without dependencies.
#include <string>

#include "ir/opdef.h"
#include "runtime/plan.h"

namespace tn::source {

struct CSource {
  std::string header, source;
  std::string constants;  // the bytes that the last pointer of `inputs` has to point to, if any
};

/// `int NAME_run(const void *const *inputs, void *const *outputs, void *arena)`, which runs the
/// plan over NAME_ARENA_BYTES bytes of the caller's, aligned to 64, and returns 0. The steps of the
/// plan must have kept their sources: it was compiled with a report and without bundles. It may
/// take no run-time numbers. `in` are the types of its inputs without the constants. A step that
/// has no form in C is an error that names its op.
CSource c_source(const Plan& plan, Types in, Types out, std::string_view name);

}  // namespace tn::source
