#pragma once
#include <cstdint>

namespace tn {

/// Of the bytes that set_writer.cpp makes and set_reader.cpp reads: changes with them.
inline constexpr uint32_t kSetFormat = 1;

}  // namespace tn
