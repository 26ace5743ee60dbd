#pragma once
// The bytes of NumPy's files, .npy: one array each.
#include <string>
#include <string_view>

#include "tenon/files.h"

namespace tn {

/// The array in the bytes of a file. Element types without a name in NumPy are read from bytes of
/// their size: an array of "V2" is bf16. Errors name the file and what is wrong with it.
Tensor parse_npy(std::string_view bytes, const std::string& path);
/// The bytes of a file.
std::string npy_bytes(const Tensor& x);

}  // namespace tn
