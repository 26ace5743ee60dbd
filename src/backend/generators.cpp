// The code generators of the kinds of device. Apart from backend_list.cpp: the runtime library has
// none.
#include "backend/cpu/codegen/codegen.h"
#include "backend/cuda/codegen/cuda_codegen.h"

namespace tn {

const CodeGenerator& generator_of(const Target& target) {
  const CodeGenerator* const all[] = {&cpu::generator(), &cuda::generator()};  // by DeviceKind
  return *all[static_cast<size_t>(target.kind)];
}

}  // namespace tn
