#include "backend/cpu/codegen.h"

#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include "backend/cpu/emitter.h"
#include "backend/cpu/kernel_cache.h"
#include "backend/cpu/machine.h"
#include "base/error.h"
#include "runtime/object.h"

namespace tn::cpu {
namespace {

/// The LLVM module of a schedule, and the numbers its caller needs.
struct Emitted {
  std::unique_ptr<llvm::LLVMContext> context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> module;
  NativeKernel kernel;
};

// Nanoseconds of estimated work: less than the first runs on the calling thread, and threads claim
// about as much as the second at a time.
constexpr double kInlineWork = 10000, kChunkWork = 10000;
constexpr int64_t kMostChunks = 64;

/// Moving an element takes a tenth of a nanosecond, an operation on a vector about a third.
double estimated_work(const Schedule& s) {
  double points =
      static_cast<double>(s.points) * static_cast<double>(std::max<int64_t>(s.extent, 1));
  return points * (0.1 + s.ops * 0.3 / std::max(s.lanes, 1));
}

/// From shapes only: results do not depend on the number of threads.
int64_t count_chunks(const Schedule& s) {
  double work = estimated_work(s);
  int64_t units = s.units * s.chunk_units;
  if (s.ordered || s.form == Form::tile || work < kInlineWork || units < 2) return 1;
  int64_t chunks = static_cast<int64_t>(std::min(work / kChunkWork, 1e6)) + 2;
  return std::min({chunks, kMostChunks, units});
}

Emitted emit(const Schedule& s) {
  Emitted out;
  out.module = std::make_unique<llvm::Module>("kernel", *out.context);
  prepare_module(*out.module, s.level);
  Emitter emitter(s, *out.module);
  emitter.emit();
#ifndef NDEBUG
  std::string fault;
  llvm::raw_string_ostream text(fault);
  invariant(!llvm::verifyModule(*out.module, &text), "kernel {}: {}", s.kernel.name, fault);
#endif
  NativeKernel& kernel = out.kernel;
  kernel.units = s.units * s.chunk_units;
  kernel.finish_units = s.two_phases ? s.points : 0;
  kernel.chunks = count_chunks(s);
  kernel.chunk_nanoseconds =
      static_cast<int64_t>(std::min(estimated_work(s) / static_cast<double>(kernel.chunks), 1e15));
  kernel.scratch_bytes = emitter.scratch_bytes();
  kernel.partial_bytes = emitter.partial_bytes();
  kernel.streamed_bytes = emitter.streamed_bytes();
  kernel.argument_types.assign(static_cast<size_t>(s.kernel.arguments), DType::f32);
  for (const loop::Value& v : s.kernel.values)
    if (v.op == loop::Op::argument) kernel.argument_types[static_cast<size_t>(v.a)] = v.type;
  optimise(*out.module, s.level);
  return out;
}

std::shared_ptr<const NativeKernel> compile(const KernelRequest& request, const Target& target) {
  std::optional<Schedule> s = make_schedule(*request.kernel, request.form, target);
  if (!s) return nullptr;
  Emitted emitted = emit(*s);
  std::string object = object_code(*emitted.module, s->level);
  auto code = std::make_shared<const Object>(std::as_bytes(std::span(object)));
  NativeKernel& kernel = emitted.kernel;
  kernel.body = reinterpret_cast<KernelFn>(code->find("body"));
  if (s->two_phases) kernel.finish = reinterpret_cast<KernelFn>(code->find("finish"));
  kernel.code = code;
  return std::make_shared<const NativeKernel>(std::move(kernel));
}

Schedule schedule_for_text(const KernelRequest& request, const Target& target) {
  std::optional<Schedule> s = make_schedule(*request.kernel, request.form, target);
  if (!s) fail("kernel {}: it has no native form; the interpreter runs it", request.kernel->name);
  return std::move(*s);
}

}  // namespace

// What a kernel computes and for whom; its name is left out.
static std::string key_of(const KernelRequest& request, const Target& target) {
  std::string text = loop::to_text(*request.kernel);
  return format("{} {} {} {}", static_cast<int>(request.form), static_cast<int>(target.level),
                target.vector_bits, std::string_view(text).substr(text.find('(')));
}

std::vector<std::shared_ptr<const NativeKernel>> compile_kernels(
    std::span<const KernelRequest> requests, const Target& target) {
  std::vector<std::string> keys;
  for (const KernelRequest& request : requests) keys.push_back(key_of(request, target));
  return KernelCache::shared().get(keys, [&](size_t i) { return compile(requests[i], target); });
}

KernelCacheStats kernel_cache_stats() { return KernelCache::shared().stats(); }

void clear_kernel_cache() { KernelCache::shared().clear(); }

std::string ir_text(const KernelRequest& request, const Target& target) {
  Schedule s = schedule_for_text(request, target);
  Emitted emitted = emit(s);
  std::string text;
  llvm::raw_string_ostream(text) << *emitted.module;
  return text;
}

std::string assembly_text(const KernelRequest& request, const Target& target) {
  Schedule s = schedule_for_text(request, target);
  Emitted emitted = emit(s);
  return assembly(*emitted.module, s.level);
}

}  // namespace tn::cpu
