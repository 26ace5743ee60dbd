#pragma once
// Device code is packed in the library: text of several megabytes.
#include <span>
#include <string>

namespace tn::cuda {

/// The text, which has this many bytes.
std::string unpacked(std::span<const unsigned char> packed, size_t length);

}  // namespace tn::cuda
