#pragma once
// Hashing: 64-bit, stable between processes, not cryptographic.
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tn {

constexpr uint64_t mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  return x ^ (x >> 32);
}

constexpr uint64_t combine(uint64_t seed, uint64_t value) {
  return mix(seed * 0x9e3779b97f4a7c15u + value);
}

inline uint64_t hash_bytes(const void* data, size_t size, uint64_t seed = 0) {
  const char* at = static_cast<const char*>(data);
  uint64_t hash = combine(seed, size);
  for (; size >= 8; at += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    hash = combine(hash, word);
  }
  uint64_t rest = 0;
  if (size) std::memcpy(&rest, at, size);  // no bytes may be at null
  return combine(hash, rest);
}

inline uint64_t hash_text(std::string_view text, uint64_t seed = 0) {
  return hash_bytes(text.data(), text.size(), seed);
}

}  // namespace tn
