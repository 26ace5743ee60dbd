#pragma once
// The machine code of a kernel with the numbers that running it takes, as bytes: for the disk cache
// and for files.
#include "backend/cpu/kernel_code.h"

namespace tn::cpu {

std::string kernel_to_bytes(const KernelNumbers& numbers, std::string_view object);
/// Null for bytes that `kernel_to_bytes` did not make.
std::shared_ptr<const KernelCode> kernel_from_bytes(std::string_view bytes);

}  // namespace tn::cpu
