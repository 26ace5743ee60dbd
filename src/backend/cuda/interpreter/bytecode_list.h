#pragma once
// Instructions over virtual registers, and their way into the words of a program.
#include <vector>

#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/prebuilt/bytecode.h"

namespace tn::cuda {

using VirtualRegister = int32_t;
inline constexpr VirtualRegister kNoRegister = -1;

/// One instruction before registers have places.
struct VirtualInstruction {
  bytecode::Code code = bytecode::Code::end;
  VirtualRegister dst = kNoRegister, a = kNoRegister, b = kNoRegister, c = kNoRegister;
  uint8_t immediate = 0;
  uint8_t number = 0;     // of a buffer or an argument
  bool is_store = false;  // dst is the index
  std::vector<uint64_t> words = {};
  std::vector<std::pair<VirtualRegister, int32_t>> factors = {};  // of affine
};

/// The instructions of a kernel in order, with at most one loop around others at a time.
class CodeList {
 public:
  VirtualRegister add_register(bool is_wide) {
    widths_.push_back(is_wide ? 2 : 1);
    return static_cast<VirtualRegister>(widths_.size()) - 1;
  }
  bool is_wide(VirtualRegister r) const { return widths_[static_cast<size_t>(r)] == 2; }
  std::vector<VirtualInstruction> list;

  /// The instructions as words; how many registers they need. Empty: too many.
  std::vector<uint64_t> encode(int& registers) const;

 private:
  struct Life {
    int first = -1, last = -1;
  };
  std::vector<Life> lives() const;
  std::vector<uint8_t> widths_;
};

/// The registers that an instruction names, `dst` last.
template <class F>
void for_each_register(const VirtualInstruction& i, F&& f) {
  for (VirtualRegister r : {i.a, i.b, i.c})
    if (r != kNoRegister) f(r);
  for (auto [r, factor] : i.factors) f(r);
  if (i.dst != kNoRegister) f(i.dst);
}

}  // namespace tn::cuda
