#include "storage/unpacked.h"

#include <zstd.h>

#include "base/error.h"

namespace tn {

std::string unpacked(std::span<const unsigned char> packed, size_t length) {
  std::string text(length, '\0');
  if (length == 0) return text;  // there is none
  size_t made = ZSTD_decompress(text.data(), length, packed.data(), packed.size());
  invariant(made == length, "storage: {} bytes were unpacked, not {}", made, length);
  return text;
}

}  // namespace tn
