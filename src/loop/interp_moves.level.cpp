// Moving elements between memory and registers: repeated and strided runs.
#include "loop/interpreter_ops.h"

namespace tn::TN_LEVEL {
namespace {

template <class T>
void repeat(void* dst, const void* src, int64_t n) {
  T value = *static_cast<const T*>(src);
  T* out = static_cast<T*>(dst);
  for (int64_t i = 0; i < n; ++i) out[i] = value;
}

template <class T>
void take(void* dst, const void* src, int64_t n, int64_t stride) {
  T* out = static_cast<T*>(dst);
  const T* in = static_cast<const T*>(src);
  if (stride == -1)
    for (int64_t i = 0; i < n; ++i) out[i] = in[-i];
  else if (stride == 2)
    for (int64_t i = 0; i < n; ++i) out[i] = in[2 * i];
  else
    for (int64_t i = 0; i < n; ++i) out[i] = in[i * stride];
}

template <class T>
void put(void* dst, const void* src, int64_t n, int64_t stride) {
  T* out = static_cast<T*>(dst);
  const T* in = static_cast<const T*>(src);
  if (stride == 2)
    for (int64_t i = 0; i < n; ++i) out[2 * i] = in[i];
  else
    for (int64_t i = 0; i < n; ++i) out[i * stride] = in[i];
}

}  // namespace

void fill_moves(loop::BlockOps& ops) {
  ops.move[0] = {repeat<uint8_t>, take<uint8_t>, put<uint8_t>};
  ops.move[1] = {repeat<uint16_t>, take<uint16_t>, put<uint16_t>};
  ops.move[2] = {repeat<uint32_t>, take<uint32_t>, put<uint32_t>};
  ops.move[3] = {repeat<uint64_t>, take<uint64_t>, put<uint64_t>};
}

}  // namespace tn::TN_LEVEL
