#pragma once
// The shape of the tree that every reduction follows, in the interpreter, in machine code and in C
// source. It defines the bits of results.
//
// Element i of the folded axes, row-major, belongs to chunk i / kChunk and in it to lane i %
// kLanes. A lane is folded in order. Lanes are combined by halving: lane k joins lane k + 32, k +
// 16, ... 1. The results of the chunks are folded the same way. A lane without elements holds the
// identity.
//
// Promised: the tree depends on the extent and on nothing else. A graph gives the same bits on any
// number of threads, at every CPU level, for any strides, interpreted or compiled, at every effort,
// from a file, and as C, where only sums of products of matrices may differ. NaNs are NaNs, but
// their signs and payloads are not promised. Changing a constant here changes results.
#include <cstdint>

#include "base/integers.h"

namespace tn::loop {

inline constexpr int64_t kLanes = 64;
inline constexpr int64_t kChunk = 16384;

/// Products of matrices of floats are sums over K blocks of this length, which depends on k alone.
inline constexpr int64_t kBlockDepth = 768, kOneBlockDepth = 1024;
inline constexpr int64_t kDepthUnit = 32;  // whole tiles of AMX, whole complex elements
constexpr int64_t product_depth(int64_t k) {
  int64_t blocks = k <= kOneBlockDepth ? 1 : (k + kBlockDepth - 1) / kBlockDepth;
  return round_up((k + blocks - 1) / blocks, kDepthUnit);
}

}  // namespace tn::loop
