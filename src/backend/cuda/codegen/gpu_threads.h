#pragma once
// What code knows of its thread, on a GPU and in the simulation of one on the CPU: where it is,
// what it was called with, and how threads of a block meet. Everything else that is emitted is the
// same for both.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "backend/cuda/codegen/gpu_schedule.h"
#include "backend/cuda/cuda_kernel.h"

namespace tn::cuda {

/// What a simulated thread is called with.
struct SimulatedThread {
  const uint64_t* params;
  std::byte* shared;
  void (*barrier)(SimulatedThread&);
  /// The bits that the thread whose number differs in these bits gives at the same time.
  uint64_t (*exchange)(SimulatedThread&, uint64_t bits, int32_t mask);
  /// Of global memory, before it is read or written.
  void (*touch)(SimulatedThread&, const void* address, int64_t bytes, int32_t writes);
  int32_t thread, block;
};

class Threads {
 public:
  Threads(llvm::IRBuilder<>& builder, llvm::Module& module, bool simulated)
      : b_(builder), module_(module), simulated_(simulated) {}

  /// What is known of the memory of a parameter.
  struct Memory {
    bool written = false;
    bool overlaid = false;  // it may be that of another parameter
  };
  /// Begins a function with these parameters; `memory`: by parameter.
  void begin(const std::string& name, const std::vector<Param>& params,
             const std::vector<Memory>& memory, const Part& part);

  llvm::Value* thread() const { return thread_; }  // i32
  llvm::Value* block() const { return block_; }    // i32
  /// The value of a parameter, in its type.
  llvm::Value* param(size_t number) const { return params_[number]; }
  /// A place in shared memory.
  llvm::Value* shared(llvm::Value* offset);
  void barrier();
  /// Threads of a warp meet, and see what the others have written.
  void warp_barrier();
  /// The word of two bf16 by one conversion; null where they were not rounded from float32.
  llvm::Value* packed_bf16(const std::vector<llvm::Value*>& pair);
  llvm::Value* shuffled(llvm::Value* x, int mask);
  /// 1 / x of a float32 that is far from 0 and from infinity: rounded as a division is.
  llvm::Value* reciprocal(llvm::Value* x);
  /// The larger or the smaller of two float32, NaN if one is. Of zeros, any.
  llvm::Value* extreme(bool larger, llvm::Value* x, llvm::Value* y);
  /// 16 bytes of global memory that will not be read again, as `type`.
  llvm::Value* load_streamed(llvm::Type* type, llvm::Value* place);
  /// 16 bytes of global memory that leave the cache before others.
  void store_streamed(llvm::Value* x, llvm::Value* place);
  /// Says that global memory is read or written.
  void touch(llvm::Value* place, int64_t bytes, bool writes);

 private:
  void begin_kernel(llvm::Function* function, const Part& part);
  llvm::Type* type_of(const Param& param) const;
  llvm::Value* field(int number, llvm::Type* type);
  llvm::Value* shuffled_word(llvm::Value* x, int mask);

  llvm::IRBuilder<>& b_;
  llvm::Module& module_;
  bool simulated_;
  llvm::Value *frame_ = nullptr, *thread_ = nullptr, *block_ = nullptr, *shared_ = nullptr;
  std::vector<llvm::Value*> params_;
};

}  // namespace tn::cuda
