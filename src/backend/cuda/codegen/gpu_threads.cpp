#include "backend/cuda/codegen/gpu_threads.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "backend/llvm/llvm_ops.h"

namespace tn::cuda {

using llvm::Type;
using llvm::Value;

static constexpr unsigned kGlobal = 1, kShared = 3;

Type* Threads::type_of(const Param& param) const {
  using Kind = Param::Kind;
  if (param.kind == Kind::buffer || param.kind == Kind::room)
    return simulated_ ? b_.getPtrTy() : b_.getPtrTy(kGlobal);
  if (param.kind == Kind::value) return b_.getInt64Ty();
  return codegen::Ops(b_, true).memory_type(param.type);
}

void Threads::begin(const std::string& name, const std::vector<Param>& params,
                    const std::vector<Memory>& memory, const Part& part) {
  std::vector<Type*> types;
  if (simulated_)
    types.push_back(b_.getPtrTy());
  else
    for (const Param& param : params) types.push_back(type_of(param));
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), types, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module_);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", function));
  params_.clear();
  if (!simulated_) {
    for (unsigned k = 0; k < params.size(); ++k) {
      llvm::Argument* argument = function->getArg(k);
      params_.push_back(argument);
      if (!argument->getType()->isPointerTy()) continue;
      // With both of these, loads go through a cache that does not see stores.
      if (!memory[k].overlaid) argument->addAttr(llvm::Attribute::NoAlias);
      if (!memory[k].written) argument->addAttr(llvm::Attribute::ReadOnly);
      argument->addAttr(llvm::Attribute::getWithAlignment(module_.getContext(), llvm::Align(16)));
    }
    return begin_kernel(function, part);
  }
  frame_ = function->getArg(0);
  Value* slots = field(0, b_.getPtrTy());
  for (size_t k = 0; k < params.size(); ++k)
    params_.push_back(b_.CreateLoad(type_of(params[k]),
                                    b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), slots, k)));
  shared_ = field(1, b_.getPtrTy());
  Value* numbers =
      b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), frame_, offsetof(SimulatedThread, thread));
  thread_ = b_.CreateLoad(b_.getInt32Ty(), numbers, "thread");
  block_ = b_.CreateLoad(b_.getInt32Ty(),
                         b_.CreateConstInBoundsGEP1_64(b_.getInt32Ty(), numbers, 1), "block");
}

void Threads::begin_kernel(llvm::Function* function, const Part& part) {
  function->setCallingConv(llvm::CallingConv::PTX_Kernel);
  llvm::LLVMContext& context = module_.getContext();
  auto note = [&](const char* what, int number) {
    llvm::Metadata* fields[] = {
        llvm::ValueAsMetadata::get(function), llvm::MDString::get(context, what),
        llvm::ConstantAsMetadata::get(b_.getInt32(static_cast<uint32_t>(number)))};
    module_.getOrInsertNamedMetadata("nvvm.annotations")
        ->addOperand(llvm::MDNode::get(context, fields));
  };
  note("kernel", 1);
  note("maxntidx", part.threads);
  if (part.together > 0) note("minctasm", part.together);
  thread_ = b_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {}, {});
  block_ = b_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {}, {});
  shared_ = module_.getGlobalVariable("shared");
  if (shared_) return;
  auto* bytes = llvm::ArrayType::get(b_.getInt8Ty(), 0);
  auto* global =
      new llvm::GlobalVariable(module_, bytes, false, llvm::GlobalValue::ExternalLinkage, nullptr,
                               "shared", nullptr, llvm::GlobalValue::NotThreadLocal, kShared);
  global->setAlignment(llvm::Align(16));
  shared_ = global;
}

Value* Threads::field(int number, Type* type) {
  Value* at = b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), frame_, static_cast<uint64_t>(number));
  return b_.CreateLoad(type, at);
}

Value* Threads::shared(Value* offset) { return b_.CreateGEP(b_.getInt8Ty(), shared_, offset); }

void Threads::barrier() {
  if (!simulated_) {
    b_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {});
    return;
  }
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy()}, false);
  b_.CreateCall(type, field(2, b_.getPtrTy()), {frame_});
}

/// The float32 that the bits of a bf16 were rounded from; null where there is none.
static Value* rounded_from(Value* bits) {
  auto* cast = llvm::dyn_cast<llvm::BitCastInst>(bits);
  auto* narrow = cast ? llvm::dyn_cast<llvm::FPTruncInst>(cast->getOperand(0)) : nullptr;
  if (!narrow || !narrow->getType()->isBFloatTy()) return nullptr;
  Value* wide = narrow->getOperand(0);
  return wide->getType()->isFloatTy() ? wide : nullptr;
}

Value* Threads::packed_bf16(const std::vector<Value*>& pair) {
  if (simulated_ || pair.size() != 2) return nullptr;
  Value *low = rounded_from(pair[0]), *high = rounded_from(pair[1]);
  if (!low || !high) return nullptr;
  Value* both = b_.CreateIntrinsic(llvm::Intrinsic::nvvm_ff2bf16x2_rn, {}, {high, low});
  return b_.CreateBitCast(both, b_.getInt32Ty());
}

void Threads::warp_barrier() {
  if (simulated_) return barrier();
  b_.CreateIntrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {}, {b_.getInt32(~0u)});
}

Value* Threads::shuffled_word(Value* x, int mask) {
  Value* all = b_.getInt32(~0u);
  return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, {},
                            {all, x, b_.getInt32(static_cast<uint32_t>(mask)), b_.getInt32(31)});
}

Value* Threads::shuffled(Value* x, int mask) {
  Type* type = x->getType();
  unsigned bits = type->getScalarSizeInBits();
  Value* word = type->isIntegerTy() ? x : b_.CreateBitCast(x, b_.getIntNTy(bits));
  Value* other;
  if (simulated_) {
    auto* call = llvm::FunctionType::get(b_.getInt64Ty(),
                                         {b_.getPtrTy(), b_.getInt64Ty(), b_.getInt32Ty()}, false);
    other = b_.CreateCall(
        call, field(3, b_.getPtrTy()),
        {frame_, b_.CreateZExt(word, b_.getInt64Ty()), b_.getInt32(static_cast<uint32_t>(mask))});
  } else if (bits <= 32) {
    other = shuffled_word(b_.CreateZExt(word, b_.getInt32Ty()), mask);
  } else {
    Value* low = shuffled_word(b_.CreateTrunc(word, b_.getInt32Ty()), mask);
    Value* high = shuffled_word(b_.CreateTrunc(b_.CreateLShr(word, 32), b_.getInt32Ty()), mask);
    other = b_.CreateOr(b_.CreateZExt(low, b_.getInt64Ty()),
                        b_.CreateShl(b_.CreateZExt(high, b_.getInt64Ty()), 32));
  }
  other = b_.CreateTrunc(other, b_.getIntNTy(bits));
  return type->isIntegerTy() ? other : b_.CreateBitCast(other, type);
}

// The approximation of the hardware is within one unit of the last place; one step of Newton's
// method rounds it as a division does, except next to 0 and to infinity.
Value* Threads::reciprocal(Value* x) {
  Value* one = llvm::ConstantFP::get(x->getType(), 1.0);
  if (simulated_) return b_.CreateFDiv(one, x);
  Value* near = b_.CreateIntrinsic(llvm::Intrinsic::nvvm_rcp_approx_ftz_f, {}, {x});
  auto fma = [&](Value* a, Value* b, Value* c) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {a, b, c});
  };
  return fma(near, fma(b_.CreateFNeg(x), near, one), near);
}

Value* Threads::extreme(bool larger, Value* x, Value* y) {
  return b_.CreateBinaryIntrinsic(larger ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, x,
                                  y);
}

Value* Threads::load_streamed(Type* type, Value* place) {
  if (simulated_) return b_.CreateAlignedLoad(type, place, llvm::Align(16));
  Type* word = b_.getInt32Ty();
  auto* words = llvm::StructType::get(module_.getContext(), {word, word, word, word});
  auto* call = llvm::FunctionType::get(words, {place->getType()}, false);
  auto* load =
      llvm::InlineAsm::get(call, "ld.global.L1::no_allocate.v4.b32 {$0, $1, $2, $3}, [$4];",
                           "=r,=r,=r,=r,l,~{memory}", true);
  Value* loaded = b_.CreateCall(call, load, {place});
  Value* vector = llvm::PoisonValue::get(llvm::FixedVectorType::get(word, 4));
  for (unsigned k = 0; k < 4; ++k)
    vector = b_.CreateInsertElement(vector, b_.CreateExtractValue(loaded, k), uint64_t{k});
  return b_.CreateBitCast(vector, type);
}

void Threads::store_streamed(Value* x, Value* place) {
  if (simulated_) {
    b_.CreateAlignedStore(x, place, llvm::Align(16));
    return;
  }
  Type* word = b_.getInt32Ty();
  Value* vector = b_.CreateBitCast(x, llvm::FixedVectorType::get(word, 4));
  llvm::SmallVector<Value*> operands{place};
  for (unsigned k = 0; k < 4; ++k) operands.push_back(b_.CreateExtractElement(vector, uint64_t{k}));
  auto* call =
      llvm::FunctionType::get(b_.getVoidTy(), {place->getType(), word, word, word, word}, false);
  auto* store = llvm::InlineAsm::get(call, "st.global.cs.v4.b32 [$0], {$1, $2, $3, $4};",
                                     "l,r,r,r,r,~{memory}", true);
  b_.CreateCall(call, store, operands);
}

void Threads::touch(Value* place, int64_t bytes, bool writes) {
  if (!simulated_) return;
  auto* type = llvm::FunctionType::get(
      b_.getVoidTy(), {b_.getPtrTy(), b_.getPtrTy(), b_.getInt64Ty(), b_.getInt32Ty()}, false);
  b_.CreateCall(type, field(4, b_.getPtrTy()),
                {frame_, place, b_.getInt64(static_cast<uint64_t>(bytes)), b_.getInt32(writes)});
}

}  // namespace tn::cuda
