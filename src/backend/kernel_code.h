#pragma once
// The machine code of one kernel, for any values of the symbols in its sizes.
#include <span>
#include <string>

#include "ir/dim.h"
#include "runtime/native.h"
#include "runtime/size_program.h"

namespace tn::cpu {

/// How the loops of a kernel are driven.
enum class Form : uint8_t {
  whole,  // all points, in units that threads claim
  tile,   // axes 0, 1, 2 are batch, row and column; a call covers the ranges of KernelFrame::tile
};

/// What running a kernel takes besides its code. It depends on sizes alone, never on threads.
struct KernelNumbers {
  std::vector<std::string> symbols;  // in order: sizes are given in this order
  SizeProgram units, finish_units;
  SizeProgram points;  // of all axes
  SizeProgram scratch_bytes, streamed_bytes;
  int64_t partial_bytes = 0;
  double point_nanoseconds = 0;  // about
  bool divided = true;           // threads may share the units
  std::vector<DType> argument_types;
};

class KernelCode {
 public:
  /// `object`: an ELF object with `body`, and `finish` where there are finish units.
  KernelCode(std::span<const std::byte> object, KernelNumbers numbers);

  /// Ready to run with these sizes; bindings of further symbols may be among them. Microseconds:
  /// nothing is compiled. Without symbols it is always the same object.
  std::shared_ptr<const NativeKernel> at(std::span<const Binding> sizes = {}) const;

  const KernelNumbers& numbers() const { return numbers_; }

 private:
  NativeKernel made_for(std::vector<int64_t> sizes) const;

  KernelNumbers numbers_;
  std::vector<Dim> symbols_;  // those of the usual range, found faster than by name
  std::shared_ptr<const void> code_;
  KernelFn body_, finish_ = nullptr;
  std::shared_ptr<const NativeKernel> fixed_;  // without symbols
};

}  // namespace tn::cpu
