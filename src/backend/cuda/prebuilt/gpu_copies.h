#pragma once
// Copies from a GPU's memory to shared memory that go on while the thread that began them works.
#include "backend/cuda/prebuilt/gpu_code.h"

#if defined(__NVPTX__)

inline uint32 shared_address(const void* at) {
  return static_cast<uint32>(
      reinterpret_cast<uint64>((__attribute__((address_space(3))) const void*)at));
}

/// Begins a copy of 4, 8 or 16 bytes, aligned so. Where `from` may be null, zeros are written then.
/// 16 bytes pass by the near cache: shared memory takes its place.
template <int Bytes, bool MayBeNull>
__attribute__((always_inline)) inline void begin_copy(void* to, const void* from) {
  auto at = reinterpret_cast<uint64>((__attribute__((address_space(1))) const void*)from);
  uint32 own = shared_address(to), read = from ? Bytes : 0;
  if constexpr (MayBeNull && Bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(own), "l"(at), "r"(read)
                 : "memory");
  else if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(own), "l"(at) : "memory");
  else if constexpr (MayBeNull)
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(own), "l"(at), "n"(Bytes),
                 "r"(read)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(own), "l"(at), "n"(Bytes)
                 : "memory");
}
/// What was begun since the last call is one group.
inline void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// For all groups of this thread but the last so many. Other threads see them after they meet.
template <int But>
inline void wait_for_groups() {
  asm volatile("cp.async.wait_group %0;" ::"n"(But) : "memory");
}

#else

/// Copies that a thread has begun. They are made as late as can be, when it waits for them.
struct BegunCopies {
  static constexpr int kMost = 128;
  struct One {
    void* to;
    const void* from;
    int bytes, group;
  };
  One all[kMost];
  int count = 0, groups = 0;
};
inline BegunCopies begun_copies[1024];  // by thread

template <int Bytes, bool MayBeNull>
inline void begin_copy(void* to, const void* from) {
  BegunCopies& own = begun_copies[thread()];
  own.all[own.count++] = {to, from, Bytes, own.groups};
}
inline void end_group() { ++begun_copies[thread()].groups; }
template <int But>
inline void wait_for_groups() {
  BegunCopies& own = begun_copies[thread()];
  int left = 0;
  for (int i = 0; i < own.count; ++i) {
    BegunCopies::One one = own.all[i];
    if (one.group >= own.groups - But)
      own.all[left++] = one;
    else if (one.from)
      __builtin_memcpy(one.to, one.from, static_cast<unsigned long>(one.bytes));
    else
      __builtin_memset(one.to, 0, static_cast<unsigned long>(one.bytes));
  }
  own.count = left;
}

#endif
