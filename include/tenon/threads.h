#pragma once
// The threads that compute.

namespace tn {

/// Threads that take part in a computation, the caller included: TENON_NUM_THREADS, else the number
/// of CPUs this process may use. Results do not depend on it.
int num_threads();
/// Takes effect with the next computation.
void set_num_threads(int count);

}  // namespace tn
