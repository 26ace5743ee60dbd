#pragma once
// The structural key: what a flush computes, apart from the values of its leaves.
#include "ir/walk.h"

namespace tn {

/// Exact: two flushes have equal words just when one plan serves both. Operands are numbered by
/// first use, types and attributes are interned pointers, numbers count by type and class only, the
/// set of outputs is part of it.
struct FlushKey {
  std::vector<uint64_t> room;  // kept for the next key, which is the first `size` words of it
  size_t size = 0;
  uint64_t hash = 0;

  std::span<const uint64_t> words() const { return {room.data(), size}; }
};

void make_key(const Walk& walk, std::span<const Edge> outputs, FlushKey& key);
/// Makes it another key, unlike any without such a word.
void add_word(FlushKey& key, uint64_t word);

/// What stands for a flush in logs: names of ops, attributes, types and structure, the same in
/// every process. Slower than the key's hash, and not exact: for people.
uint64_t shown_hash(const Walk& walk, std::span<const Edge> outputs);

}  // namespace tn
