#pragma once
#include <cstdint>

namespace tn {

/// Of the bytes that set_writer.cpp makes and set_reader.cpp reads: changes with them. Sets of
/// another format are made again from the graph; but a constant may be there only packed, so what
/// reads packed constants, and the order of their elements, must go on reading the old ones.
inline constexpr uint32_t kSetFormat = 1;

}  // namespace tn
