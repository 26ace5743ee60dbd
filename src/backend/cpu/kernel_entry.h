#pragma once
// Kernels in the disk cache: an object file with the numbers that running it takes.
#include "backend/kernel_code.h"

namespace tn::cpu {

/// The kernel saved under `key`, which tells what it computes and for which processors; null when
/// there is none. Only a library that would compile it to the same code finds it.
std::shared_ptr<const KernelCode> load_kernel(std::string_view key);
void save_kernel(std::string_view key, const KernelNumbers& numbers, std::string_view object);

}  // namespace tn::cpu
