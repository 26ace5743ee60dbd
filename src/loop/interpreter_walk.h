#pragma once
// Moving elements between buffers and registers along affine walks.
#include "loop/interpreter_program.h"

namespace tn::loop::machine {

/// Calls f(at, offset, count, stride) for runs of consecutive points that lie one stride apart.
template <class F>
inline void walk(const Loop* loops, int count, int64_t first, int64_t n, int64_t offset, F&& f) {
  if (count == 0) return f(int64_t{0}, offset, n, int64_t{0});
  if (count == 1) return f(int64_t{0}, offset + first * loops[0].stride, n, loops[0].stride);
  int64_t position[32];
  for (int k = count - 1; k >= 0; --k) {
    position[k] = k == 0 ? first : first % loops[k].extent;
    offset += position[k] * loops[k].stride;
    first /= loops[k].extent;
  }
  const Loop& last = loops[count - 1];
  int64_t at = 0, inside = position[count - 1];
  while (true) {
    int64_t run = last.extent - inside;
    if (run > n - at) run = n - at;
    f(at, offset, run, last.stride);
    at += run;
    if (at == n) return;
    offset -= inside * last.stride;
    inside = 0;
    int k = count - 2;
    offset += loops[k].stride;
    while (++position[k] == loops[k].extent && k > 0) {
      offset -= position[k] * loops[k].stride;
      position[k] = 0;
      offset += loops[--k].stride;
    }
  }
}

/// The same over a block; `at` counts the points of the block.
template <class F>
inline void walk(const BlockProgram& program, const Access& access, const Block& block, F&& f) {
  const Loop* inner = program.loops.data() + access.inner.first;
  if (block.outers == 1 && access.outer.count == 0)
    return walk(inner, access.inner.count, block.inner, block.inners, access.base, f);
  const Loop* outer = program.loops.data() + access.outer.first;
  walk(outer, access.outer.count, block.outer, block.outers, access.base,
       [&](int64_t row, int64_t offset, int64_t rows, int64_t stride) {
         for (int64_t r = 0; r < rows; ++r)
           walk(inner, access.inner.count, block.inner, block.inners, offset + r * stride,
                [&](int64_t at, int64_t place, int64_t n, int64_t instruction) {
                  f((row + r) * block.inners + at, place, n, instruction);
                });
       });
}

/// The offset of the block's first point when all of them lie side by side, else -1.
int64_t contiguous_offset(const BlockProgram& program, const Access& access, const Block& block);

void fill(const BlockProgram& program, const Access& access, const Block& block, const void* buffer,
          const uint8_t* mask, void* dst);
/// The same with an offset of its own for each inner point, along which nothing else varies.
void fill_columns(const BlockProgram& program, const Access& access, const Block& block,
                  const void* buffer, const int64_t* offsets, const uint8_t* mask, void* dst);
/// The same with an offset of its own for each outer point.
void fill_rows(const BlockProgram& program, const Access& access, const Block& block,
               const void* buffer, const int64_t* offsets, const uint8_t* mask, void* dst);
void spill(const BlockProgram& program, const Access& access, const Block& block, void* buffer,
           const uint8_t* mask, const void* src);
void count(const BlockProgram& program, const Access& access, const Block& block, int64_t* dst);
void gather(int size, const void* buffer, const int64_t* offsets, const uint8_t* mask, void* dst,
            int64_t n);
void scatter_set(int size, void* buffer, const int64_t* offsets, const uint8_t* mask,
                 const void* src, int64_t n);
/// dst[i] = the element at src, for i < n.
void splat(int size, void* dst, const void* src, int64_t n);

enum class MaskState : uint8_t { none, some, all };
MaskState state_of(const uint8_t* mask, int64_t n);

}  // namespace tn::loop::machine
