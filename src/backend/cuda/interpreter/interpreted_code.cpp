#include "backend/cuda/interpreter/interpreted_code.h"

#include <atomic>
#include <mutex>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cuda_library.h"
#include "backend/cuda/interpreter/bytecode_program.h"
#include "backend/cuda/own_kernels.h"
#include "backend/cuda/prebuilt/prebuilt.h"
#include "base/debug_log.h"
#include "base/error.h"
#include "runtime/later.h"
#include "runtime/own_thread.h"

namespace tn::cuda {
namespace {

class CompiledLater final : public Promotion, public std::enable_shared_from_this<CompiledLater> {
 public:
  CompiledLater(const KernelRequest& request, const Target& target, int64_t work)
      : kernel_(*request.kernel),
        form_(request.form),
        target_(target),
        left_(runs_until_compiled(work)) {}

  void ran() override {
    if (left_.fetch_sub(1, std::memory_order_relaxed) != 1 || !run_later) return;
    run_later([self = shared_from_this()] { self->compile(); }, true);
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
    } catch (const std::exception& error) {  // the process ends, or there is no memory
      debug_compile("Kernel {} of a GPU stays interpreted: {}", kernel_.name, error.what());
    } catch (...) {
    }
  }

  const loop::Kernel kernel_;
  const KernelForm form_;
  const Target target_;
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
