#pragma once
// Tiles of 16-bit elements in shared memory, for tensor cores that read registers.
#include "backend/cuda/prebuilt/attention_parts.h"

constexpr int kThreads = 256;

/// Rows of a tile, 16-byte pieces exchanged so that neighbours of a column lie in different banks.
template <int N, int D>
struct Rows {
  uint16 at[N][D];
  TN_INLINE void* piece(int row, int k) { return &at[row][(k ^ row % 8) * 8]; }
};
/// Rows of an operand; zeros beyond the last one and beyond the depth.
struct Source {
  const uint16* at;
  int64 row, column;
  int count, depth;
  bool vectors;
};
template <int N, int D>
TN_INLINE inline void bring(const Source& from, int first, Rows<N, D>& to) {
  constexpr int kPieces = D / 8, kRows = kThreads / kPieces;
  int piece = thread() % kPieces, row0 = thread() / kPieces;
  if (from.vectors) {
    TN_UNROLL
    for (int i = 0; i < N / kRows; ++i) {
      int row = row0 + i * kRows;
      bool wanted = first + row < from.count && piece * 8 < from.depth;
      const uint16* x = from.at + (first + row) * from.row + piece * 8;
      copy_near(to.piece(row, piece), wanted ? x : from.at, wanted);
    }
    return;
  }
  TN_UNROLL_BY(1)
  for (int i = 0; i < N * D; i += kThreads) {
    int row = (i + thread()) / D, column = (i + thread()) % D;
    bool wanted = first + row < from.count && column < from.depth;
    auto* out = static_cast<uint16*>(to.piece(row, column / 8)) + column % 8;
    *out = wanted ? from.at[(first + row) * from.row + column * from.column] : 0;
  }
}

/// 16 rows and columns as fragments of a left operand.
template <int N, int D>
TN_INLINE inline void load_left(uint32 (&to)[4], Rows<N, D>& from, int row, int step) {
  load_matrices<false>(to, from.piece(row + lane() % 16, step * 2 + lane() / 16));
}
/// 16 deep, two times 8 columns: rows of `from` are columns; or, turned, its columns are.
template <int N, int D>
TN_INLINE inline void load_right(uint32 (&to)[4], Rows<N, D>& from, int row, int step) {
  load_matrices<false>(to,
                       from.piece(row + lane() % 8 + lane() / 16 * 8, step * 2 + lane() / 8 % 2));
}
template <int N, int D>
TN_INLINE inline void load_right_turned(uint32 (&to)[4], Rows<N, D>& from, int row, int step) {
  load_matrices<true>(to,
                      from.piece(row + lane() % 8 + lane() / 8 % 2 * 8, step * 2 + lane() / 16));
}
template <class T>
TN_INLINE inline void multiply_pair(float* c, const uint32 (&a)[4], const uint32 (&b)[4]) {
  multiply<T>(c, a, b[0], b[1]);
  multiply<T>(c + 4, a, b[2], b[3]);
}
/// Elements 8 i … 8 i + 7 of a thread's part of a tile as fragments of a left operand.
template <class T, int N>
TN_INLINE inline void as_left(uint32 (&to)[4], const float (&s)[N], int i) {
  TN_UNROLL
  for (int j = 0; j < 4; ++j) to[j] = packed<T>(s[i * 8 + j * 2], s[i * 8 + j * 2 + 1]);
}
