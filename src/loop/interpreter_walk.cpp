#include "loop/interpreter_walk.h"

#include <bit>
#include <cstring>

#include "loop/interpreter_ops.h"
#include "runtime/with_bits.h"

namespace tn::loop::machine {
namespace {

/// Moves do not compute, so those of one table serve every program.
const MoveFns& moves(int size) {
  static const BlockOps& ops = block_ops();
  return ops.move[std::countr_zero(static_cast<unsigned>(size))];
}

}  // namespace

int64_t contiguous_offset(const BlockProgram& program, const Access& access, const Block& block) {
  if (!access.unit && access.inner.count <= 1 && block.inners > 1) return -1;
  int64_t offset = access.base;
  const Loop* inner = program.loops.data() + access.inner.first;
  if (access.inner.count == 1) {
    offset += block.inner * inner[0].stride;
  } else if (access.inner.count > 1) {  // side by side as long as the innermost loop does not end
    const Loop& last = inner[access.inner.count - 1];
    if (last.stride != 1 || block.inner % last.extent + block.inners > last.extent) return -1;
    int64_t from = offset;
    walk(inner, access.inner.count, block.inner, block.inners, from,
         [&](int64_t, int64_t place, int64_t, int64_t) { offset = place; });
  }
  if (access.outer.count == 0) return block.outers == 1 ? offset : -1;
  if (access.outer.count == 1) {
    int64_t stride = program.loops[static_cast<size_t>(access.outer.first)].stride;
    if (block.outers > 1 && stride != block.inners) return -1;
    return offset + block.outer * stride;
  }
  if (block.outers > 1) return -1;
  walk(program.loops.data() + access.outer.first, access.outer.count, block.outer, 1, offset,
       [&](int64_t, int64_t place, int64_t, int64_t) { offset = place; });
  return offset;
}

void fill(const BlockProgram& program, const Access& access, const Block& block, const void* buffer,
          const uint8_t* mask, void* dst) {
  with_bits(access.size, [&](auto zero) {
    using T = decltype(zero);
    const T* src = static_cast<const T*>(buffer);
    T* out = static_cast<T*>(dst);
    const MoveFns* move = !mask && sizeof(T) <= 8 ? &moves(access.size) : nullptr;
    walk(program, access, block, [&](int64_t at, int64_t offset, int64_t n, int64_t stride) {
      if (!mask && stride == 1)
        return (void)std::memcpy(out + at, src + offset, static_cast<size_t>(n) * sizeof(T));
      if (move && stride == 0) return move->repeat(out + at, src + offset, n);
      if (move) return move->take(out + at, src + offset, n, stride);
      for (int64_t i = 0; i < n; ++i)
        out[at + i] = !mask || mask[at + i] ? src[offset + i * stride] : T{};
    });
  });
}

void fill_rows(const BlockProgram& program, const Access& access, const Block& block,
               const void* buffer, const int64_t* offsets, const uint8_t* mask, void* dst) {
  constexpr int64_t kShort = 8;  // rows of so many elements are copied faster than by a call
  auto* from = static_cast<const std::byte*>(buffer);
  auto* to = static_cast<std::byte*>(dst);
  int64_t bytes = block.inners * access.size;
  Block row{block.outer, 1, block.inner, block.inners};
  int64_t at = mask || access.outer.count ? -1 : contiguous_offset(program, access, row);
  if (at >= 0 && block.inners <= kShort)
    return with_bits(access.size, [&](auto zero) {
      using T = decltype(zero);
      T* out = static_cast<T*>(dst);
      for (int64_t r = 0; r < block.outers; ++r, out += block.inners) {
        const T* src = static_cast<const T*>(buffer) + offsets[r] + at;
        for (int64_t i = 0; i < block.inners; ++i) out[i] = src[i];
      }
    });
  for (int64_t r = 0; r < block.outers; ++r, to += bytes, ++row.outer)
    if (at >= 0)
      std::memcpy(to, from + (offsets[r] + at) * access.size, static_cast<size_t>(bytes));
    else
      fill(program, access, row, from + offsets[r] * access.size,
           mask ? mask + r * block.inners : nullptr, to);
}

void fill_columns(const BlockProgram& program, const Access& access, const Block& block,
                  const void* buffer, const int64_t* offsets, const uint8_t* mask, void* dst) {
  auto* from = static_cast<const std::byte*>(buffer);
  auto* to = static_cast<std::byte*>(dst);
  walk(program.loops.data() + access.outer.first, access.outer.count, block.outer, block.outers,
       access.base, [&](int64_t row, int64_t offset, int64_t rows, int64_t stride) {
         for (int64_t r = 0; r < rows; ++r) {
           int64_t at = (row + r) * block.inners;
           gather(access.size, from + (offset + r * stride) * access.size, offsets,
                  mask ? mask + at : nullptr, to + at * access.size, block.inners);
         }
       });
}

void spill(const BlockProgram& program, const Access& access, const Block& block, void* buffer,
           const uint8_t* mask, const void* src) {
  with_bits(access.size, [&](auto zero) {
    using T = decltype(zero);
    T* out = static_cast<T*>(buffer);
    const T* in = static_cast<const T*>(src);
    const MoveFns* move = sizeof(T) <= 8 ? &moves(access.size) : nullptr;
    walk(program, access, block, [&](int64_t at, int64_t offset, int64_t n, int64_t stride) {
      if (mask) {
        for (int64_t i = 0; i < n; ++i)
          if (mask[at + i]) out[offset + i * stride] = in[at + i];
      } else if (stride == 1) {
        std::memcpy(out + offset, in + at, static_cast<size_t>(n) * sizeof(T));
      } else if (move) {
        move->put(out + offset, in + at, n, stride);
      } else {
        for (int64_t i = 0; i < n; ++i) out[offset + i * stride] = in[at + i];
      }
    });
  });
}

void count(const BlockProgram& program, const Access& access, const Block& block, int64_t* dst) {
  walk(program, access, block, [&](int64_t at, int64_t offset, int64_t n, int64_t stride) {
    for (int64_t i = 0; i < n; ++i) dst[at + i] = offset + i * stride;
  });
}

void gather(int size, const void* buffer, const int64_t* offsets, const uint8_t* mask, void* dst,
            int64_t n) {
  with_bits(size, [&](auto zero) {
    using T = decltype(zero);
    const T* src = static_cast<const T*>(buffer);
    T* out = static_cast<T*>(dst);
    if (mask)
      for (int64_t i = 0; i < n; ++i) out[i] = mask[i] ? src[offsets[i]] : T{};
    else
      for (int64_t i = 0; i < n; ++i) out[i] = src[offsets[i]];
  });
}

void scatter_set(int size, void* buffer, const int64_t* offsets, const uint8_t* mask,
                 const void* src, int64_t n) {
  with_bits(size, [&](auto zero) {
    using T = decltype(zero);
    T* out = static_cast<T*>(buffer);
    const T* in = static_cast<const T*>(src);
    for (int64_t i = 0; i < n; ++i)
      if (!mask || mask[i]) out[offsets[i]] = in[i];
  });
}

void splat(int size, void* dst, const void* src, int64_t n) { moves(size).repeat(dst, src, n); }

MaskState state_of(const uint8_t* mask, int64_t n) {
  bool first = mask[0];
  if (n > 1 && std::memcmp(mask, mask + 1, static_cast<size_t>(n) - 1) != 0) return MaskState::some;
  return first ? MaskState::all : MaskState::none;
}

}  // namespace tn::loop::machine
