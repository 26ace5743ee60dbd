#pragma once
// What tells whether bytes are still those that were written.
#define XXH_INLINE_ALL  // nothing to link
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tn {

struct Checksum {
  uint64_t low = 0, high = 0;
  friend bool operator==(const Checksum&, const Checksum&) = default;
};

class Summing {
 public:
  Summing() { XXH3_128bits_reset(&state_); }
  void add(const void* data, size_t bytes) { XXH3_128bits_update(&state_, data, bytes); }
  Checksum sum() const {
    XXH128_hash_t sum = XXH3_128bits_digest(&state_);
    return {sum.low64, sum.high64};
  }

 private:
  XXH3_state_t state_;
};

inline Checksum checksum(std::string_view bytes) {
  Summing summing;
  summing.add(bytes.data(), bytes.size());
  return summing.sum();
}

}  // namespace tn
