#pragma once
// Library kernels of GPUs. They are called with addresses of the GPU, and put their work on a
// stream.
#include "backend/cuda/gpu.h"
#include "backend/cuda/prebuilt/product_tails.h"
#include "backend/cuda/product_tail.h"
#include "plan/library.h"
#include "plan/product_setting.h"

namespace tn::cuda {

/// Own kernels are compiled for this architecture (cmake/prebuilt.cmake) and later ones.
constexpr int kPrebuiltArch = 80;

/// The kernel for an op on operands of these types; null: the host computes it.
const LibraryKernel* library_kernel(const OpDef& op, Types in, const Target& target);

/// The device code of some of these kernels, as files hold it.
std::string library_code(std::span<const LibraryKernel* const> used);
/// The inverse. False: of another version.
bool take_library_code(std::string_view bytes);

/// Where cuBLASLt was found; "": it was not.
std::string products_library();

/// What a kernel does with the result of a call, where the call may do it instead.
struct CallTail {
  Activation activation = Activation::none;
  const void* bias = nullptr;
};

struct OwnKernel;

/// Where the call under way on this thread puts its work.
struct CallPlace {
  Gpu* gpu = nullptr;
  Stream stream = nullptr;
  Products products = Products::highest;
  std::optional<CallTail> tail = {};
  std::optional<TailProgram> program = {};  // of the same for own kernels
  bool has_done_tail = false;               // set by the call
  /// Not null: the call adds the own kernels that it would launch, and does nothing else.
  std::vector<OwnKernel>* wanted = nullptr;
};
extern thread_local CallPlace call_place;

}  // namespace tn::cuda
