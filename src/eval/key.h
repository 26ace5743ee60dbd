#pragma once
// The structural key: what a flush computes, apart from the values of its leaves.
#include "ir/walk.h"

namespace tn {

/// Exact: two flushes have equal words just when one plan serves both. Operands are numbered by
/// first use, types and attributes are interned pointers, numbers count by type and class only, the
/// set of outputs is part of it.
struct FlushKey {
  std::vector<uint64_t> words;
  uint64_t hash = 0;
};

void make_key(const Walk& walk, std::span<const Edge> outputs, FlushKey& key);

/// What stands for a flush in logs: names of ops, attributes, types and structure, the same in
/// every process. Slower than the key's hash, and not exact: for people.
uint64_t shown_hash(const Walk& walk, std::span<const Edge> outputs);

}  // namespace tn
