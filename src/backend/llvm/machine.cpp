#include "backend/llvm/machine.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Pass.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/Transforms/Scalar.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"

extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace tn::codegen {

// PTX of a version that drivers from 525 on take.
static constexpr const char* kPtxVersion = "+ptx80";
// That has this version. Assemblers take its PTX for newer ones too.
static constexpr int kNewestGpu = 90;

static const char* triple(const Machine& machine) {
  return machine.kind == Machine::Kind::x86 ? "x86_64-unknown-linux-gnu" : "nvptx64-nvidia-cuda";
}

static std::string processor(const Machine& machine) {
  static constexpr const char* kLevels[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};
  if (machine.kind == Machine::Kind::x86) return kLevels[machine.arch];
  return format("sm_{}", std::min<int>(machine.arch, kNewestGpu));
}

/// Addresses are hoisted already; rewriting them takes up to 40 % of a compilation.
static void skip_strength_reduction() {
  auto& options = llvm::cl::getRegisteredOptions();
  if (auto found = options.find("disable-lsr"); found != options.end())
    static_cast<llvm::cl::opt<bool>*>(found->second)->setValue(true);
}

static std::unique_ptr<llvm::TargetMachine> make_machine(const Machine& machine) {
  static const bool initialised = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    skip_strength_reduction();
    return true;
  }();
  (void)initialised;
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple(machine), error);
  invariant(target != nullptr, "LLVM has no target {}: {}", triple(machine), error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  const char* features = machine.kind == Machine::Kind::x86 ? "" : kPtxVersion;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple(machine), processor(machine), features, options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
}

/// A machine is used by one thread at a time, and costs too much to make for every kernel. One that
/// an exception left in any state is leaked.
class ThreadMachine {
 public:
  explicit ThreadMachine(const Machine& machine) : machine_(of_thread(machine)) {
    if (!machine_) machine_ = make_machine(machine);
  }
  ~ThreadMachine() {
    if (std::uncaught_exceptions() > outer_) (void)machine_.release();
  }
  ThreadMachine(const ThreadMachine&) = delete;
  llvm::TargetMachine* operator->() const { return machine_.get(); }

 private:
  static std::unique_ptr<llvm::TargetMachine>& of_thread(const Machine& machine) {
    thread_local std::map<std::pair<Machine::Kind, int16_t>, std::unique_ptr<llvm::TargetMachine>>
        machines;
    return machines[{machine.kind, machine.arch}];
  }
  std::unique_ptr<llvm::TargetMachine>& machine_;
  int outer_ = std::uncaught_exceptions();
};

NewModule::NewModule(const Machine& machine) { prepare_module(*module, machine); }

void NewModule::verify([[maybe_unused]] std::string_view kernel) const {
#ifndef NDEBUG
  std::string fault;
  llvm::raw_string_ostream text(fault);
  invariant(!llvm::verifyModule(*module, &text), "kernel {}: {}", kernel, fault);
#endif
}

void prepare_module(llvm::Module& module, const Machine& machine) {
  ThreadMachine made(machine);
  module.setTargetTriple(triple(machine));
  module.setDataLayout(made->createDataLayout());
}

static LlvmPtr<llvm::legacy::PassManager> make_passes() {
  return LlvmPtr<llvm::legacy::PassManager>(new llvm::legacy::PassManager);
}

void optimise(llvm::Module& module, bool hoists) {
  auto passes = make_passes();
  passes->add(llvm::createEarlyCSEPass());
  if (hoists) passes->add(llvm::createLICMPass());
  passes->run(module);
}

static std::string emit(llvm::Module& module, const Machine& machine, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  ThreadMachine made(machine);
  auto passes = make_passes();
  bool refused = made->addPassesToEmitFile(*passes, out, nullptr, type);
  invariant(!refused, "LLVM cannot emit code for {}", triple(machine));
  passes->run(module);
  llvm_has_started();
  return std::string(bytes.begin(), bytes.end());
}

std::string object_code(llvm::Module& module, const Machine& machine) {
  return emit(module, machine, llvm::CodeGenFileType::ObjectFile);
}

std::string assembly(llvm::Module& module, const Machine& machine) {
  return emit(module, machine, llvm::CodeGenFileType::AssemblyFile);
}

}  // namespace tn::codegen
