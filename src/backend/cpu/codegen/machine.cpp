#include "backend/cpu/codegen/machine.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Pass.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/Transforms/Scalar.h>

#include "backend/cpu/codegen/llvm_session.h"
#include "base/error.h"

extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
}

namespace tn::cpu {

static constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

// The processor is a level, never the machine's own: code moves between machines.
static const char* processor(CpuLevel level) {
  static constexpr const char* kNames[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};
  return kNames[static_cast<int>(level)];
}

/// Addresses are hoisted already; rewriting them takes up to 40 % of a compilation.
static void skip_strength_reduction() {
  auto& options = llvm::cl::getRegisteredOptions();
  if (auto found = options.find("disable-lsr"); found != options.end())
    static_cast<llvm::cl::opt<bool>*>(found->second)->setValue(true);
}

static std::unique_ptr<llvm::TargetMachine> make_machine(CpuLevel level) {
  static const llvm::Target* target = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    skip_strength_reduction();
    std::string error;
    const llvm::Target* found = llvm::TargetRegistry::lookupTarget(kTriple, error);
    invariant(found != nullptr, "LLVM has no target {}: {}", kTriple, error);
    return found;
  }();
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(kTriple, processor(level), "", options, llvm::Reloc::PIC_,
                                  llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
}

/// A machine is used by one thread at a time, and costs too much to make for every kernel. One that
/// an exception left in any state is leaked.
class ThreadMachine {
 public:
  explicit ThreadMachine(CpuLevel level) : machine_(of_thread(level)) {
    if (!machine_) machine_ = make_machine(level);
  }
  ~ThreadMachine() {
    if (std::uncaught_exceptions() > outer_) (void)machine_.release();
  }
  ThreadMachine(const ThreadMachine&) = delete;
  llvm::TargetMachine* operator->() const { return machine_.get(); }

 private:
  static std::unique_ptr<llvm::TargetMachine>& of_thread(CpuLevel level) {
    thread_local std::unique_ptr<llvm::TargetMachine> machines[3];
    return machines[static_cast<int>(level)];
  }
  std::unique_ptr<llvm::TargetMachine>& machine_;
  int outer_ = std::uncaught_exceptions();
};

void prepare_module(llvm::Module& module, CpuLevel level) {
  ThreadMachine machine(level);
  module.setTargetTriple(kTriple);
  module.setDataLayout(machine->createDataLayout());
}

static LlvmPtr<llvm::legacy::PassManager> make_passes() {
  return LlvmPtr<llvm::legacy::PassManager>(new llvm::legacy::PassManager);
}

// The emitter shares and hoists by itself; what is left is folding.
void optimise(llvm::Module& module, CpuLevel) {
  auto passes = make_passes();
  passes->add(llvm::createEarlyCSEPass());
  passes->run(module);
}

static std::string emit(llvm::Module& module, CpuLevel level, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  ThreadMachine machine(level);
  auto passes = make_passes();
  bool refused = machine->addPassesToEmitFile(*passes, out, nullptr, type);
  invariant(!refused, "LLVM cannot emit code for {}", kTriple);
  passes->run(module);
  llvm_has_started();
  return std::string(bytes.begin(), bytes.end());
}

std::string object_code(llvm::Module& module, CpuLevel level) {
  return emit(module, level, llvm::CodeGenFileType::ObjectFile);
}

std::string assembly(llvm::Module& module, CpuLevel level) {
  return emit(module, level, llvm::CodeGenFileType::AssemblyFile);
}

}  // namespace tn::cpu
