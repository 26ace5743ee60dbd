#pragma once
// Kernels that the build has compiled (prebuilt/), on GPUs.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/cuda_library.h"
#include "ir/dtype.h"

namespace tn::cuda {

constexpr int kOwnThreads = 256;  // of a block of most own kernels

/// Makes machine code of PTX, or gives the text back. The code generator sets it; libtenon_rt has
/// none, and files bring the code.
inline std::string (*assemble_own)(std::string_view ptx, int architecture) = nullptr;
/// What an earlier process has left of it; nothing: it is to be assembled.
inline std::optional<std::string> (*find_own)(std::string_view ptx, int architecture) = nullptr;
/// False in tests, for a mock of the driver: their PTX is loaded as it is.
inline bool assembles_own = true;

/// Takes the PTX of a file for what the library has, `ptx`, from now on.
void take_own_code(std::string_view ptx, std::string_view code);

/// A kernel of `ptx`, which lives as long as the process.
struct OwnKernel {
  std::string_view ptx;
  std::string name;
};
/// Makes the code of those that have none yet, on all threads at once, each once in a process. The
/// first error of an assembler is thrown; the next request tries again.
void make_own_code(std::span<const OwnKernel> wanted, int architecture);

/// Puts a kernel of `ptx`, which takes one structure, on the stream of the call under way. Nothing
/// for no blocks. A call that only says what it launches notes the kernel.
void launch_own(std::string_view ptx, const std::string& name, int64_t blocks, int64_t shared_bytes,
                void* params, int threads = kOwnThreads);

/// The code of a kernel if it is there or was left by an earlier process. Null: it is assembled in
/// the background, where an assembler is found; the driver's would take its time when it is loaded.
std::shared_ptr<const KernelImage> own_image_now(std::string_view ptx, const std::string& name,
                                                 int architecture);

/// As kernels are named: "f32"; "u8" for bool; "" for types that none takes.
std::string_view own_name(DType type);

/// Blocks of `each` that `count` needs.
constexpr int64_t blocks_for(int64_t count, int64_t each) { return (count + each - 1) / each; }

}  // namespace tn::cuda
