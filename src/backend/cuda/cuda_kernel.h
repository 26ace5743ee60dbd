#pragma once
// The code of one kernel for GPUs: what the code generator makes and files hold, and what the
// launcher reads of it at some sizes.
#include "plan/backend.h"
#include "runtime/size_program.h"

namespace tn::cuda {

/// A cubin, or PTX text for the driver to assemble. All bindings of a kernel share one.
struct KernelImage {
  std::string code;
  bool is_ptx() const {
    return !code.starts_with(
        "\x7f"
        "ELF");
  }
};

/// One parameter of an entry; each takes 8 bytes, but for scalars, which take those of their type.
struct Param {
  enum class Kind : uint8_t {
    buffer,  // the address of buffer `index` of the step
    scalar,  // number `index` of the step, as `type`; a bool is a byte
    value,   // the 8 bytes of `value`: a size
    room,    // the address `value` bytes into the room of the launch
  };
  Kind kind = Kind::buffer;
  int32_t index = 0;
  DType type = DType::i64;
  int64_t value = 0;
};

/// One launch. Blocks lie along x; there is nothing to launch where `blocks` is 0.
struct Entry {
  std::string name;
  int64_t blocks = 0;
  int32_t threads = 0;
  int64_t shared_bytes = 0;  // dynamic; above 48 KiB the function must be allowed so many
  std::vector<Param> params;
  bool is_packed = false;  // it takes one structure, of all parameters
};

struct CudaKernel;

/// What becomes of an interpreted kernel that runs often: it is compiled in the background.
class Promotion {
 public:
  virtual ~Promotion() = default;
  /// Counts a run. Called without the lock of a GPU: it may compile, to warm up the generator.
  virtual void ran() noexcept = 0;
  virtual bool is_ready() const = 0;
  virtual std::shared_ptr<const CudaKernel> compiled() const = 0;  // null: not yet
};

/// Entries run one after the other: each sees what those before it wrote.
struct CudaKernel final : BoundKernel {
  std::shared_ptr<const KernelImage> image;
  std::vector<Entry> entries;
  int64_t room_bytes = 0;  // uninitialised memory of the launch
  /// Buffers must begin at multiples of this. What does not is copied before the launch.
  int64_t alignment = 16;
  std::shared_ptr<Promotion> promotion = {};  // of interpreted kernels
};
inline const CudaKernel& cuda_kernel_of(const BoundKernel& kernel) {
  return static_cast<const CudaKernel&>(kernel);
}

/// An entry for any sizes. Of its parameters, `index` of a value is the symbol, and that of a room
/// the number of its place among `rooms`.
struct EntryCode {
  std::string name;
  SizeProgram blocks;
  int32_t threads = 0;
  int64_t shared_bytes = 0;
  std::vector<Param> params;
};

struct KernelNumbers {
  std::vector<std::string> symbols;  // in order
  std::vector<EntryCode> entries;
  std::vector<SizeProgram> rooms;  // bytes of each piece of the room; pieces are aligned
};

class KernelCode final : public tn::KernelCode {
 public:
  KernelCode(KernelNumbers numbers, std::string image);

  std::shared_ptr<const BoundKernel> bind(std::span<const Binding> sizes = {}) const override;
  const KernelNumbers& numbers() const { return numbers_; }
  const KernelImage& image() const { return *image_; }

 private:
  std::shared_ptr<const CudaKernel> made_for(std::span<const int64_t> sizes) const;

  KernelNumbers numbers_;
  std::shared_ptr<const KernelImage> image_;
  std::vector<Dim> symbols_;
  std::shared_ptr<const CudaKernel> fixed_;  // without symbols
};

/// For files and the disk cache. Null for bytes that are damaged.
std::string kernel_to_bytes(const KernelNumbers& numbers, std::string_view image);
std::shared_ptr<const KernelCode> kernel_from_bytes(std::string_view bytes);

}  // namespace tn::cuda
