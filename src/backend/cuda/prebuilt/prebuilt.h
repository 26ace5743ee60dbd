#pragma once
// Device code that the build has compiled (cmake/prebuilt.cmake), as PTX.
#include <span>
#include <string_view>

namespace tn::cuda {

/// Of attention_kernels.cu, convolution_kernels.cu, …; "" in a build without clang. libtenon_rt has
/// the name instead of the text: files bring the code.
std::string_view attention_ptx();
std::string_view attention_gradient_ptx();
std::string_view attention_gradient_hopper_ptx();  // for sm_90 alone
std::string_view attention_hopper_ptx();           // for sm_90 alone
std::string_view convolution_ptx();
std::string_view interpreter_ptx();
std::string_view joining_ptx();
std::string_view product_ptx();
std::string_view running_ptx();
std::string_view scatter_ptx();
std::string_view sort_ptx();
std::string_view window_ptx();

struct Prebuilt {
  std::string_view name, ptx;
};
/// All of them by name: "convolution".
std::span<const Prebuilt> prebuilt();
/// Changes with the sources of the code, which define its parameters too.
std::string_view prebuilt_version();

}  // namespace tn::cuda
