#include "storage/checksum.h"

#define XXH_INLINE_ALL  // nothing to link
#include <xxhash.h>

#include <algorithm>
#include <new>

#include "runtime/threads.h"

namespace tn {
namespace {

constexpr int64_t kBlockNanoseconds = kSumBlock / 8;  // of one block: 8 bytes a nanosecond

Checksum from(XXH128_hash_t sum) { return {sum.low64, sum.high64}; }

XXH3_state_t* state_at(const std::byte* place) {
  return reinterpret_cast<XXH3_state_t*>(const_cast<std::byte*>(place));
}

}  // namespace

Summing::Summing() {
  static_assert(sizeof state_ == sizeof(XXH3_state_t) && alignof(XXH3_state_t) <= 64);
  XXH3_128bits_reset(new (state_) XXH3_state_t);
}

void Summing::add(const void* data, size_t bytes) {
  XXH3_128bits_update(state_at(state_), data, bytes);
}

Checksum Summing::sum() const { return from(XXH3_128bits_digest(state_at(state_))); }

Checksum checksum(std::string_view bytes, uint64_t seed) {
  return from(XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed));
}

uint64_t short_checksum(const void* data, size_t bytes) { return XXH3_64bits(data, bytes); }

std::vector<Checksum> block_sums(std::string_view data) {
  std::vector<Checksum> sums((data.size() + kSumBlock - 1) / kSumBlock);
  parallel_for(static_cast<int64_t>(sums.size()), kBlockNanoseconds, [&](int64_t block) {
    auto at = static_cast<size_t>(block);
    sums[at] = checksum(data.substr(at * kSumBlock, kSumBlock));
  });
  return sums;
}

void BlockSumming::add(const void* data, size_t bytes) {
  for (auto* from = static_cast<const char*>(data); bytes > 0;) {
    size_t part = std::min<uint64_t>(bytes, kSumBlock - bytes_);
    block_.add(from, part);
    from += part, bytes -= part, bytes_ += part;
    if (bytes_ < kSumBlock) continue;
    sums_.push_back(block_.sum());
    block_ = {}, bytes_ = 0;
  }
}

std::vector<Checksum> BlockSumming::finish() {
  if (bytes_ > 0) sums_.push_back(block_.sum());
  block_ = {}, bytes_ = 0;
  return std::move(sums_);
}

}  // namespace tn
