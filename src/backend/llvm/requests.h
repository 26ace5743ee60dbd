#pragma once
// What the code generators share of their requests: keys, and code as bytes.
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "plan/backend.h"

namespace tn::codegen {

/// What a kernel computes: its text without its name.
std::string text_of(const KernelRequest& request);

/// " n~2^5" for each symbol whose likely value is known. Code for sizes of another order would be
/// right, but laid out for those: on disk, where it may have come from any program, it has an entry
/// of its own.
std::string orders_of_sizes(const KernelRequest& request);

/// The bytes of `count` kernels from `make`, on all threads at once.
std::vector<std::string> bytes_of_all(size_t count, FunctionRef<std::string(size_t)> make);

}  // namespace tn::codegen
