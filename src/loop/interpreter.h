#pragma once
// The block interpreter: runs kernels without generating code, in blocks that stay in the L1 cache.
#include <memory>
#include <span>

#include "loop/kernel.h"

namespace tn::loop {

/// A kernel prepared for given sizes. Immutable; any number of threads may run it at once.
struct BlockProgram;
/// The instructions that programs are made of (loop/interpreter_ops.h).
struct BlockOps;

/// Which axis is innermost in a kernel with reductions or scans. The bits do not depend on it.
enum class Orientation : uint8_t { by_strides, rows, columns };

struct PrepareOptions {
  const BlockOps* ops = nullptr;  // null: those for this machine
  Orientation orientation = Orientation::by_strides;
  bool whole_values = false;  // the slow general path: every value over its whole domain at once
};

std::shared_ptr<const BlockProgram> prepare(const Kernel& kernel,
                                            std::span<const Binding> symbols = {},
                                            const PrepareOptions& options = {});

/// Runs over `buffers`, in the order of the kernel's. An output may share memory with an input when
/// every load of that input has the index of the store.
void run(const BlockProgram& program, void* const* buffers, const Scalar* arguments = nullptr);

/// The table of instructions, for tests and curious readers.
std::string to_text(const BlockProgram& program);

}  // namespace tn::loop
