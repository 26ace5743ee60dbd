// sort, argsort and top_k by own kernels: stable, so the results are the CPU's.
#include "backend/cuda/cuda_sorts.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "backend/cuda/own_kernels.h"
#include "backend/cuda/prebuilt/prebuilt.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"

namespace tn::cuda {
namespace {

using namespace ops;

constexpr int64_t kSortTile = 2048;  // as in prebuilt/sort_kernels.cu
constexpr int kLogSortTile = 11;

enum Kind : int32_t { kUnsigned, kSigned, kFloating };

/// What the bits of an element mean.
void describe(DType type, PairSort& sort) {
  sort.bytes = static_cast<int32_t>(size_of(type));
  sort.kind = is_inexact(type) ? kFloating : own_name(type).starts_with("i") ? kSigned : kUnsigned;
  sort.infinity = type == DType::f64    ? 0x7ff0000000000000u
                  : type == DType::f32  ? 0x7f800000u
                  : type == DType::f16  ? 0x7c00u
                  : type == DType::bf16 ? 0x7f80u
                                        : 0;
}

PairSort sort_along(const InternedType& x, int axis, bool descending) {
  PairSort sort;
  describe(x.dtype, sort);
  sort.inner = span_of(x.shape, axis + 1, x.rank());
  sort.rows = span_of(x.shape, 0, axis) * sort.inner;
  sort.n = sort.keep = x.shape[axis].value();
  sort.descending = descending;
  return sort;
}

PairSort sort_of(const LibraryCall& call) {
  const auto& a = *static_cast<const SortAttrs*>(call.attrs);
  return sort_along(*call.in_types[0], a.axis.i, a.descending);
}
PairSort top_k_of(const LibraryCall& call) {
  const auto& a = *static_cast<const TopKAttrs*>(call.attrs);
  PairSort sort = sort_along(*call.in_types[0], a.axis.i, true);
  sort.keep = a.k.value();
  return sort;
}

int64_t room_of_sort(const LibraryCall& call) { return sort_room(sort_of(call), false); }
int64_t room_of_top_k(const LibraryCall& call) { return sort_room(top_k_of(call), false); }

void run_sort(const LibraryCall& call) {
  PairSort sort = sort_of(call);
  sort.x = call.in[0], sort.values = call.out[0];
  sort_pairs(sort, call.room, false);
}

void run_argsort(const LibraryCall& call) {
  PairSort sort = sort_of(call);
  sort.x = call.in[0], sort.places = static_cast<int64_t*>(call.out[0]);
  sort_pairs(sort, call.room, false);
}

void run_top_k(const LibraryCall& call) {
  PairSort sort = top_k_of(call);
  sort.x = call.in[0], sort.values = call.out[0];
  sort.places = static_cast<int64_t*>(call.out[1]);
  sort_pairs(sort, call.room, false);
}

/// Complex numbers have keys of up to 128 bits: the host sorts them.
bool claims_sort(Types in) { return !sort_ptx().empty() && !own_name(in[0]->dtype).empty(); }

constexpr LibraryKernel kSorts[] = {
    {.op = &ops::sort, .run = run_sort, .claims = claims_sort, .room = room_of_sort},
    {.op = &ops::argsort, .run = run_argsort, .claims = claims_sort, .room = room_of_sort},
    {.op = &ops::top_k, .run = run_top_k, .claims = claims_sort, .room = room_of_top_k},
};

}  // namespace

std::span<const LibraryKernel> sort_kernels() { return kSorts; }

int64_t sort_room(const PairSort& sort, bool wants_pairs) {
  if (sort.n <= kSortTile && !wants_pairs) return 0;
  return (sort.n <= kSortTile ? 1 : 2) * sort.rows * sort.n * sort.pair_bytes();
}

void* sort_pairs(PairSort sort, void* room, bool wants_pairs) {
  if (sort.rows == 0 || sort.n == 0 || sort.keep == 0) return room;
  std::string bits = sort.is_wide() ? "64" : "32";
  bool has_merges = sort.n > kSortTile;
  if (has_merges || wants_pairs) sort.pairs[0] = room;
  if (has_merges) sort.pairs[1] = static_cast<char*>(room) + sort.rows * sort.n * sort.pair_bytes();
  sort.padded = has_merges ? kLogSortTile : std::bit_width(static_cast<uint64_t>(sort.n - 1));
  int64_t padded = int64_t{1} << sort.padded;
  int64_t pieces = sort.rows * blocks_for(sort.n, padded);
  launch_own(sort_ptx(), "sort_tiles_" + bits, blocks_for(pieces, kSortTile / padded),
             kSortTile * sort.pair_bytes(), &sort);
  for (sort.run = kSortTile; sort.run < sort.n; sort.run *= 2) {
    int64_t couples = blocks_for(sort.n, 2 * sort.run);
    int64_t tiles = blocks_for(std::min(2 * sort.run, sort.keep), kSortTile);
    sort.is_last = !wants_pairs && couples == 1;
    launch_own(sort_ptx(), "merge_runs_" + bits, sort.rows * couples * tiles,
               2 * 8 + kSortTile * sort.pair_bytes(), &sort);
    std::swap(sort.pairs[0], sort.pairs[1]);
  }
  return sort.pairs[0];
}

}  // namespace tn::cuda
