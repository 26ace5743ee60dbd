#pragma once
// Device code that the build has compiled (cmake/prebuilt.cmake), as PTX.
#include <string_view>

namespace tn::cuda {

/// Of attention_kernels.cu, convolution_kernels.cu, …; "" in a build without clang.
std::string_view attention_ptx();
std::string_view attention_hopper_ptx();  // for sm_90 alone
std::string_view convolution_ptx();
std::string_view joining_ptx();
std::string_view product_ptx();
std::string_view running_ptx();
std::string_view scatter_ptx();
std::string_view sort_ptx();
std::string_view window_ptx();

}  // namespace tn::cuda
