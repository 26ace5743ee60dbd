#include "backend/llvm/llvm_control.h"

namespace tn::codegen {

using llvm::BasicBlock;
using llvm::PHINode;
using llvm::Value;

Values loop(llvm::IRBuilder<>& b, Value* begin, Value* end, int64_t step, Values carried, bool some,
            const LoopBody& body) {
  llvm::Type* type = begin->getType();
  BasicBlock* before = b.GetInsertBlock();
  auto* inside = BasicBlock::Create(b.getContext(), "loop", before->getParent());
  auto* after = BasicBlock::Create(b.getContext(), "done", before->getParent());
  if (some)
    b.CreateBr(inside);
  else
    b.CreateCondBr(b.CreateICmpSLT(begin, end), inside, after);
  b.SetInsertPoint(inside);
  PHINode* i = b.CreatePHI(type, 2, "i");
  i->addIncoming(begin, before);
  Values inner;
  for (Value* x : carried) {
    PHINode* phi = b.CreatePHI(x->getType(), 2);
    phi->addIncoming(x, before);
    inner.push_back(phi);
  }
  Values next = body(i, inner);
  BasicBlock* last = b.GetInsertBlock();
  Value* following = b.CreateAdd(i, llvm::ConstantInt::getSigned(type, step), "next", true, true);
  b.CreateCondBr(b.CreateICmpSLT(following, end), inside, after);
  i->addIncoming(following, last);
  b.SetInsertPoint(after);
  for (size_t k = 0; k < next.size(); ++k) {
    llvm::cast<PHINode>(inner[k])->addIncoming(next[k], last);
    if (some) continue;
    PHINode* phi = b.CreatePHI(next[k]->getType(), 2);
    phi->addIncoming(carried[k], before);
    phi->addIncoming(next[k], last);
    next[k] = phi;
  }
  return next;
}

Values when(llvm::IRBuilder<>& b, Value* condition, const Values& otherwise,
            const Callback<Values()>& body) {
  BasicBlock* before = b.GetInsertBlock();
  auto* inside = BasicBlock::Create(b.getContext(), "when", before->getParent());
  auto* after = BasicBlock::Create(b.getContext(), "after", before->getParent());
  b.CreateCondBr(condition, inside, after);
  b.SetInsertPoint(inside);
  Values results = body();
  BasicBlock* last = b.GetInsertBlock();
  b.CreateBr(after);
  b.SetInsertPoint(after);
  for (size_t k = 0; k < results.size(); ++k) {
    PHINode* phi = b.CreatePHI(results[k]->getType(), 2);
    phi->addIncoming(otherwise[k], before);
    phi->addIncoming(results[k], last);
    results[k] = phi;
  }
  return results;
}

Values either(llvm::IRBuilder<>& b, Value* condition, const Callback<Values()>& yes,
              const Callback<Values()>& no) {
  llvm::Function* function = b.GetInsertBlock()->getParent();
  BasicBlock* begin[2];
  for (BasicBlock*& block : begin) block = BasicBlock::Create(b.getContext(), "either", function);
  auto* after = BasicBlock::Create(b.getContext(), "after", function);
  b.CreateCondBr(condition, begin[0], begin[1]);
  Values results[2];
  BasicBlock* end[2];
  for (int k = 0; k < 2; ++k) {
    b.SetInsertPoint(begin[k]);
    results[k] = k == 0 ? yes() : no();
    end[k] = b.GetInsertBlock();
    b.CreateBr(after);
  }
  b.SetInsertPoint(after);
  Values joined;
  for (size_t i = 0; i < results[0].size(); ++i) {
    PHINode* phi = b.CreatePHI(results[0][i]->getType(), 2);
    for (int k = 0; k < 2; ++k) phi->addIncoming(results[k][i], end[k]);
    joined.push_back(phi);
  }
  return joined;
}

Value* smaller(llvm::IRBuilder<>& b, Value* x, Value* y) {
  if (known(x) && known(y)) return *known(x) < *known(y) ? x : y;
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y);
}

Value* larger(llvm::IRBuilder<>& b, Value* x, Value* y) {
  if (known(x) && known(y)) return *known(x) < *known(y) ? y : x;
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, x, y);
}

Value* divided(llvm::IRBuilder<>& b, bool quotient, Value* x, Value* y) {
  Value* rest = b.CreateSRem(x, y);
  Value* below = b.CreateICmpSLT(rest, llvm::Constant::getNullValue(x->getType()));
  if (!quotient) return b.CreateSelect(below, b.CreateAdd(rest, y), rest);
  Value* found = b.CreateSDiv(x, y);
  llvm::Constant* one = llvm::ConstantInt::get(x->getType(), 1);
  return b.CreateSelect(below, b.CreateSub(found, one), found);
}

Value* evaluated(llvm::IRBuilder<>& b, const SizeProgram& program,
                 const Callback<Value*(int64_t)>& symbol) {
  using Kind = SizeStep::Kind;
  Value* one = b.getInt64(1);
  Values stack;
  for (const SizeStep& step : program.steps) {
    if (step.kind == Kind::constant) stack.push_back(b.getInt64(uint64_t(step.number)));
    if (step.kind == Kind::symbol) stack.push_back(symbol(step.number));
    if (step.kind <= Kind::symbol) continue;
    Value* y = stack.back();
    stack.pop_back();
    Value*& x = stack.back();
    if (step.kind == Kind::add) x = b.CreateAdd(x, y);
    if (step.kind == Kind::mul) x = b.CreateMul(x, y);
    if (step.kind == Kind::min) x = smaller(b, x, y);
    if (step.kind == Kind::max) x = larger(b, x, y);
    if (step.kind == Kind::div) x = divided(b, true, x, larger(b, y, one));
    if (step.kind == Kind::mod) x = divided(b, false, x, larger(b, y, one));
  }
  return stack[0];
}

}  // namespace tn::codegen
