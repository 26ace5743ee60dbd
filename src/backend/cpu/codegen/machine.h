#pragma once
// From LLVM modules to object code, for one CPU level.
#include <llvm/IR/Module.h>

#include "backend/cpu/codegen/codegen.h"

namespace tn::cpu {

/// Data layout and triple of the target.
void prepare_module(llvm::Module& module, CpuLevel level);
/// Runs the short list of passes.
void optimise(llvm::Module& module, CpuLevel level);
/// An ELF object, or its assembly.
std::string object_code(llvm::Module& module, CpuLevel level);
std::string assembly(llvm::Module& module, CpuLevel level);

}  // namespace tn::cpu
