// scatter by own kernels: points are sorted by where they go, then the updates of each place are
// combined in their order, as on the CPU. Indices are not checked: those beyond an axis are dropped
// or clamped.
#include "backend/cuda/cuda_scatter.h"

#include "backend/cuda/cuda_sorts.h"
#include "backend/cuda/own_kernels.h"
#include "backend/cuda/prebuilt/prebuilt.h"
#include "ir/view.h"
#include "ops/indexing.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"

namespace tn::cuda {
namespace {

using namespace ops;

constexpr int kMostIndices = 4, kMostPointAxes = 6;

/// As in prebuilt/scatter_kernels.cu.
struct ScatterPoints {
  const void* indices[kMostIndices];
  int64_t index_strides[kMostIndices][kMostPointAxes];
  int64_t extents[kMostIndices], strides[kMostIndices];
  int64_t points[kMostPointAxes];
  int64_t count;
  void* keys;
  int32_t bytes[kMostIndices], is_signed[kMostIndices];
  int32_t operands, clamps, wide;
};
struct Scatter {
  const void* pairs;
  const void* updates;
  void* out;
  int64_t outer, outer_stride, batches, count, run, middles;
  int64_t middle_extents[kMostIndices], middle_strides[kMostIndices];
  int32_t mode, wide;
};

/// What is sorted: for each batch the points, by keys that are written before the pairs.
struct Points {
  PairSort sort;
  int64_t key_bytes;  // of all keys, rounded up

  explicit Points(const LibraryCall& call) {
    const auto& a = *static_cast<const ScatterAttrs*>(call.attrs);
    const Shape& x = call.in_types[0]->shape;
    Shape points = index_shape("scatter", call.in_types.subspan(2));
    int64_t count = span_of(points, 0, points.rank());
    sort.rows = span_of(x, 0, static_cast<int>(a.batch_dims));
    sort.n = sort.keep = sort.rows ? count / sort.rows : 0;
    bool is_far = span_of(x, a.axes[0].i, x.rank()) >= UINT32_MAX || sort.n >= UINT32_MAX;
    sort.bytes = is_far ? 8 : 4;
    key_bytes = (count * sort.bytes + 255) / 256 * 256;
  }
  int64_t room() const { return key_bytes + sort_room(sort, true); }
};

int64_t room_of_scatter(const LibraryCall& call) { return Points(call).room(); }

void find_points(const LibraryCall& call, const Points& points, void* keys) {
  const auto& a = *static_cast<const ScatterAttrs*>(call.attrs);
  const Shape& x = call.in_types[0]->shape;
  Ints strides = Strided::row_major(x).strides;
  Types indices = call.in_types.subspan(2);
  Shape shape = index_shape("scatter", indices);
  ScatterPoints p{};
  p.keys = keys, p.wide = points.sort.bytes == 8;
  p.operands = static_cast<int32_t>(indices.size());
  p.clamps = when_writing(a.outside) == OutOfRange::clamp;
  p.count = span_of(shape, 0, shape.rank());
  int missing = kMostPointAxes - shape.rank();
  for (int k = 0; k < kMostPointAxes; ++k)
    p.points[k] = k < missing ? 1 : shape[k - missing].value();
  for (int o = 0; o < p.operands; ++o) {
    const InternedType& index = *indices[static_cast<size_t>(o)];
    int axis = a.axes[o].i, first = kMostPointAxes - index.rank();
    p.indices[o] = call.in[2 + o];
    p.extents[o] = x[axis].value(), p.strides[o] = strides[axis];
    p.bytes[o] = static_cast<int32_t>(size_of(index.dtype));
    p.is_signed[o] = own_name(index.dtype).starts_with("i");
    Ints own = Strided::row_major(index.shape).strides;
    for (int k = 0; k < index.rank(); ++k)
      p.index_strides[o][first + k] = index.shape[k].is(1) ? 0 : own[k];
  }
  launch_own(scatter_ptx(), "scatter_points", blocks_for(p.count, kOwnThreads), 0, &p);
}

/// Sums of bool are "or", products "and".
ScatterMode mode_of(ScatterMode mode, DType type) {
  if (type != DType::b1) return mode;
  if (mode == ScatterMode::add) return ScatterMode::max;
  return mode == ScatterMode::mul ? ScatterMode::min : mode;
}

void run_scatter(const LibraryCall& call) {
  const auto& a = *static_cast<const ScatterAttrs*>(call.attrs);
  const InternedType& x = *call.in_types[0];
  if (x.elements == 0) return;
  auto address = [](const void* at) { return reinterpret_cast<Address>(at); };
  const Driver& driver = call_place.gpu->driver;
  if (!call_place.wanted)
    check(driver,
          driver.cuMemcpyDtoDAsync_v2(address(call.out[0]), address(call.in[0]),
                                      static_cast<size_t>(x.bytes()), call_place.stream),
          "scatter");
  if (call.in_types[1]->elements == 0) return;
  Points points(call);
  find_points(call, points, call.room);
  points.sort.x = call.room;
  Scatter p{};
  p.pairs = sort_pairs(points.sort, static_cast<char*>(call.room) + points.key_bytes, true);
  p.updates = call.in[1], p.out = call.out[0];
  int first = a.axes[0].i, last = a.axes.back().i;
  p.outer = span_of(x.shape, 0, first), p.outer_stride = span_of(x.shape, first, x.rank());
  p.batches = points.sort.rows, p.count = points.sort.n;
  p.run = span_of(x.shape, last + 1, x.rank()), p.middles = 1;
  Ints strides = Strided::row_major(x.shape).strides;
  int next = kMostIndices;
  std::fill_n(p.middle_extents, kMostIndices, 1);
  for (int k = last; k-- > first;) {
    if (a.axes.has(k)) continue;
    p.middle_extents[--next] = x.shape[k].value(), p.middle_strides[next] = strides[k];
    p.middles *= x.shape[k].value();
  }
  p.mode = static_cast<int32_t>(mode_of(a.mode, x.dtype)), p.wide = points.sort.is_wide();
  launch_own(scatter_ptx(), format("scatter_{}", own_name(x.dtype)),
             blocks_for(call.in_types[1]->elements, kOwnThreads), 0, &p);
}

/// Axes between indexed ones are at most those that x has besides.
bool claims_scatter(Types in) {
  bool fits = !scatter_ptx().empty() && !sort_ptx().empty() && !own_name(in[0]->dtype).empty() &&
              in.size() - 2 <= kMostIndices && in[0]->rank() <= kMostIndices + 2;
  for (TypeRef index : in.subspan(2)) fits = fits && index->rank() <= kMostPointAxes;
  return fits;
}

constexpr LibraryKernel kScatters[] = {
    {.op = &ops::scatter, .run = run_scatter, .claims = claims_scatter, .room = room_of_scatter},
};

}  // namespace

std::span<const LibraryKernel> scatter_kernels() { return kScatters; }

}  // namespace tn::cuda
