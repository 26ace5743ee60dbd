// The math kernels as compiled for x86-64-v4, to compare their bits with the baseline's.

// The standard headers come first, so that nothing of theirs is compiled for this level.
#include <bit>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>

#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
#pragma GCC optimize("O3,fp-contract=off,no-math-errno,no-trapping-math")
#pragma GCC optimize("tree-vectorize,vect-cost-model=dynamic")
#undef TN_LEVEL
#define TN_LEVEL v4
#include "test_math_kernels.h"

tn::math_test::Kernels tn::math_test::kernels_v4() { return tn::v4::math_test::kernels(); }
