#pragma once
// Loops, branches and arithmetic of sizes in LLVM IR.
#include <llvm/IR/IRBuilder.h>

#include <optional>
#include <vector>

#include "runtime/size_program.h"
#include "tenon/callback.h"

namespace tn::codegen {

using Values = std::vector<llvm::Value*>;

/// The number, where the code has one.
inline std::optional<int64_t> known(llvm::Value* x) {
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(x);
  return constant ? std::optional(constant->getSExtValue()) : std::nullopt;
}

/// body(i, carried) gives the next carried; the loop runs from begin to end, at least once where
/// `some`. The type of `begin` is that of i.
using LoopBody = Callback<Values(llvm::Value* i, const Values& carried)>;
Values loop(llvm::IRBuilder<>& b, llvm::Value* begin, llvm::Value* end, int64_t step,
            Values carried, bool some, const LoopBody& body);
/// What `body` gives where the condition holds, else `otherwise`.
Values when(llvm::IRBuilder<>& b, llvm::Value* condition, const Values& otherwise,
            const Callback<Values()>& body);
/// What `yes` gives where the condition holds, and `no` elsewhere.
Values either(llvm::IRBuilder<>& b, llvm::Value* condition, const Callback<Values()>& yes,
              const Callback<Values()>& no);

llvm::Value* smaller(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y);
llvm::Value* larger(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y);
/// The quotient rounded down, or what it leaves; y >= 1.
llvm::Value* divided(llvm::IRBuilder<>& b, bool quotient, llvm::Value* x, llvm::Value* y);
/// A size, where `symbol(k)` is the value of symbol k, an i64.
llvm::Value* evaluated(llvm::IRBuilder<>& b, const SizeProgram& program,
                       const Callback<llvm::Value*(int64_t)>& symbol);

}  // namespace tn::codegen
