#pragma once
// Kernels in the disk cache: an object file with the numbers that running it takes.
#include "backend/cpu/kernel_code.h"

namespace tn::cpu {

/// The kernel saved under `key`, which identifies what it computes and for which processors. Only a
/// library that would compile it to the same code finds it.
struct SavedKernel {
  std::shared_ptr<const tn::KernelCode> code;  // null: there is none
  std::string bytes;                           // of kernel_to_bytes
};
SavedKernel load_kernel(std::string_view key);
void save_kernel(std::string_view key, std::string_view bytes);

}  // namespace tn::cpu
