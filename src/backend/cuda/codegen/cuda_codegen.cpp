#include "backend/cuda/codegen/cuda_codegen.h"

#include <llvm/Support/raw_ostream.h>

#include "backend/cuda/codegen/gpu_emitter.h"
#include "backend/llvm/machine.h"
#include "ir/dim_program.h"

namespace tn::cuda {

using codegen::in_llvm;
using codegen::Machine;

namespace {

struct Emitted : codegen::NewModule {
  using NewModule::NewModule;
  KernelNumbers numbers;
};

Emitted emit(const Schedule& s, const Machine& machine) {
  Emitted out(machine);
  out.numbers.symbols = s.symbols;
  for (Dim room : s.rooms) out.numbers.rooms.push_back(size_program(room, s.symbols));
  for (size_t k = 0; k < s.parts.size(); ++k) {
    Emitter emitter(s, s.parts[k], *out.module, machine);
    out.numbers.entries.push_back(emitter.emit(format("part{}", k)));
  }
  out.verify(s.parts[0].kernel.name);
  codegen::optimise(*out.module, true);
  return out;
}

constexpr Machine machine_of(int16_t arch) { return {Machine::Kind::nvptx, arch}; }

}  // namespace

Generated generate(const Schedule& schedule, int16_t arch) {
  Generated made;
  in_llvm([&] {
    Emitted emitted = emit(schedule, machine_of(arch));
    made.ptx = codegen::assembly(*emitted.module, machine_of(arch));
    made.numbers = std::move(emitted.numbers);
  });
  return made;
}

std::string ir_text(const Schedule& schedule, int16_t arch) {
  std::string text;
  in_llvm([&] { llvm::raw_string_ostream(text) << *emit(schedule, machine_of(arch)).module; });
  return text;
}

std::string simulated_object(const Schedule& schedule, KernelNumbers& numbers) {
  std::string object;
  in_llvm([&] {
    Machine machine{Machine::Kind::x86, 1};  // x86-64-v3
    Emitted emitted = emit(schedule, machine);
    object = codegen::object_code(*emitted.module, machine);
    numbers = std::move(emitted.numbers);
  });
  return object;
}

}  // namespace tn::cuda
