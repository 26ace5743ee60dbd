#pragma once
// The machine code of one kernel, for any values of the symbols in its sizes.
#include "plan/backend.h"
#include "runtime/native.h"
#include "runtime/size_program.h"

namespace tn::cpu {

/// What running a kernel takes besides its code. It depends on sizes alone, never on threads.
struct KernelNumbers {
  std::vector<std::string> symbols;  // in order: sizes are given in this order
  SizeProgram units, finish_units;
  SizeProgram points;  // of all axes
  SizeProgram scratch_bytes, bypassing_bytes;
  int64_t partial_bytes = 0;
  double point_nanoseconds = 0;  // about
  bool divided = true;           // threads may share the units
  std::vector<DType> argument_types;
};

/// What steps of plans hold, and the launcher runs.
struct CpuKernel final : BoundKernel {
  explicit CpuKernel(NativeKernel made) : native(std::move(made)) { is_one_phase = !native.finish; }
  NativeKernel native;
};
inline const NativeKernel& native_of(const BoundKernel& kernel) {
  return static_cast<const CpuKernel&>(kernel).native;
}

class KernelCode final : public tn::KernelCode {
 public:
  /// `object`: an ELF object with `body`, and `finish` where there are finish units.
  KernelCode(std::span<const std::byte> object, KernelNumbers numbers);

  std::shared_ptr<const BoundKernel> bind(std::span<const Binding> sizes = {}) const override;

  const KernelNumbers& numbers() const { return numbers_; }

 private:
  NativeKernel made_for(std::vector<int64_t> sizes) const;

  KernelNumbers numbers_;
  std::vector<Dim> symbols_;  // those of the usual range, found faster than by name
  std::shared_ptr<const void> code_;
  KernelFn body_, finish_ = nullptr;
  std::shared_ptr<const CpuKernel> fixed_;  // without symbols
};

}  // namespace tn::cpu
