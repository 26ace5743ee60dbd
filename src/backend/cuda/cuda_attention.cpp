// Attention and its derivative: kernels that keep the scores of a tile in registers. Results are
// not the CPU's bit for bit (docs/design/038-cuda.md): sums have another order, and weights are
// rounded to the type of the operands before they are multiplied.
#include "backend/cuda/cuda_attention.h"

#include <algorithm>
#include <array>
#include <climits>
#include <map>
#include <mutex>

#include "backend/cuda/own_kernels.h"
#include "backend/cuda/prebuilt/prebuilt.h"
#include "base/error.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"

namespace tn::cuda {
namespace {

constexpr int kLeading = 5;
constexpr int64_t kMostDepth = 128;
constexpr int kHopper = 90;  // the one architecture that attention_hopper_kernels.cu is for

/// As in prebuilt/attention_parts.h.
struct OwnAttention {
  const void *q, *k, *v, *mask;
  void* out;
  int64_t heads, extent[kLeading];
  int64_t q_at[kLeading], k_at[kLeading], v_at[kLeading], mask_at[kLeading];
  int64_t q_row, q_column, k_row, k_column, v_row, v_column, mask_row, mask_column;
  int64_t queries, keys, depth, out_depth;
  float scale;
  int32_t causal, mask_type, vectors, near_heads, blocks;
};

/// A leading axis of the queries: its strides in q, k, v and the mask.
struct LeadingAxis {
  int64_t extent, strides[4];
};

/// The stride along an axis of a result of rank `rank` that an operand is broadcast to.
int64_t stride_along(const Strided& at, int axis, int rank) {
  int own = axis - (rank - at.shape.rank());
  return own < 0 || at.shape[own].is(1) ? 0 : at.strides[own];
}

/// Query heads are key heads times those that share one. Neighbours that lie as one are joined.
std::vector<LeadingAxis> leading_axes(const TiledCall& call, const Strided* mask) {
  const Strided &q = call.in_at[0], &k = call.in_at[1], &v = call.in_at[2];
  int rank = q.shape.rank();
  auto of_mask = [&](int axis) { return mask ? stride_along(*mask, axis, rank) : 0; };
  std::vector<LeadingAxis> axes, joined;
  for (int i = 0; i + 3 < rank; ++i)
    axes.push_back({q.shape[i].value(), {q.strides[i], k.strides[i], v.strides[i], of_mask(i)}});
  if (int h = rank - 3; h >= 0) {
    int64_t shared = k.shape[h].value(), group = shared ? q.shape[h].value() / shared : 0;
    axes.push_back(
        {shared, {group * q.strides[h], k.strides[h], v.strides[h], group * of_mask(h)}});
    axes.push_back({group, {q.strides[h], 0, 0, of_mask(h)}});
  }
  for (const LeadingAxis& axis : axes) {
    if (axis.extent == 1) continue;
    bool lies_as_one = !joined.empty();
    for (int i = 0; i < 4 && lies_as_one; ++i)
      lies_as_one = joined.back().strides[i] == axis.strides[i] * axis.extent;
    if (!lies_as_one) {
      joined.push_back(axis);
      continue;
    }
    LeadingAxis& last = joined.back();
    last.extent *= axis.extent;
    std::copy(axis.strides, axis.strides + 4, last.strides);
  }
  return joined;
}

int32_t mask_number(DType type) {
  switch (type) {
    case DType::b1:
      return 1;
    case DType::f32:
      return 2;
    case DType::f16:
      return 3;
    case DType::bf16:
      return 4;
    default:
      return 0;
  }
}

/// The mask is operand `mask` if there are so many.
OwnAttention describe(const TiledCall& call, size_t mask) {
  const auto& a = *static_cast<const ops::AttentionAttrs*>(call.attrs);
  bool has_mask = call.in_types.size() > mask && call.in_types[mask];
  const Strided &q = call.in_at[0], &k = call.in_at[1], &v = call.in_at[2];
  int rank = q.shape.rank(), row = rank - 2, column = rank - 1;
  OwnAttention p{};
  auto data = [&](size_t i) {
    auto bytes = static_cast<int64_t>(size_of(call.in_types[i]->dtype));
    return static_cast<const char*>(call.in[i]) + call.in_at[i].offset * bytes;
  };
  p.q = data(0), p.k = data(1), p.v = data(2), p.out = call.out;
  p.q_row = q.strides[row], p.q_column = q.strides[column];
  p.k_row = k.strides[row], p.k_column = k.strides[column];
  p.v_row = v.strides[row], p.v_column = v.strides[column];
  if (has_mask) {
    p.mask = data(mask), p.mask_type = mask_number(call.in_types[mask]->dtype);
    p.mask_row = stride_along(call.in_at[mask], row, rank);
    p.mask_column = stride_along(call.in_at[mask], column, rank);
  }
  p.queries = q.shape[row].value(), p.keys = k.shape[row].value();
  p.depth = q.shape[column].value(), p.out_depth = v.shape[column].value();
  p.scale = static_cast<float>(a.scale_at(p.depth)), p.causal = a.is_causal;
  std::vector<LeadingAxis> axes = leading_axes(call, has_mask ? &call.in_at[mask] : nullptr);
  invariant(axes.size() <= kLeading, "attention: more axes than the kernels of GPUs can walk: {}",
            *call.in_types[0]);
  std::fill(p.extent, p.extent + kLeading, 1), p.heads = 1;
  size_t first = kLeading - axes.size();
  for (size_t i = 0; i < axes.size(); ++i) {
    const LeadingAxis& axis = axes[i];
    p.heads *= p.extent[first + i] = axis.extent;
    p.q_at[first + i] = axis.strides[0], p.k_at[first + i] = axis.strides[1];
    p.v_at[first + i] = axis.strides[2], p.mask_at[first + i] = axis.strides[3];
  }
  return p;
}

/// Whether rows of 16-bit elements can be read 16 bytes at a time.
bool has_vectors(const void* at, const int64_t (&heads)[kLeading], int64_t row, int64_t column,
                 int64_t depth) {
  return reinterpret_cast<uintptr_t>(at) % 16 == 0 && column == 1 && row % 8 == 0 &&
         depth % 8 == 0 &&
         std::all_of(heads, heads + kLeading, [](int64_t s) { return s % 8 == 0; });
}

/// What the busiest block has to do, in tenths of a tile of keys. Blocks take tiles of queries as
/// `find_item` of prebuilt/attention_hopper_kernels.cu says; what is not a tile is 8 tenths.
int64_t busiest(const OwnAttention& p, int64_t near) {
  std::vector<int64_t> work(static_cast<size_t>(p.blocks));
  int64_t tiles = blocks_for(p.queries, 128), number = 0;
  for (int64_t head = 0; head < p.heads; head += near)
    for (int64_t tile = tiles - 1; tile >= 0; --tile)
      for (int64_t i = 0; i < std::min(near, p.heads - head); ++i, ++number) {
        int64_t step = number / p.blocks, block = number % p.blocks;
        int64_t seen = std::clamp<int64_t>((tile + 1) * 128 + p.keys - p.queries, 0, p.keys);
        work[static_cast<size_t>(step % 2 ? p.blocks - 1 - block : block)] +=
            10 * blocks_for(seen, 128) + 8;
      }
  return *std::ranges::max_element(work);
}

/// How many heads are under way at once: few, whose keys and values stay in the cache, but so many
/// that all blocks have about as much to do.
int64_t find_heads_at_once(const OwnAttention& p) {
  constexpr int64_t kMostItems = 1 << 14;  // with more, all have as much to do in any order
  if (!p.causal || p.heads * blocks_for(p.queries, 128) > kMostItems) return 1;
  std::vector<std::pair<int64_t, int64_t>> known;  // heads, and what the busiest has to do then
  int64_t best = INT64_MAX;
  for (int64_t near = 1; near <= p.heads; ++near) {
    if (near != p.heads && p.blocks % near != 0) continue;
    known.emplace_back(near, busiest(p, near));
    best = std::min(best, known.back().second);
  }
  return std::ranges::find_if(known, [&](auto& k) { return k.second * 100 <= best * 103; })->first;
}

/// To find it takes longer than the kernel.
int64_t heads_at_once(const OwnAttention& p) {
  constexpr size_t kMostKnown = 1024;
  static std::mutex mutex;
  static auto& known = *new std::map<std::array<int64_t, 5>, int64_t>;
  std::lock_guard lock(mutex);
  std::array<int64_t, 5> problem = {p.heads, p.queries, p.keys, p.blocks, p.causal};
  if (auto found = known.find(problem); found != known.end()) return found->second;
  if (known.size() == kMostKnown) known.clear();
  return known[problem] = find_heads_at_once(p);
}

/// For tensor cores that read shared memory: without a mask, and where scores grow with products.
void run_hopper(OwnAttention& p, std::string_view type, int64_t depth) {
  int64_t items = p.heads * blocks_for(p.queries, 128), stages = depth == 64 ? 4 : 3;
  invariant(items <= INT_MAX, "attention: kernels cannot count {} tiles of queries", items);
  p.blocks = static_cast<int32_t>(std::clamp<int64_t>(call_place.gpu->multiprocessors, 1, items));
  p.near_heads = static_cast<int32_t>(heads_at_once(p));
  int64_t tile = 128 * depth * 2, barriers = 8 * (2 + 4 * stages);
  launch_own(attention_hopper_ptx(), format("attention_hopper_{}_{}", type, depth), p.blocks,
             1024 + (1 + 2 * stages) * tile + barriers, &p, 384);
}

void run_tiled_attention(const TiledCall& call) {
  if (call.out_types[0]->elements == 0) return;
  OwnAttention p = describe(call, 3);
  DType dtype = call.in_types[0]->dtype;
  std::string_view type = own_name(dtype);
  int64_t depth = std::max(p.depth, p.out_depth) <= 64 ? 64 : 128;
  if (dtype == DType::f32) {
    int64_t shared = 4 * (3 * 64 * (depth + 1) + 64 * 65);
    return launch_own(attention_ptx(), format("attention_f32_{}", depth),
                      p.heads * blocks_for(p.queries, 64), shared, &p);
  }
  p.vectors = has_vectors(p.k, p.k_at, p.k_row, p.k_column, p.depth) &&
              has_vectors(p.v, p.v_at, p.v_row, p.v_column, p.out_depth);
  bool has_only_vectors = p.vectors && has_vectors(p.q, p.q_at, p.q_row, p.q_column, p.depth) &&
                          reinterpret_cast<uintptr_t>(p.out) % 16 == 0;
  if (call_place.gpu->target.arch == kHopper && has_only_vectors && !p.mask_type && p.scale > 0)
    return run_hopper(p, type, depth);
  launch_own(attention_ptx(), format("attention_{}_{}", type, depth),
             p.heads * blocks_for(p.queries, 128), 4 * 64 * depth * 2, &p);
}

std::vector<Strided> row_major(Types types) {
  std::vector<Strided> at;
  for (TypeRef type : types) at.push_back(type ? Strided::row_major(type->shape) : Strided{});
  return at;
}

void run_attention(const LibraryCall& call) {
  run_tiled_attention(
      {call.attrs, call.in_types, call.out_types, row_major(call.in_types), call.in, call.out[0]});
}

/// As in prebuilt/attention_parts.h.
struct OwnGradient {
  OwnAttention a;
  const void* ct;
  void *q_ct, *k_ct, *v_ct;
  float *levels, *deltas;
  int64_t shared;
};

/// Of all axes but the last ones.
int64_t count_of(const Type& type, int left_out) {
  int64_t count = 1;
  for (int i = 0; i + left_out < type.rank(); ++i) count *= type.shape[i].value();
  return count;
}

/// Two numbers for each query.
int64_t gradients_room(const LibraryCall& call) {
  return 2 * count_of(*call.in_types[0], 1) * static_cast<int64_t>(sizeof(float));
}

/// The kernel of queries leaves what that of keys reads. For tensor cores that read shared memory:
/// without a mask, where rows are read 16 bytes at a time and scores grow with products.
void launch_gradients(OwnGradient& g, std::string_view type, int64_t key_heads) {
  const OwnAttention& p = g.a;
  int64_t depth = std::max(p.depth, p.out_depth) <= 64 ? 64 : 128;
  bool reads_vectors = p.vectors && p.depth % 8 == 0 && p.out_depth % 8 == 0;
  bool is_hopper = call_place.gpu->target.arch == kHopper && reads_vectors && !p.mask_type &&
                   p.scale > 0 && !attention_gradient_hopper_ptx().empty();
  auto launch = [&](std::string_view part, int64_t blocks, int64_t rows_of_step) {
    if (is_hopper) {
      constexpr int64_t kStages = 4, kRows = 64;
      int64_t numbers = kStages * kRows * 2 * 4, barriers = 8 * (1 + 2 * kStages);
      return launch_own(
          attention_gradient_hopper_ptx(), format("attention_hopper_{}_{}_{}", part, type, depth),
          blocks, 1024 + (2 * 128 + 2 * kStages * kRows) * depth * 2 + numbers + barriers, &g, 384);
    }
    launch_own(attention_gradient_ptx(), format("attention_{}_{}_{}", part, type, depth), blocks,
               (2 * 128 + 4 * rows_of_step) * depth * 2, &g);
  };
  launch("queries", p.heads * blocks_for(p.queries, 128), depth == 64 ? 64 : 32);
  launch("keys", key_heads * blocks_for(p.keys, 128), 32);
}

/// Operands: q, k, v, the result, its cotangent, and a mask if there is one.
void run_gradients(const LibraryCall& call) {
  constexpr size_t kOut = 3, kCt = 4, kMask = 5;
  std::vector<Strided> at = row_major(call.in_types);
  OwnGradient g{};
  g.a = describe({call.attrs, call.in_types, call.out_types, at, call.in, nullptr}, kMask);
  OwnAttention& p = g.a;
  p.out = const_cast<void*>(call.in[kOut]), g.ct = call.in[kCt];
  g.q_ct = call.out[0], g.k_ct = call.out[1], g.v_ct = call.out[2];
  p.vectors = std::all_of(call.in, call.in + kMask, [](const void* data) {
    return reinterpret_cast<uintptr_t>(data) % 16 == 0;
  });
  g.levels = static_cast<float*>(call.room);
  g.deltas = g.levels + count_of(*call.in_types[0], 1);
  int64_t key_heads = count_of(*call.in_types[1], 2);
  g.shared = key_heads ? p.heads / key_heads : 1;
  launch_gradients(g, own_name(call.in_types[0]->dtype), key_heads);
}

bool claims_attention(Types in) {
  auto fits = [](Dim depth) {
    return depth.is_const() && depth.value() >= 1 && depth.value() <= kMostDepth;
  };
  const Type &q = *in[0], &v = *in[2];
  bool is_known = q.dtype == DType::f32 || q.dtype == DType::f16 || q.dtype == DType::bf16;
  bool has_mask = in.size() > 3 && in[3];
  return !attention_ptx().empty() && is_known && q.rank() <= kLeading + 1 &&
         fits(q.shape[q.rank() - 1]) && fits(v.shape[v.rank() - 1]) &&
         (!has_mask || mask_number(in[3]->dtype) != 0);
}

/// Of float32 the composed derivative is as near as sums can be, by products of float32.
bool claims_gradients(Types in) {
  std::vector<TypeRef> of_attention(in.begin(), in.begin() + 3);
  if (in.size() > 5) of_attention.push_back(in[5]);
  return in[0]->dtype != DType::f32 && !attention_gradient_ptx().empty() &&
         claims_attention(of_attention);
}

TileDomain domain_of_attention(const void*, Types, Types out) {
  const Shape& shape = out[0]->shape;
  TileDomain d{1, shape[shape.rank() - 2], shape[shape.rank() - 1]};
  for (int k = 0; k < shape.rank() - 2; ++k) d.batch *= shape[k];
  return d;
}

constexpr TiledForm tiled_attention{domain_of_attention, run_tiled_attention};
constexpr LibraryKernel kAttention[] = {
    {&ops::scaled_dot_product_attention, run_attention, claims_attention, &tiled_attention}};
constexpr LibraryKernel kGradients[] = {{.op = &ops::scaled_dot_product_attention_gradients,
                                         .run = run_gradients,
                                         .claims = claims_gradients,
                                         .room = gradients_room}};

}  // namespace

std::span<const LibraryKernel> attention_kernels() { return kAttention; }
std::span<const LibraryKernel> attention_gradient_kernels() { return kGradients; }

}  // namespace tn::cuda
