#pragma once
// Checksums that detect damaged bytes: XXH3, 128 bits.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tn {

struct Checksum {
  uint64_t low = 0, high = 0;
  friend bool operator==(const Checksum&, const Checksum&) = default;
};

/// Of bytes that come in pieces.
class Summing {
 public:
  Summing();
  void add(const void* data, size_t bytes);
  Checksum sum() const;

 private:
  alignas(64) std::byte state_[576];  // XXH3_state_t, which checksum.cpp alone sees
};

Checksum checksum(std::string_view bytes, uint64_t seed = 0);
/// 64 bits, for what is short.
uint64_t short_checksum(const void* data, size_t bytes);

/// Large data is summed by blocks, which threads share.
constexpr uint64_t kSumBlock = uint64_t{4} << 20;
/// One for each block of `data`; the last block may be shorter.
std::vector<Checksum> block_sums(std::string_view data);

/// The same of data that comes in pieces.
class BlockSumming {
 public:
  void add(const void* data, size_t bytes);
  /// Of all that was added.
  std::vector<Checksum> finish();

 private:
  Summing block_;
  uint64_t bytes_ = 0;  // of the block that is not full
  std::vector<Checksum> sums_;
};

}  // namespace tn
