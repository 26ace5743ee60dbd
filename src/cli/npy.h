#pragma once
// Files of NumPy, .npy: one array each.
#include <string>
#include <string_view>

#include "tenon/tensor.h"

namespace tn {

/// The array of a file. Element types without a name in NumPy are read from bytes of their size: an
/// array of "V2" is bf16. Errors name the file and what is wrong with it.
Tensor read_npy(const std::string& path);
/// The same of its bytes.
Tensor parse_npy(std::string_view bytes, const std::string& path);
void write_npy(const std::string& path, const Tensor& x);

}  // namespace tn
