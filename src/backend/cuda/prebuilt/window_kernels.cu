// Windows added where they came from, for GPUs. A thread has one element of the result and adds the
// windows that meet there in the CPU's order, by place. The build compiles this to PTX
// (cmake/prebuilt.cmake).
#include "backend/cuda/prebuilt/gpu_numbers.h"

constexpr int kSpatial = 3, kFoldThreads = 256;

/// As in cuda_windows.cpp.
struct Fold {
  const void* windows;
  void* out;
  int64 count;  // of the elements of the result
  int64 places[kSpatial], size[kSpatial], extent[kSpatial], step[kSpatial], apart[kSpatial];
};

/// The places whose windows may meet element `at` along an axis.
struct Reach {
  int64 first, end;
};
inline Reach reach_of(const Fold& p, int k, int64 at) {
  int64 before = at - (p.size[k] - 1) * p.apart[k];  // the first element that they may begin at
  int64 first = before <= 0 ? 0 : (before + p.step[k] - 1) / p.step[k], end = at / p.step[k] + 1;
  return {first, end < p.places[k] ? end : p.places[k]};
}

template <class T>
inline void fold_windows(const Fold& p) {
  using Sum = typename T::Sum;
  int64 number = block() * kFoldThreads + thread();
  if (number >= p.count) return;
  int64 r2 = number / p.extent[2], r1 = r2 / p.extent[1], tensor = r1 / p.extent[0];
  int64 at0 = r1 - tensor * p.extent[0], at1 = r2 - r1 * p.extent[1];
  int64 at2 = number - r2 * p.extent[2];
  int64 each = p.size[0] * p.size[1] * p.size[2];
  auto* windows = static_cast<const typename T::Memory*>(p.windows) +
                  tensor * p.places[0] * p.places[1] * p.places[2] * each;
  Sum sum = Sum(0);
  Reach y0s = reach_of(p, 0, at0), y1s = reach_of(p, 1, at1), y2s = reach_of(p, 2, at2);
  for (int64 y0 = y0s.first; y0 < y0s.end; ++y0) {
    int64 d0 = at0 - y0 * p.step[0], k0 = d0 / p.apart[0];
    if (k0 * p.apart[0] != d0) continue;
    for (int64 y1 = y1s.first; y1 < y1s.end; ++y1) {
      int64 d1 = at1 - y1 * p.step[1], k1 = d1 / p.apart[1];
      if (k1 * p.apart[1] != d1) continue;
      for (int64 y2 = y2s.first; y2 < y2s.end; ++y2) {
        int64 d2 = at2 - y2 * p.step[2], k2 = d2 / p.apart[2];
        if (k2 * p.apart[2] != d2) continue;
        int64 place = (y0 * p.places[1] + y1) * p.places[2] + y2;
        int64 tap = (k0 * p.size[1] + k1) * p.size[2] + k2;
        sum = T::add(sum, T::load(windows[place * each + tap]));
      }
    }
  }
  static_cast<typename T::Memory*>(p.out)[number] = T::store(sum);
}

#define FOLD(name, ...) \
  TN_KERNEL(fold_##name, Fold) { fold_windows<__VA_ARGS__>(p); }

FOLD(f32, F32)
FOLD(f64, F64)
FOLD(f16, F16)
FOLD(bf16, BF16)
FOLD(b8, Whole<uint8>)
FOLD(b16, Whole<uint16>)
FOLD(b32, Whole<uint32>)
FOLD(b64, Whole<uint64>)
