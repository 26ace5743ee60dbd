#pragma once
// What device code is written with. Tests compile it for the host too: there threads of a block
// take turns (tests/cpp/device_threads.h). No header of the standard library: there is none for
// GPUs.

using int64 = long long;
using uint64 = unsigned long long;
using uint32 = unsigned;
using uint16 = unsigned short;
using uint8 = unsigned char;

#if defined(__NVPTX__)

#define TN_PRAGMA(text) _Pragma(#text)
#define TN_UNROLL TN_PRAGMA(unroll)
#define TN_UNROLL_BY(count) TN_PRAGMA(unroll count)
#define TN_KERNEL(name, Params) extern "C" __attribute__((nvptx_kernel)) void name(Params p)

// As much as the launch says.
extern __attribute__((address_space(3), aligned(16))) char shared_memory[];

inline int thread() { return static_cast<int>(__nvvm_read_ptx_sreg_tid_x()); }
inline int64 block() { return __nvvm_read_ptx_sreg_ctaid_x(); }
inline void meet() { __syncthreads(); }
template <class T>
__attribute__((always_inline)) inline T& shared() {
  return *(T*)(char*)shared_memory;
}

#else

#define TN_UNROLL
#define TN_UNROLL_BY(count)
#define TN_KERNEL(name, Params) inline void name(Params p)

/// The thread that runs, and how it waits for the others of its block.
struct Turn {
  int thread = 0;
  int64 block = 0;
  char* memory = nullptr;
  void (*wait)() = nullptr;
};
inline Turn turn;

inline int thread() { return turn.thread; }
inline int64 block() { return turn.block; }
inline void meet() { turn.wait(); }
template <class T>
inline T& shared() {
  return *reinterpret_cast<T*>(turn.memory);
}

#endif
