#include "backend/cpu/kernels/attention_blocks.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "backend/cpu/kernels/gemm_blocks.h"
#include "base/integers.h"
#include "runtime/buffer.h"
#include "runtime/threads.h"

namespace tn {
namespace {

constexpr int64_t kScores = 1 << 16;                      // of a block of queries: they stay in L2
constexpr int64_t kLeastQueries = 14, kMostQueries = 84;  // of a block
constexpr int64_t kWantedTasks = 32;                      // heads are cut until there are as many

/// Heads that share keys and values are one after the other; their queries are cut into blocks.
template <class T>
class Attention {
 public:
  Attention(const GemmKernels<T>& kernels, const AttentionRows<T>& rows, const AttentionArgs& args);
  void run();
  AttentionRoom room() const;

 private:
  /// Elements of the parts of a task's room, each a multiple of 64 bytes.
  struct Parts {
    int64_t q, scores, mixed, keys, values;
    int64_t total() const { return q + scores + mixed + keys + values; }
  };
  Parts parts() const;
  bool packs() const { return most_ > 1; }  // a single query reads keys and values once
  int64_t tasks_of_head() const;
  int take_room();
  struct Scratch {
    T *q, *scores, *mixed;
    const T *keys, *values;  // packed; null: read in place
  };
  void run_task(int64_t shared_head, ChunkRange blocks);
  void run_block(int64_t head, ChunkRange queries, const Scratch& scratch) const;
  T weigh(int64_t head, int64_t query, int64_t count, T* scores) const;
  Product<T> score_product(const void* keys) const;
  Product<T> mix_product(const void* values) const;

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
  std::atomic<uint64_t> free_rooms_;  // a bit for each
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
  score_row_ = round_up(a_.keys, kernels.vector);
  // The second product reads the scores in place: their rows should not share one set of L1.
  if (score_row_ * sizeof(T) % 4096 == 0) score_row_ += kernels.vector;
  int64_t rooms = a_.room ? std::min<int64_t>(a_.rooms, 63) : 0;
  free_rooms_ = (uint64_t{1} << rooms) - 1;
}

template <class T>
int64_t Attention<T>::tasks_of_head() const {
  return std::min(a_.group * blocks_, chunks_for(kWantedTasks, a_.heads / a_.group));
}

template <class T>
void Attention<T>::run() {
  int64_t blocks = a_.group * blocks_, tasks = tasks_of_head();
  parallel_for(a_.heads / a_.group * tasks, [&](int64_t task) {
    run_task(task / tasks, chunk_range(blocks, tasks, task % tasks));
  });
}

template <class T>
typename Attention<T>::Parts Attention<T>::parts() const {
  auto aligned = [](int64_t size) { return round_up(size, 64 / sizeof(T)); };
  return {.q = aligned(most_ * a_.depth),
          .scores = aligned(most_ * score_row_),
          .mixed = aligned(most_ * a_.out_depth),
          .keys = packs() ? aligned(packed_size(score_product(nullptr))) : 0,
          .values = packs() ? aligned(packed_size(mix_product(nullptr))) : 0};
}

template <class T>
AttentionRoom Attention<T>::room() const {
  int64_t tasks = a_.heads / a_.group * tasks_of_head();
  return {parts().total() * static_cast<int64_t>(sizeof(T)),
          std::min<int64_t>(tasks, num_threads())};
}

/// The number of a free room; -1: none.
template <class T>
int Attention<T>::take_room() {
  uint64_t free = free_rooms_;
  while (free && !free_rooms_.compare_exchange_weak(free, free & (free - 1))) {
  }
  return free ? std::countr_zero(free) : -1;
}

/// scores = q·kᵀ; q, the results and the sizes that depend on the block are left open.
template <class T>
Product<T> Attention<T>::score_product(const void* keys) const {
  return {.kernels = kernels_,
          .m = 0,
          .n = a_.keys,
          .k = a_.depth,
          .a = {nullptr, 1, a_.depth, GemmForm::plain},
          .b = {keys, a_.k.column, a_.k.row, form_},
          .c = nullptr,
          .c_row = score_row_,
          .whole_n = a_.keys};
}

/// mixed = weights·v
template <class T>
Product<T> Attention<T>::mix_product(const void* values) const {
  return {.kernels = kernels_,
          .m = 0,
          .n = a_.out_depth,
          .k = a_.keys,
          .a = {nullptr, 1, score_row_, GemmForm::plain},
          .b = {values, a_.v.row, a_.v.column, form_},
          .c = nullptr,
          .c_row = a_.out_depth,
          .whole_k = a_.keys};
}

template <class T>
void Attention<T>::run_task(int64_t shared_head, ChunkRange blocks) {
  Parts part = parts();
  int room = take_room();
  BufferRef own;
  if (room < 0) own = allocate(sizeof(T) * static_cast<size_t>(part.total()));
  T* q = own ? own.data<T>() : static_cast<T*>(a_.room) + room * part.total();
  T *scores = q + part.q, *mixed = scores + part.scores, *keys = mixed + part.mixed;
  T* values = keys + part.keys;
  if (packs()) {
    pack_right(score_product(at(a_.k, a_.type, shared_head, 0)), keys);
    pack_right(mix_product(at(a_.v, a_.type, shared_head, 0)), values);
  }
  Scratch scratch{q, scores, mixed, packs() ? keys : nullptr, packs() ? values : nullptr};
  for (int64_t block = blocks.begin; block < blocks.end; ++block)
    run_block(shared_head * a_.group + block / blocks_,
              chunk_range(a_.queries, blocks_, block % blocks_), scratch);
  if (room >= 0) free_rooms_ |= uint64_t{1} << room;
}

template <class T>
void Attention<T>::run_block(int64_t head, ChunkRange queries, const Scratch& scratch) const {
  int64_t rows = queries.end - queries.begin, keys = visible(queries.end - 1);
  for (int64_t i = 0; i < rows; ++i)
    rows_.scale(a_.type, at(a_.q, a_.type, head, queries.begin + i), a_.q.column, a_.depth,
                static_cast<T>(a_.scale), scratch.q + i * a_.depth);
  int64_t shared = head / a_.group;
  Product<T> score = score_product(at(a_.k, a_.type, shared, 0));
  Product<T> mix = mix_product(at(a_.v, a_.type, shared, 0));
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

/// Calls `f` with what computes `args`.
static void with_attention(CpuLevel level, const AttentionLevel& rows, const AttentionArgs& args,
                           auto f) {
  const GemmLevel& gemm = at_level(level, v2::gemm_level, v3::gemm_level, v4::gemm_level);
  if (args.type == Element::f64) {
    Attention<double> attention(gemm.f64, rows.f64, args);
    f(attention);
  } else {
    Attention<float> attention(gemm.f32, rows.f32, args);
    f(attention);
  }
}

static bool is_empty(const AttentionArgs& args) {
  return args.heads == 0 || args.queries == 0 || args.out_depth == 0;
}

AttentionRoom room_of(CpuLevel level, const AttentionLevel& rows, const AttentionArgs& args) {
  AttentionRoom room;
  if (!is_empty(args))
    with_attention(level, rows, args, [&](const auto& attention) { room = attention.room(); });
  return room;
}

void attention(CpuLevel level, const AttentionLevel& rows, const AttentionArgs& args) {
  if (!is_empty(args)) with_attention(level, rows, args, [](auto& attention) { attention.run(); });
}

}  // namespace tn
