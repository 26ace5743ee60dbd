#include "storage/weight_ranges.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "storage/checksum.h"

namespace tn::tnx {

void verify_weights(const File& file, std::span<const WeightRange> ranges) {
  if (!file.has(Kind::sums) || !file.has(Kind::weights)) return file.verify();
  std::string right = file.read(Kind::sums);
  uint64_t length = std::ranges::find(file.sections(), Kind::weights, &SectionInfo::kind)->length;
  uint64_t blocks = (length + kSumBlock - 1) / kSumBlock;
  // Where the list does not fit the weights, the whole check says so.
  if (right.size() != blocks * sizeof(Checksum)) return file.verify();
  std::vector<bool> seen(blocks);
  for (const WeightRange& range : ranges) {
    uint64_t end = range.place + range.bytes;
    for (uint64_t b = range.place / kSumBlock; b * kSumBlock < end; ++b) {
      if (seen[b]) continue;
      seen[b] = true;
      uint64_t place = b * kSumBlock, bytes = std::min(kSumBlock, length - place);
      BufferRef held = file.weights(place, bytes);
      Checksum sum = checksum({held.data<char>(), bytes});
      if (std::memcmp(&sum, right.data() + b * sizeof sum, sizeof sum) != 0)
        fail("load: {} is damaged: the checksum of section weights, from byte {} on", file.name(),
             place);
    }
  }
}

}  // namespace tn::tnx
