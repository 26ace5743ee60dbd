#include "backend/cuda/interpreter/interpreted_code.h"

#include <atomic>
#include <utility>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cuda_library.h"
#include "backend/cuda/interpreter/bytecode_program.h"
#include "backend/cuda/own_kernels.h"
#include "backend/cuda/prebuilt/prebuilt.h"
#include "base/debug_log.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "loop/kernel.h"
#include "runtime/later.h"
#include "runtime/own_thread.h"

namespace tn::cuda {
namespace {

/// What the code generator of GPUs keeps for the whole process is made before the thread that
/// compiles uses it, and outlives that thread.
void warm_up_generator(const Target& target) {
  static const bool warm = [&] {
    loop::Kernel kernel = loop::parse_kernel(
        "kernel warm(x: f32[4]) -> (y: f32[4]) {\n  axes p0:4 par\n"
        "  v0 = load x[p0] : f32\n  v1 = exp v0 : f32\n  store y[p0] = v1\n}");
    return !generator_of(target).assembly({&kernel}, target).empty();
  }();
  (void)warm;
}

/// While one lives, the user's interrupt of this thread has to wait: it is not for what runs here.
struct NoStops {
  void (*before)() = std::exchange(own_stop_point, [] {});
  ~NoStops() { own_stop_point = before; }
};

class CompiledLater final : public Promotion, public std::enable_shared_from_this<CompiledLater> {
 public:
  CompiledLater(const KernelRequest& request, const Target& target, int64_t work)
      : kernel_(*request.kernel),
        form_(request.form),
        target_(target),
        wanted_(runs_until_compiled(work)),
        left_(wanted_) {}

  void ran() noexcept override {
    if (left_.fetch_sub(1) != 1 || !run_later) return;
    try {
      NoStops uninterrupted;
      warm_up_generator(target_);
      run_later([self = shared_from_this()] { self->compile(); }, true);
    } catch (...) {
      try_again();
    }
  }
  bool is_ready() const override { return ready_.load(std::memory_order_acquire); }
  std::shared_ptr<const CudaKernel> compiled() const override {
    return is_ready() ? compiled_ : nullptr;
  }

 private:
  void compile() {
    OnOwnThread alone;
    try {
      KernelRequest request{&kernel_, form_};
      auto code = generator_of(target_).compile({&request, 1}, target_, nullptr)[0];
      if (!code) return;
      compiled_ = std::static_pointer_cast<const CudaKernel>(code->bind());
      ready_.store(true, std::memory_order_release);
      debug_compile("Compiled kernel {} of a GPU, which was interpreted", kernel_.name);
    } catch (const std::exception& error) {  // it is stopped, or there is no memory
      debug_compile("Kernel {} of a GPU stays interpreted: {}", kernel_.name, error.what());
      try_again();
    } catch (...) {
      try_again();
    }
  }

  /// After twice as many runs as last time.
  void try_again() {
    wanted_ *= 2;
    left_ = wanted_;
  }

  const loop::Kernel kernel_;
  const KernelForm form_;
  const Target target_;
  int64_t wanted_;  // of the thread that compiles it
  std::atomic<int64_t> left_;
  std::atomic<bool> ready_ = false;
  std::shared_ptr<const CudaKernel> compiled_;  // once it is ready
};

class InterpretedCode final : public tn::KernelCode {
 public:
  explicit InterpretedCode(std::shared_ptr<const CudaKernel> kernel) : kernel_(std::move(kernel)) {}
  std::shared_ptr<const BoundKernel> bind(std::span<const Binding>) const override {
    return kernel_;
  }

 private:
  std::shared_ptr<const CudaKernel> kernel_;
};

}  // namespace

std::shared_ptr<const tn::KernelCode> interpreted_code(const KernelRequest& request,
                                                       const Target& target) {
  if (target.kind != DeviceKind::cuda || architecture_of(target) < kPrebuiltArch ||
      interpreter_ptx().empty())
    return nullptr;
  std::optional<BytecodeProgram> program = bytecode_program(*request.kernel);
  if (!program) return nullptr;
  auto image = own_image_now(interpreter_ptx(), program->entry.name, architecture_of(target));
  if (!image) return nullptr;
  auto kernel = std::make_shared<CudaKernel>();
  kernel->image = std::move(image);
  kernel->entries.push_back(std::move(program->entry));
  kernel->promotion = std::make_shared<CompiledLater>(request, target, program->work);
  return std::make_shared<const InterpretedCode>(std::move(kernel));
}

}  // namespace tn::cuda
