#pragma once
// Text that the build has packed.
#include <span>
#include <string>

namespace tn {

/// The text, which has this many bytes.
std::string unpacked(std::span<const unsigned char> packed, size_t length);

}  // namespace tn
