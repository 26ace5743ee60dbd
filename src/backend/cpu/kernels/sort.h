#pragma once
// Sorting along the last axis of a contiguous [rows, n] array, for every element type.
//
// All sorts are stable: equal elements (-0 and 0 among them) keep their order. NaN comes last in
// both directions. Complex numbers compare by real part, then by imaginary part. Results do not
// depend on the number of threads.
#include <cstdint>

#include "runtime/element_kind.h"

namespace tn {

void sort(Element type, int64_t rows, int64_t n, const void* from, void* to,
          bool descending = false);

/// The positions that sort each row.
void argsort(Element type, int64_t rows, int64_t n, const void* from, int64_t* to,
             bool descending = false);

/// The `k` largest of each row, the largest first, equal ones by position, and their positions.
/// `values` or `indices` may be null. NaN counts as smallest. Needs k <= n.
void top_k(Element type, int64_t rows, int64_t n, int64_t k, const void* from, void* values,
           int64_t* indices);

}  // namespace tn
