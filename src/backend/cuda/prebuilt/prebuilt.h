#pragma once
// Device code that the build has compiled (cmake/prebuilt.cmake).
#include <string_view>

namespace tn::cuda {

/// Of product_kernels.cu; "" in a build without clang.
std::string_view products_ptx();

}  // namespace tn::cuda
