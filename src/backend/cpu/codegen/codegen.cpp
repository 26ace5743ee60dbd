#include "backend/cpu/codegen/codegen.h"

#include <llvm/Support/raw_ostream.h>

#include "backend/cpu/block_op_levels.h"
#include "backend/cpu/codegen/emitter.h"
#include "backend/cpu/codegen/kernel_entry.h"
#include "backend/cpu/kernel_bytes.h"
#include "backend/llvm/kernel_cache.h"
#include "backend/llvm/machine.h"
#include "backend/llvm/requests.h"
#include "backend/llvm/source_hash.h"
#include "base/error.h"
#include "ir/dim_program.h"

namespace tn::cpu {

using codegen::in_llvm;
using codegen::KernelCache;
using codegen::llvm_is_usable;
using codegen::source_hash;

namespace {

// Before anything else at load may compute.
[[gnu::constructor(101)]] void install_block_ops() { use_wider_block_ops(); }

codegen::Machine machine_of(CpuLevel level) {
  return {codegen::Machine::Kind::x86, static_cast<int16_t>(level)};
}

/// The LLVM module of a schedule, and the numbers its caller needs.
struct Emitted : codegen::NewModule {
  using NewModule::NewModule;
  KernelNumbers numbers;
};

KernelNumbers numbers_of(const Schedule& s, const Emitter& emitter) {
  KernelNumbers n;
  auto program = [&](Dim size) { return size_program(size, s.symbols); };
  n.symbols = s.symbols;
  n.units = program(s.units * s.chunk_units);
  n.finish_units = program(s.two_phases ? s.points : 0);
  n.points = program(s.points * max(s.extent, 1));
  n.scratch_bytes = program(emitter.scratch_bytes());
  n.partial_bytes = emitter.partial_bytes();
  n.bypassing_bytes = program(emitter.bypassing_bytes());
  // Moving an element takes a tenth of a nanosecond, an operation on a vector about a third.
  n.point_nanoseconds = 0.1 + s.ops * 0.3 / std::max(s.lanes, 1);
  n.divided = !s.ordered && s.form != KernelForm::tile;
  n.argument_types.assign(static_cast<size_t>(s.kernel.arguments), DType::f32);
  for (const loop::Value& v : s.kernel.values)
    if (v.op == loop::Op::argument) n.argument_types[static_cast<size_t>(v.a)] = v.type;
  return n;
}

Emitted emit(const Schedule& s) {
  Emitted out(machine_of(s.level));
  Emitter emitter(s, *out.module);
  emitter.emit();
  out.verify(s.kernel.name);
  out.numbers = numbers_of(s, emitter);
  codegen::optimise(*out.module);
  return out;
}

struct MadeKernel {
  SavedKernel kernel;  // empty: it has no native form
  bool from_disk = false;
};

/// From the disk, or compiled and left there. Where LLVM cannot be used any more, kernels that
/// `may_be_interpreted` are.
MadeKernel make(const std::string& key, const KernelRequest& request, const CodeTarget& target,
                bool may_be_interpreted) {
  std::string entry = key + codegen::orders_of_sizes(request);
  if (SavedKernel saved = load_kernel(entry); saved.code) return {std::move(saved), true};
  std::optional<Schedule> s = make_schedule(request, target);
  if (!s || (may_be_interpreted && !llvm_is_usable())) return {};
  KernelNumbers numbers;
  std::string object;
  in_llvm([&] {
    Emitted emitted = emit(*s);
    object = codegen::object_code(*emitted.module, machine_of(s->level));
    numbers = std::move(emitted.numbers);
  });
  std::string bytes = kernel_to_bytes(numbers, object);
  save_kernel(entry, bytes);
  auto code =
      std::make_shared<const KernelCode>(std::as_bytes(std::span(object)), std::move(numbers));
  return {{std::move(code), std::move(bytes)}};
}

Schedule schedule_for_text(const KernelRequest& request, const CodeTarget& target) {
  std::string why;
  std::optional<Schedule> s = make_schedule(request, target, &why);
  invariant(s.has_value(), "kernel {}: the interpreter runs it: {}", request.kernel->name, why);
  return std::move(*s);
}

}  // namespace

// What a kernel computes and for whom.
static std::string key_of(const KernelRequest& request, const CodeTarget& target) {
  return format("{} {} {} {}", static_cast<int>(request.form), static_cast<int>(target.level),
                target.vector_bits, codegen::text_of(request));
}

std::vector<std::shared_ptr<const tn::KernelCode>> compile_kernels(
    std::span<const KernelRequest> requests, const CodeTarget& target, KernelCounts* counts) {
  std::vector<std::string> keys;
  for (const KernelRequest& request : requests) keys.push_back(key_of(request, target));
  auto make_one = [&](size_t i) -> KernelCache::Made {
    MadeKernel made = make(keys[i], requests[i], target, true);
    return {std::move(made.kernel.code), made.from_disk};
  };
  return KernelCache::shared().get(keys, make_one, counts);
}

std::vector<std::string> compile_to_bytes(std::span<const KernelRequest> requests,
                                          const CodeTarget& target) {
  return codegen::bytes_of_all(requests.size(), [&](size_t i) {
    return make(key_of(requests[i], target), requests[i], target, false).kernel.bytes;
  });
}

std::string why_interpreted(const KernelRequest& request, const CodeTarget& target) {
  std::string why;
  if (make_schedule(request, target, &why) && !llvm_is_usable())
    why = "the code generator ran out of memory when it started";
  return why;
}

KernelCacheStats kernel_cache_stats() { return KernelCache::shared().stats(); }

void clear_kernel_cache() { KernelCache::shared().clear(); }

std::string ir_text(const KernelRequest& request, const CodeTarget& target) {
  Schedule s = schedule_for_text(request, target);
  std::string text;
  in_llvm([&] { llvm::raw_string_ostream(text) << *emit(s).module; });
  return text;
}

std::string assembly_text(const KernelRequest& request, const CodeTarget& target) {
  Schedule s = schedule_for_text(request, target);
  std::string text;
  in_llvm([&] { text = codegen::assembly(*emit(s).module, machine_of(s.level)); });
  return text;
}

namespace {

class LlvmGenerator final : public CodeGenerator {
 public:
  std::vector<std::shared_ptr<const tn::KernelCode>> compile(
      std::span<const KernelRequest> requests, const Target& target,
      KernelCounts* counts) const override {
    return compile_kernels(requests, {level_of(target)}, counts);
  }
  std::vector<std::string> compile_to_bytes(std::span<const KernelRequest> requests,
                                            const Target& target) const override {
    return cpu::compile_to_bytes(requests, {level_of(target)});
  }
  std::string why_interpreted(const KernelRequest& request, const Target& target) const override {
    return cpu::why_interpreted(request, {level_of(target)});
  }
  std::string ir(const KernelRequest& request, const Target& target) const override {
    return ir_text(request, {level_of(target)});
  }
  std::string assembly(const KernelRequest& request, const Target& target) const override {
    return assembly_text(request, {level_of(target)});
  }
  std::string_view version() const override { return source_hash(); }
  KernelCacheStats cache_stats() const override { return kernel_cache_stats(); }
  int64_t waiting() const override { return KernelCache::shared().waiting(); }
};

}  // namespace

const CodeGenerator& generator() {
  static constexpr LlvmGenerator made;
  return made;
}

}  // namespace tn::cpu
