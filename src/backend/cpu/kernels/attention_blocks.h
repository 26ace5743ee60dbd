#pragma once
// Attention: softmax(scale·Q·Kᵀ + mask)·V without the scores ever leaving the caches.
#include <cstdint>

#include "backend/cpu/cpu_level.h"
#include "backend/cpu/kernels/gemm.h"
#include "runtime/element_kind.h"

namespace tn {

/// One matrix per head. Strides count elements; 0 repeats.
struct AttentionOperand {
  const void* data = nullptr;
  const int64_t* offsets = nullptr;  // by head: where its matrix begins
  int64_t row = 0, column = 0;
};

/// A query i sees the keys up to i + keys - queries when `causal`, and those the mask lets it see.
/// A query that sees none gives 0. Half precision is computed in f32 and rounded once.
struct AttentionArgs {
  Element type = Element::f32;  // of q, k, v and the result
  int64_t heads = 0;            // of all batches
  int64_t group = 1;            // consecutive heads that share a head of k and v
  int64_t queries = 0, keys = 0, depth = 0, out_depth = 0;
  double scale = 1;
  bool causal = false;
  AttentionOperand q = {}, k = {}, v = {};
  AttentionOperand mask = {};  // optional; boolean: true keeps a score, else it is added to it
  Element mask_type = Element::boolean;
  void* out = nullptr;  // contiguous
  /// For the scores and what is packed: AttentionRoom. Tasks that find none free allocate.
  void* room = nullptr;
  int64_t rooms = 0;
  GemmEpilogue epilogue = {};  // on finished blocks of the result; the head is their batch
};

/// What is done to single rows of f32 or f64, with the library's own exp and order of summation.
template <class T>
struct AttentionRows {
  /// to[i] = from[i·stride]·factor, widened first.
  void (*scale)(Element type, const void* from, int64_t stride, int64_t n, T factor, T* to);
  void (*mask)(Element type, const void* mask, int64_t stride, int64_t n, T* scores);
  /// Scores to weights exp(score - largest); returns their sum, 1 when all are 0.
  T (*weigh)(T* scores, int64_t n);
  /// to[i] = from[i] / divisor, rounded once. `to` may be `from`.
  void (*divide)(const T* from, T divisor, int64_t n, Element type, void* to);
};

struct AttentionLevel {
  AttentionRows<float> f32;
  AttentionRows<double> f64;
};

// Defined above the runtime, where exp is: backend/cpu/library/attention_rows.level.cpp.
namespace v2 {
extern const AttentionLevel attention_level;
}
namespace v3 {
extern const AttentionLevel attention_level;
}
namespace v4 {
extern const AttentionLevel attention_level;
}

/// What a task works in, and how many tasks run at once.
struct AttentionRoom {
  int64_t bytes = 0;  // a multiple of 64
  int64_t count = 0;
};
AttentionRoom room_of(CpuLevel level, const AttentionLevel& rows, const AttentionArgs& args);

/// `rows` and the products are those of `level`. The bits are those of computing one product, the
/// softmax and the other product after each other; infinities and NaN in rows of V that no query of
/// a block sees do not count.
void attention(CpuLevel level, const AttentionLevel& rows, const AttentionArgs& args);

}  // namespace tn
