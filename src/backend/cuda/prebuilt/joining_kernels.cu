// Tensors side by side for GPUs. The build compiles this to PTX (cmake/prebuilt.cmake).
#include "backend/cuda/prebuilt/gpu_code.h"

constexpr int kJoined = 64;  // tensors of a launch

/// As in cuda_joining.cpp. Widths are in units of what a thread copies.
struct Join {
  const void* x[kJoined];
  int64 first[kJoined + 1];  // where the row of each begins in a row of all, and the last ends
  void* out;
  int64 rows, pitch;  // units of a row of the result
  int64 count;        // of tensors
};

template <class T>
inline void join(const Join& p) {
  int64 width = p.first[p.count] - p.first[0], i = block() * 256 + thread();
  if (i >= p.rows * width) return;
  int64 row = i / width, at = p.first[0] + (i - row * width), low = 0, high = p.count;
  while (high - low > 1) {
    int64 middle = (low + high) / 2;
    (p.first[middle] <= at ? low : high) = middle;
  }
  int64 own = p.first[low + 1] - p.first[low];
  static_cast<T*>(p.out)[row * p.pitch + at] =
      static_cast<const T*>(p.x[low])[row * own + (at - p.first[low])];
}

TN_KERNEL(join_8, Join) { join<uint8>(p); }
TN_KERNEL(join_16, Join) { join<uint16>(p); }
TN_KERNEL(join_32, Join) { join<uint32>(p); }
TN_KERNEL(join_64, Join) { join<uint64>(p); }
