#include "runtime/attention.h"

#include <algorithm>

#include "runtime/buffer.h"
#include "runtime/gemm_blocks.h"
#include "runtime/threads.h"

namespace tn {
namespace {

constexpr int64_t kScores = 1 << 16;                      // of a block of queries: they stay in L2
constexpr int64_t kLeastQueries = 14, kMostQueries = 84;  // of a block
constexpr int64_t kWantedTasks = 32;                      // heads are cut until there are as many

int64_t up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

/// Heads that share keys and values are one after the other; their queries are cut into blocks.
template <class T>
class Attention {
 public:
  Attention(const GemmKernels<T>& kernels, const AttentionRows<T>& rows, const AttentionArgs& args);
  void run() const;

 private:
  struct Scratch {
    T *q, *scores, *mixed;
    const T *keys, *values;  // packed; null: read in place
  };
  void run_task(int64_t shared_head, ChunkRange blocks) const;
  void run_block(int64_t head, ChunkRange queries, const Scratch& scratch) const;
  T weigh(int64_t head, int64_t query, int64_t count, T* scores) const;
  Product<T> score_product(int64_t head) const;
  Product<T> mix_product(int64_t head) const;

  const void* at(const AttentionOperand& x, Element type, int64_t head, int64_t row) const {
    int64_t offset = x.offsets[head] + row * x.row;
    return static_cast<const char*>(x.data) + offset * static_cast<int64_t>(element_bytes(type));
  }
  /// How many keys a query sees, apart from the mask.
  int64_t visible(int64_t query) const {
    if (!a_.causal) return a_.keys;
    return std::clamp<int64_t>(query + 1 + a_.keys - a_.queries, 0, a_.keys);
  }

  const GemmKernels<T>& kernels_;
  const AttentionRows<T>& rows_;
  const AttentionArgs& a_;
  GemmForm form_;
  int64_t blocks_;  // of the queries of a head
  int64_t most_;    // queries of a block
  int64_t score_row_;
};

template <class T>
Attention<T>::Attention(const GemmKernels<T>& kernels, const AttentionRows<T>& rows,
                        const AttentionArgs& args)
    : kernels_(kernels), rows_(rows), a_(args) {
  form_ = a_.type == Element::f16    ? GemmForm::float16
          : a_.type == Element::bf16 ? GemmForm::bfloat16
                                     : GemmForm::plain;
  int64_t fitting =
      std::clamp(kScores / std::max<int64_t>(a_.keys, 1), kLeastQueries, kMostQueries);
  blocks_ = chunks_for(a_.queries, fitting);
  most_ = chunks_for(a_.queries, blocks_);
  score_row_ = up(a_.keys, kernels.vector);
  // The second product reads the scores in place: their rows should not share one set of L1.
  if (score_row_ * sizeof(T) % 4096 == 0) score_row_ += kernels.vector;
}

template <class T>
void Attention<T>::run() const {
  int64_t shared = a_.heads / a_.group, blocks = a_.group * blocks_;
  int64_t parts = std::min(blocks, chunks_for(kWantedTasks, shared));
  parallel_for(shared * parts, [&](int64_t task) {
    run_task(task / parts, chunk_range(blocks, parts, task % parts));
  });
}

/// scores = q·kᵀ; q, the results and the sizes that depend on the block are left open.
template <class T>
Product<T> Attention<T>::score_product(int64_t head) const {
  return {.kernels = kernels_,
          .m = 0,
          .n = a_.keys,
          .k = a_.depth,
          .a = {nullptr, 1, a_.depth, GemmForm::plain},
          .b = {at(a_.k, a_.type, head, 0), a_.k.column, a_.k.row, form_},
          .c = nullptr,
          .c_row = score_row_,
          .whole_n = a_.keys};
}

/// mixed = weights·v
template <class T>
Product<T> Attention<T>::mix_product(int64_t head) const {
  return {.kernels = kernels_,
          .m = 0,
          .n = a_.out_depth,
          .k = a_.keys,
          .a = {nullptr, 1, score_row_, GemmForm::plain},
          .b = {at(a_.v, a_.type, head, 0), a_.v.row, a_.v.column, form_},
          .c = nullptr,
          .c_row = a_.out_depth,
          .whole_k = a_.keys};
}

template <class T>
void Attention<T>::run_task(int64_t shared_head, ChunkRange blocks) const {
  Product<T> score = score_product(shared_head), mix = mix_product(shared_head);
  bool packs = most_ > 1;  // a single query reads keys and values once
  int64_t sizes[] = {most_ * a_.depth, most_ * score.c_row, most_ * a_.out_depth,
                     packs ? packed_size(score) : 0, packs ? packed_size(mix) : 0};
  int64_t total = 0;
  for (int64_t& size : sizes) total += size = up(size, 64 / sizeof(T));
  BufferRef room = allocate(sizeof(T) * static_cast<size_t>(total));
  T* q = room.data<T>();
  T *scores = q + sizes[0], *mixed = scores + sizes[1], *keys = mixed + sizes[2];
  T* values = keys + sizes[3];
  if (packs) pack_right(score, keys), pack_right(mix, values);
  Scratch scratch{q, scores, mixed, packs ? keys : nullptr, packs ? values : nullptr};
  for (int64_t block = blocks.begin; block < blocks.end; ++block)
    run_block(shared_head * a_.group + block / blocks_,
              chunk_range(a_.queries, blocks_, block % blocks_), scratch);
}

template <class T>
void Attention<T>::run_block(int64_t head, ChunkRange queries, const Scratch& scratch) const {
  int64_t rows = queries.end - queries.begin, keys = visible(queries.end - 1);
  for (int64_t i = 0; i < rows; ++i)
    rows_.scale(a_.type, at(a_.q, a_.type, head, queries.begin + i), a_.q.column, a_.depth,
                static_cast<T>(a_.scale), scratch.q + i * a_.depth);
  Product<T> score = score_product(head / a_.group), mix = mix_product(head / a_.group);
  score.m = mix.m = rows, score.n = mix.k = keys;
  score.a.data = scratch.q, score.c = scratch.scores, score.packed_b = scratch.keys;
  multiply(score);
  T sums[kMostQueries];
  for (int64_t i = 0; i < rows; ++i)
    sums[i] = weigh(head, queries.begin + i, keys, scratch.scores + i * score.c_row);
  mix.a.data = scratch.scores, mix.c = scratch.mixed, mix.packed_b = scratch.values;
  multiply(mix);
  auto* out = static_cast<char*>(a_.out);
  int64_t row_bytes = a_.out_depth * static_cast<int64_t>(element_bytes(a_.type));
  for (int64_t i = 0; i < rows; ++i)
    rows_.divide(scratch.mixed + i * a_.out_depth, sums[i], a_.out_depth, a_.type,
                 out + (head * a_.queries + queries.begin + i) * row_bytes);
  if (a_.epilogue.run)
    a_.epilogue.run(
        a_.epilogue.data,
        {.batch = head, .row0 = queries.begin, .row1 = queries.end, .column1 = a_.out_depth});
}

/// Makes the `count` scores of a query weights and returns their sum.
template <class T>
T Attention<T>::weigh(int64_t head, int64_t query, int64_t count, T* scores) const {
  int64_t seen = visible(query);
  if (a_.mask.data)
    rows_.mask(a_.mask_type, at(a_.mask, a_.mask_type, head, query), a_.mask.column, seen, scores);
  std::fill(scores + seen, scores + count, T{0});
  return seen == 0 ? T{1} : rows_.weigh(scores, seen);
}

}  // namespace

void attention(CpuLevel level, const AttentionLevel& rows, const AttentionArgs& args) {
  if (args.heads == 0 || args.queries == 0 || args.out_depth == 0) return;
  const GemmLevel& gemm = at_level(level, v2::gemm_level, v3::gemm_level, v4::gemm_level);
  if (args.type == Element::f64)
    Attention<double>(gemm.f64, rows.f64, args).run();
  else
    Attention<float>(gemm.f32, rows.f32, args).run();
}

}  // namespace tn
