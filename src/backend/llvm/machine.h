#pragma once
// From LLVM modules to code, for one machine.
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "backend/llvm/llvm_session.h"

namespace tn::codegen {

/// A level of CPUs, or GPUs from a compute capability on: never a model of its own, since code
/// moves between machines.
struct Machine {
  enum class Kind : uint8_t { x86, nvptx } kind = Kind::x86;
  int16_t arch = 0;  // 0 for x86-64-v2, 1 for v3, 2 for v4; 80 for sm_80
};

/// An empty module for a machine.
struct NewModule {
  explicit NewModule(const Machine& machine);
  /// In debug builds: that it is well-formed.
  void verify(std::string_view kernel) const;

  LlvmPtr<llvm::LLVMContext> context{new llvm::LLVMContext};
  LlvmPtr<llvm::Module> module{new llvm::Module("kernel", *context)};
};

/// Data layout and triple of the target.
void prepare_module(llvm::Module& module, const Machine& machine);
/// Runs the short list of passes: the emitters share and hoist by themselves. Of loops whose
/// emitter does not, `hoists` takes out what stays the same.
void optimise(llvm::Module& module, bool hoists = false);
/// An ELF object, or assembly: of GPUs, PTX.
std::string object_code(llvm::Module& module, const Machine& machine);
std::string assembly(llvm::Module& module, const Machine& machine);

}  // namespace tn::codegen
