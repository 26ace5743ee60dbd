#include "backend/cuda/prebuilt/unpacked.h"

#include <zstd.h>

#include "base/error.h"

namespace tn::cuda {

std::string unpacked(std::span<const unsigned char> packed, size_t length) {
  std::string text(length, '\0');
  if (length == 0) return text;  // built without clang
  size_t made = ZSTD_decompress(text.data(), length, packed.data(), packed.size());
  invariant(made == length, "cuda: device code of {} bytes, not of {}", made, length);
  return text;
}

}  // namespace tn::cuda
