#pragma once
// The way from the values and indices of a kernel to instructions of the interpreter.
#include <map>

#include "backend/cuda/interpreter/bytecode_list.h"
#include "backend/cuda/interpreter/bytecode_ops.h"
#include "loop/analysis.h"

namespace tn::cuda {

/// Values are computed where they are first needed: those that vary along a row in the loop over
/// its elements, the others before it.
class BytecodeLowering {
 public:
  BytecodeLowering(const loop::Kernel& kernel, const loop::Analysis& analysis);

  bool fits = true;  // false: something has no form
  CodeList code;

  int64_t extent_of(const std::vector<int>& axes) const;
  VirtualRegister value(loop::ValueId id);
  /// Its operands; all are made before anything is stored.
  void prepare(size_t store);
  void store(size_t number, bytecode::Where where);
  /// The loop over the elements of a row, up to the reductions of `level`.
  void sweep(int level);

 private:
  using Register = VirtualRegister;
  struct Known {
    std::map<loop::ValueId, Register> values;
    std::map<PolyId, Register> polys;
    std::map<std::pair<int, int>, Register> coordinates;  // by the first and the last axis
    std::map<uint64_t, Register> numbers;                 // 32 bits
  };
  /// The value of a reduction while it is made: of argmax, the element and where it was.
  struct Fold {
    loop::ValueId id;
    Register best, index = kNoRegister;
  };

  const loop::Value& value_at(loop::ValueId id) const {
    return kernel_.values[static_cast<size_t>(id)];
  }
  bool is_inner(loop::AxisSet axes) const { return axes & analysis_.inner(); }
  Known& known(bool inner) { return inner ? inner_known_ : outer_known_; }
  std::vector<VirtualInstruction>& stream(bool inner) { return inner ? inner_ : code.list; }

  Register emit(bool inner, bytecode::Code code, bool wide, VirtualInstruction operands = {});
  Register number(uint32_t bits);  // before the loop
  Register constant(const Scalar& literal, DType type);

  Register made(const loop::Value& v, bool inner);
  Register loaded(const loop::Value& v, bool inner);
  Register argument(const loop::Value& v, bool inner);
  Register cast(bool inner, Register x, DType from, DType to);
  Register narrowed(bool inner, Register x, DType from, bytecode::Narrow to);
  Register wrapped(bool inner, Register x, DType type);
  Register applied(bool inner, loop::Op op, DType operands, Register a, Register b = kNoRegister,
                   Register c = kNoRegister);
  Register select(bool inner, Register condition, Register a, Register b);

  // Indices have 32 bits.
  bool fits_index(PolyId poly) const;
  Register poly(PolyId poly);
  Register product(const Term& term);
  Register atom(AtomId id);
  Register divided(PolyId dividend, PolyId divisor, bool rest);
  Register mask(loop::MaskId mask);
  void add_axes(const std::vector<int>& axes, const std::vector<int64_t>& coefficients,
                VirtualInstruction& sum);
  /// Of joined axes: they are walked as one.
  Register coordinate(const std::vector<int>& axes, size_t first, size_t last);
  Register divide(bool inner, Register x, int64_t divisor, bool rest);

  Fold begin_fold(loop::ValueId id);
  void add(const Fold& fold);
  void end(const Fold& fold);
  Register better(bool inner, const loop::Value& v, Register x, Register best);
  Register merged(const loop::Value& v, Register a, Register b);
  void keep(Register into, Register from);

  const loop::Kernel& kernel_;
  const loop::Analysis& analysis_;
  std::vector<int64_t> extents_;
  std::vector<VirtualInstruction> inner_;
  Known outer_known_, inner_known_;
};

}  // namespace tn::cuda
