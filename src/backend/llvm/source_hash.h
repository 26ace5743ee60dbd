#pragma once
// Which sources the library was built from, as far as they decide what code a kernel becomes.
#include <string_view>

namespace tn::codegen {

/// Made by the build (cmake/source_hash.cmake).
std::string_view source_hash();

}  // namespace tn::codegen
