#pragma once
// Programs behind products, as the threads that have the results run them.
#include "backend/cuda/prebuilt/gpu_code.h"
#include "backend/cuda/prebuilt/product_tails.h"

/// The program on all results `x` of a thread, for which it has loaded `loaded`.
template <int Results>
__attribute__((always_inline)) inline void run_tail(const TailProgram& tail, float (&x)[Results],
                                                    const float (&loaded)[kTailLoads][Results]) {
  float y[Results] = {};
  TN_UNROLL_BY(1)
  for (int s = 0; s < tail.steps; ++s) {
    const TailStep step = tail.step[s];
    float own[Results], o[Results];
    TN_UNROLL
    for (int e = 0; e < Results; ++e) {
      own[e] = step.is_beside ? y[e] : x[e];
      o[e] = step.operand == kTailNumber ? step.number : y[e];
      TN_UNROLL
      for (int l = 0; l < kTailLoads; ++l)
        if (step.operand == l) o[e] = loaded[l][e];
    }
    auto make = [&](auto f) {
      TN_UNROLL
      for (int e = 0; e < Results; ++e) {
        float made = f(own[e], y[e], o[e]);
        x[e] = step.is_beside ? x[e] : made;
        y[e] = step.is_beside ? made : y[e];
      }
    };
    switch (step.op) {
      case kTailAdd:
        make([](float a, float, float b) { return a + b; });
        break;
      case kTailMultiply:
        make([](float a, float, float b) { return a * b; });
        break;
      case kTailSubtract:
        make([](float a, float, float b) { return a - b; });
        break;
      case kTailSubtractFrom:
        make([](float a, float, float b) { return b - a; });
        break;
      case kTailLargest:
        make([](float a, float, float b) { return a > b || a != a ? a : b; });
        break;
      case kTailKeepAbove:
        make([&](float a, float beside, float b) { return step.least < beside ? a : b; });
        break;
      default:
        make([](float, float, float b) { return b; });
    }
  }
}
