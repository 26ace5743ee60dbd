#pragma once
// The library's own thread pool: parallel loops over chunks, distributed and then work-stolen.
#include <cstdint>

#include "base/function_ref.h"
#include "tenon/threads.h"

namespace tn {

/// Which thread of a parallel_for this is, for memory of its own: the caller is 0.
int thread_number();

/// Calls `body(0) … body(chunks - 1)`, each once, on any thread, and returns when all are done.
///
/// The caller fixes `chunks` from shapes only, so that results do not depend on the number of
/// threads. The caller works too and waits only for chunks that another thread has begun. Inside a
/// chunk, or while another thread uses the pool, the loop runs on the calling thread. The first
/// exception of a chunk is thrown to the caller; chunks not yet begun are then left out.
///
/// `nanoseconds_of_chunk` is approximate: sleeping workers are not woken for less than the wake-up
/// costs. Workers that are still spinning help in any case.
void parallel_for(int64_t chunks, int64_t nanoseconds_of_chunk,
                  FunctionRef<void(int64_t chunk)> body);
inline void parallel_for(int64_t chunks, FunctionRef<void(int64_t chunk)> body) {
  parallel_for(chunks, 1'000'000, body);
}

/// The number of chunks of about `elements_per_chunk`; 1 for little work, 0 for none.
inline int64_t chunks_for(int64_t elements, int64_t elements_per_chunk) {
  if (elements <= 0) return 0;
  return (elements - 1) / elements_per_chunk + 1;
}

/// Elements [begin, end) of chunk number `chunk` when `elements` are dealt out evenly.
struct ChunkRange {
  int64_t begin, end;
};
inline ChunkRange chunk_range(int64_t elements, int64_t chunks, int64_t chunk) {
  int64_t each = elements / chunks, rest = elements % chunks;
  int64_t begin = each * chunk + (chunk < rest ? chunk : rest);
  return {begin, begin + each + (chunk < rest ? 1 : 0)};
}

}  // namespace tn
