#pragma once
// The operations of LoopIR as LLVM instructions, on scalars and vectors alike.
//
// A bool is an i1, a narrow float the integer of its bits; every other element is what it seems.
#include <llvm/IR/IRBuilder.h>

#include "loop/kernel.h"

namespace tn::codegen {

inline bool is_signed(DType type) { return kind_of(type) == Kind::integer; }

class Ops {
 public:
  /// `has_half`: the machine converts between f16 and f32, and where `has_bfloat` bf16 too.
  /// `has_narrow_math`: it adds and multiplies in them.
  Ops(llvm::IRBuilder<>& builder, bool has_half, bool has_bfloat = false,
      bool has_narrow_math = false)
      : b(builder),
        has_half_(has_half),
        has_bfloat_(has_bfloat),
        has_narrow_math_(has_narrow_math) {}

  /// Of one element, in registers and in memory.
  llvm::Type* type(DType type) const;
  llvm::Type* memory_type(DType type) const;
  llvm::Constant* constant(const Scalar& value, DType type) const;
  llvm::Constant* constant_bits(uint64_t bits, DType type) const;

  /// `type` is that of the operands.
  llvm::Value* unary(loop::Op op, DType type, llvm::Value* a);
  llvm::Value* binary(loop::Op op, DType type, llvm::Value* a, llvm::Value* b);
  llvm::Value* select(llvm::Value* condition, llvm::Value* yes, llvm::Value* no);
  llvm::Value* fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  llvm::Value* cast(llvm::Value* a, DType from, DType to);
  /// Of a float that is known to be inside of the signed type `to`.
  llvm::Value* truncated(llvm::Value* a, DType to);
  llvm::Value* bitcast(llvm::Value* a, DType from, DType to);
  llvm::Value* from_memory(llvm::Value* a, DType type);
  llvm::Value* to_memory(llvm::Value* a, DType type);

  /// acc, then x, in a reduction or a scan.
  llvm::Value* combine(loop::Monoid monoid, DType type, llvm::Value* acc, llvm::Value* x);
  /// What changes nothing, and the result of no elements.
  llvm::Constant* identity(loop::Monoid monoid, DType type) const;
  llvm::Constant* empty(loop::Monoid monoid, DType type) const;
  /// The two (value, index) pairs of an arg reduction as one: the better, of equals the earlier.
  struct Best {
    llvm::Value *value, *index;
  };
  Best better(loop::Monoid monoid, DType type, Best a, Best b);

 private:
  llvm::Value* integer_binary(loop::Op op, DType type, llvm::Value* a, llvm::Value* b);
  llvm::Value* compare(loop::Op op, DType type, llvm::Value* a, llvm::Value* b);
  llvm::Value* extreme(bool max, DType type, llvm::Value* a, llvm::Value* b);
  llvm::Value* quotient(bool remainder, bool is_signed, llvm::Value* a, llvm::Value* b);
  llvm::Value* shift(bool left, bool is_signed, llvm::Value* a, llvm::Value* count);
  llvm::Value* float_to_integer(llvm::Value* a, DType to);
  llvm::Value* widen(llvm::Value* a, DType from);
  llvm::Value* narrow(llvm::Value* a, DType to);
  llvm::Value* narrow_odd(llvm::Value* a, DType from, DType to);
  llvm::Value* to_double_odd(llvm::Value* a, DType from);
  llvm::Value* double_to_float_odd(llvm::Value* a);
  template <class Format>
  llvm::Value* widen_bits(llvm::Value* a);
  template <class Format>
  llvm::Value* narrow_bits(llvm::Value* a);

  /// `element` with the lanes of `like`.
  llvm::Type* shaped(llvm::Type* element, llvm::Value* like) const;
  llvm::Constant* word(llvm::Value* like, uint64_t bits) const;

  llvm::IRBuilder<>& b;
  bool has_half_, has_bfloat_, has_narrow_math_;
};

}  // namespace tn::codegen
