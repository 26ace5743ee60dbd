#include "backend/cuda/codegen/gpu_schedule.h"

#include <algorithm>
#include <bit>

#include "backend/llvm/merge_axes.h"
#include "backend/llvm/value_ranges.h"
#include "base/text.h"
#include "loop/macros.h"
#include "loop/reduction_tree.h"
#include "loop/sharing.h"

namespace tn::cuda {

using loop::axes_in;
using loop::axis_bit;
using loop::AxisKind;
using loop::AxisSet;
using loop::Combine;
using loop::kNone;
using loop::Op;
using loop::Store;
using loop::stride_along;
using loop::ValueId;

// The most elements of one access, and its bytes.
static constexpr int kMostVector = 8;
static constexpr int kVectorBytes = 16;
// From so many operations on, a thread of a flat kernel computes two vectors.
static constexpr int kFewOps = 10;
// Rows that one thread, a group of threads and a block hold in registers.
static constexpr int64_t kThreadRow = 32, kGroupRow = 1024, kBlockRow = 16384;
static constexpr int kThreadRowOps = 600;
static constexpr int64_t kBlockBytes = 128;  // of the elements of a thread
static constexpr int64_t kMostRowThreads = 512;
// A multiprocessor has so many threads, each with 64 registers, at once: what one row waits for,
// other rows have time for. Kernels that keep more than a row may need more registers.
static constexpr int kThreadsTogether = 1024;
// Rows with weights: a thread has half the elements, so that 40 registers hold those and weights,
// and three rows of 8192 leave the weights room in the near cache.
static constexpr int kHalvesTogether = 1536;
static constexpr int kFewRowOps = 40;
// Results of so many bytes are in no cache when the next kernel reads them.
static constexpr int64_t kManyBytes = int64_t{1} << 26;
static constexpr uint64_t kMostFinishing = 32;  // results of chunks for a lane at once
static constexpr int kColumnThreads = 512;
static constexpr int kTileThreads = 256;
static constexpr size_t kMostTiles = 4;
static constexpr int64_t kUsualSize = 64;
static constexpr int kWarp = 32;

namespace {

class Planner {
 public:
  Planner(Part& part, std::span<const Binding> sizes) : p_(part), k_(part.kernel), sizes_(sizes) {}

  void plan() {
    loop::Analysis a = loop::analyse(k_);
    p_.level = a.level, p_.needed = a.needed;
    p_.inside = codegen::casts_inside(k_);
    p_.reciprocal = codegen::plain_reciprocals(k_);
    p_.streamed.assign(k_.values.size(), false);
    find_axes(a);
    find_sweeps(a);
    for (size_t i = 0; i < k_.values.size(); ++i)
      p_.ops += p_.needed[i] && k_.values[i].op != Op::constant;
    bool scans = a.scan & p_.inner_axes;
    if (may_collide(a))
      plan_walk(true);
    else if (scans)
      plan_walk(false);
    else if (p_.inner.empty())
      plan_flat();
    else
      plan_reduction();
  }

  /// Whether the fold of one part is cut into two.
  bool wants_phases() const {
    int64_t rows = likely(p_.points), threads = rows * p_.group;
    bool inside = std::ranges::count(p_.stored_inside, true) > 0;
    return p_.mode == Mode::rows && p_.sweeps.size() == 1 && !inside && !p_.unrolled &&
           likely(p_.extent) > loop::kChunk && threads < kBusyThreads / 4;
  }

  void plan_phase(Phase phase) {
    p_.phase = phase;
    if (phase == Phase::chunks) {
      find_streamed();
      p_.blocks = ceil_div(p_.points * ceil_div(p_.extent, loop::kChunk), rows_per_block());
    } else {
      // One wait after the other takes longer than all chunks: most results are loaded at once.
      uint64_t steps = uint64_t(likely(ceil_div(p_.extent, loop::kChunk))) / loop::kLanes;
      p_.vector = 1, p_.group = kWarp, p_.spread = false;
      p_.unroll = static_cast<int>(std::clamp<uint64_t>(std::bit_floor(steps), 4, kMostFinishing));
      p_.blocks = ceil_div(p_.points, rows_per_block());
    }
  }

 private:
  int64_t likely(Dim size) const { return evaluate(size, sizes_); }
  int rows_per_block() const { return p_.threads / p_.group; }
  Dim extent_of(int axis) const { return p_.extents[size_t(axis)]; }
  bool is_wide(int axis) const { return bounds(extent_of(axis)).hi > 1; }

  void find_axes(const loop::Analysis& a) {
    for (size_t k = 0; k < k_.axes.size(); ++k) {
      Dim extent = k_.axes[k].extent;
      p_.extents.push_back(extent);
      bool inner = k_.axes[k].kind != AxisKind::par;
      (inner ? p_.inner : p_.par).push_back(static_cast<int>(k));
      if (inner) p_.inner_axes |= axis_bit(k);
      (inner ? p_.extent : p_.points) *= extent;
    }
    for (const loop::Value& v : k_.values)
      if (v.op == Op::scan) p_.reverse |= v.reverse;
    (void)a;
  }

  void find_sweeps(const loop::Analysis& a) {
    p_.sweeps.resize(size_t(a.levels));
    for (size_t i = 0; i < k_.values.size(); ++i)
      if (p_.needed[i] && k_.values[i].op == Op::reduce)
        p_.sweeps[size_t(p_.level[i]) - 1].push_back(ValueId(i));
    for (const loop::StoreFacts& store : a.stores) {
      p_.stored_inside.push_back((store.axes & p_.inner_axes) != 0);
      if (p_.stored_inside.back())
        p_.sweeps.resize(std::max(p_.sweeps.size(), size_t(store.level) + 1));
    }
  }

  // Places that different points write: points go in order then.
  bool may_collide(const loop::Analysis& a) const {
    AxisSet wide = 0;
    for (size_t k = 0; k < p_.extents.size(); ++k)
      if (is_wide(int(k))) wide |= axis_bit(k);
    for (size_t i = 0; i < k_.stores.size(); ++i) {
      const Store& store = k_.stores[i];
      AxisSet index = axes_in(k_, store.index), axes = a.stores[i].axes;
      if (store.scattered || (axes & ~index & wide)) return true;
      AxisSet around = a.par | (axes & p_.inner_axes ? p_.inner_axes : 0);
      if (store.combine != Combine::set && (around & ~index & wide)) return true;
    }
    return false;
  }

  /// Bytes of accesses whose neighbours along `axis` are neighbours in memory, less those of others
  /// that vary. Where there are inner axes, only what happens at each of their points counts.
  int64_t unit_bytes(int axis) const {
    int64_t bytes = 0;
    auto add = [&](PolyId index, DType type, int weight) {
      if (p_.inner_axes && !(axes_in(k_, index) & p_.inner_axes)) return;
      std::optional<int64_t> stride = stride_along(k_, index, axis);
      if (stride == 1) bytes += weight * size_of(type);
      if (!stride || (*stride != 0 && *stride != 1)) bytes -= weight * size_of(type);
    };
    for (size_t i = 0; i < k_.values.size(); ++i)
      if (p_.needed[i] && k_.values[i].op == Op::load)
        add(k_.values[i].index, k_.values[i].type, 2);
    for (const Store& store : k_.stores) add(store.index, k_.buffers[size_t(store.buffer)].type, 3);
    return bytes;
  }

  int best_axis(const std::vector<int>& axes) const {
    int best = -1;
    int64_t most = 0;
    for (size_t k = axes.size(); k-- > 0;) {
      if (!is_wide(axes[k])) continue;
      int64_t bytes = unit_bytes(axes[k]);
      if (best >= 0 && bytes <= most) continue;
      best = axes[k], most = bytes;
    }
    return best;
  }

  /// Whether an access that is contiguous along the vector axis begins at multiples of `vector`.
  bool is_aligned(PolyId index, int64_t vector) const {
    const PolyTable& polys = k_.polys;
    if (polys.constant_of(index) % vector) return false;
    for (const Term& term : polys[index].terms)
      if (!(axes_in(k_, term) >> p_.vector_axis & 1) && term.coef % vector) return false;
    return true;
  }

  /// The most elements that every contiguous access can take at once.
  int widest_vector(bool may_cut) const {
    if (p_.vector_axis < 0) return 1;
    int64_t vector = 1;
    std::vector<PolyId> contiguous;
    auto add = [&](PolyId index, loop::MaskId mask, DType type) {
      if (mask != kNone || stride_along(k_, index, p_.vector_axis) != 1) return;
      contiguous.push_back(index);
      vector = std::max(vector, kVectorBytes / size_of(type));
    };
    for (size_t i = 0; i < k_.values.size(); ++i) {
      const loop::Value& v = k_.values[i];
      if (p_.needed[i] && v.op == Op::load) add(v.index, v.mask, v.type);
    }
    for (const Store& s : k_.stores) add(s.index, s.mask, k_.buffers[size_t(s.buffer)].type);
    vector = std::min<int64_t>(vector, kMostVector);
    auto fits = [&] {
      if (!may_cut && !divides(vector, extent_of(p_.vector_axis))) return false;
      return std::ranges::all_of(contiguous, [&](PolyId x) { return is_aligned(x, vector); });
    };
    while (vector > 1 && (!fits() || likely(extent_of(p_.vector_axis)) < vector)) vector /= 2;
    return static_cast<int>(vector);
  }

  void plan_flat() {
    p_.mode = Mode::flat;
    p_.vector_axis = best_axis(p_.par);
    if (find_tiles()) return plan_tiles();
    p_.vector = widest_vector(true);
    Dim along = p_.vector_axis < 0 ? Dim(1) : extent_of(p_.vector_axis);
    p_.cut = !divides(p_.vector, along);
    Dim vectors = ceil_div(along, p_.vector);
    for (int axis : p_.par)
      if (axis != p_.vector_axis) vectors *= extent_of(axis);
    bool several = p_.ops >= kFewOps && likely(vectors) >= 4 * kBusyThreads;
    p_.unroll = several ? 2 : 1;
    p_.blocks = ceil_div(vectors, int64_t{p_.threads} * p_.unroll);
  }

  /// Loads that are contiguous along another axis than the stores.
  bool find_tiles() {
    if (p_.vector_axis < 0 || likely(extent_of(p_.vector_axis)) < kTile / 2) return false;
    for (int axis : p_.par) {
      if (axis == p_.vector_axis || likely(extent_of(axis)) < kTile / 2) continue;
      for (size_t i = 0; i < k_.values.size(); ++i) {
        const loop::Value& v = k_.values[i];
        if (!p_.needed[i] || v.op != Op::load || v.mask != kNone) continue;
        std::optional<int64_t> across = stride_along(k_, v.index, p_.vector_axis);
        if (stride_along(k_, v.index, axis) != 1 || across == 0 || across == 1) continue;
        if (!loop::is_linear_along(k_, v.index, p_.vector_axis) || k_.polys.has_values(v.index))
          continue;
        p_.tiled.push_back(ValueId(i));
      }
      p_.tile_axis = axis;
      if (!p_.tiled.empty()) return p_.tiled.size() <= kMostTiles;
    }
    return false;
  }

  void plan_tiles() {
    p_.mode = Mode::tiles;
    p_.threads = kTileThreads;
    p_.unroll = kTile * kTile / kTileThreads;
    Dim blocks = 1;
    for (int axis : p_.par) {
      bool cut = axis == p_.vector_axis || axis == p_.tile_axis;
      blocks *= cut ? ceil_div(extent_of(axis), kTile) : extent_of(axis);
    }
    p_.blocks = blocks;
    p_.shared_bytes = static_cast<int64_t>(p_.tiled.size()) * kTile * (kTile + 1) * 8;
  }

  void plan_walk(bool ordered) {
    p_.mode = Mode::walk;
    if (ordered) {
      std::vector<int> all;
      for (size_t k = 0; k < p_.extents.size(); ++k) all.push_back(static_cast<int>(k));
      p_.inner = std::move(all), p_.par.clear();
      p_.extent = p_.extent * p_.points, p_.points = 1;
      p_.inner_axes = static_cast<AxisSet>(axis_bit(p_.extents.size()) - 1);
      p_.stored_inside.assign(k_.stores.size(), true);
      p_.threads = kWarp;
    }
    p_.blocks = ceil_div(p_.points, p_.threads);
  }

  void plan_reduction() {
    int par = best_axis(p_.par), red = innermost();
    int64_t across = par < 0 ? 0 : unit_bytes(par), along = red < 0 ? 0 : unit_bytes(red);
    bool fixed = p_.extent.is_const();
    int64_t extent = fixed ? p_.extent.value() : 0;
    bool short_row = fixed && extent <= kThreadRow && extent * p_.ops <= kThreadRowOps;
    if (short_row && (across >= along || extent <= 8)) return plan_thread_rows(par);
    if (par >= 0 && across > along && likely(extent_of(par)) >= 8) return plan_columns(par);
    plan_rows(red);
  }

  int innermost() const {
    for (size_t k = p_.inner.size(); k-- > 0;)
      if (is_wide(p_.inner[k])) return p_.inner[k];
    return p_.inner.empty() ? -1 : p_.inner.back();
  }

  void plan_thread_rows(int par) {
    p_.mode = Mode::rows;
    p_.group = 1, p_.unrolled = true, p_.spread = true;
    p_.vector_axis = par;
    p_.blocks = ceil_div(p_.points, p_.threads);
  }

  void plan_rows(int red) {
    p_.mode = Mode::rows;
    p_.vector_axis = red;
    bool several = false;
    for (int axis : p_.inner) several |= axis != red && is_wide(axis);
    p_.vector = widest_vector(false);
    if (several && p_.vector == 1) p_.spread = true;
    bool fixed = p_.extent.is_const();
    int64_t extent = fixed ? p_.extent.value() : 0;
    p_.group = std::min(kWarp, static_cast<int>(loop::kLanes) / p_.vector);
    p_.unrolled = fixed && extent > 0 && extent <= kGroupRow &&
                  extent / p_.group * p_.ops <= 4 * kThreadRowOps;
    bool few = likely(p_.points) * p_.group < kBusyThreads;
    if (fixed && extent > (few ? 256 : kGroupRow) && extent <= kBlockRow && !p_.spread)
      return plan_block_rows(extent);
    p_.unroll = p_.unrolled ? 1 : 4 * p_.vector >= kMostVector ? 2 : 4;
    p_.blocks = ceil_div(p_.points, rows_per_block());
  }

  void plan_block_rows(int64_t extent) {
    int64_t widest = 4;  // of what is in registers
    for (const auto& sweep : p_.sweeps)
      for (ValueId id : sweep) widest = std::max(widest, size_of(p_.value(p_.value(id).a).type));
    int64_t vectors = (extent + p_.vector - 1) / p_.vector;
    find_streamed();
    bool few = std::ranges::count(p_.streamed, true) <= 1 && p_.ops <= kFewRowOps;
    bool halves = few && has_weights() && extent * widest * 2 <= kMostRowThreads * kBlockBytes;
    int64_t bytes = halves ? kBlockBytes / 2 : kBlockBytes;
    int64_t most = std::max<int64_t>(bytes / widest / p_.vector, 1);
    int64_t threads = std::bit_ceil(uint64_t((vectors + most - 1) / most));
    p_.threads = static_cast<int>(std::clamp<int64_t>(threads, 128, kMostRowThreads));
    int64_t steps = (vectors + p_.threads - 1) / p_.threads;
    p_.group = p_.threads, p_.unrolled = true;
    p_.lanes_at = steps * p_.threads * p_.vector * widest;
    p_.shared_bytes = p_.lanes_at + loop::kLanes * 8 + 2 * kWarp * 8;
    p_.blocks = p_.points;
    p_.streams_results = likely(p_.points) * extent * widest >= kManyBytes;
    if (few && steps * p_.vector * widest <= bytes)
      p_.together = (halves ? kHalvesTogether : kThreadsTogether) / p_.threads;
  }

  bool varies_along_all(PolyId index) const {
    AxisSet axes = axes_in(k_, index);
    for (size_t k = 0; k < p_.extents.size(); ++k)
      if (is_wide(int(k)) && !(axes >> k & 1)) return false;
    return true;
  }

  /// Whether rows share loads along them.
  bool has_weights() const {
    for (size_t i = 0; i < k_.values.size(); ++i) {
      const loop::Value& v = k_.values[i];
      bool inside = v.op == Op::load && (axes_in(k_, v.index) & p_.inner_axes);
      if (p_.needed[i] && inside && !k_.polys.has_values(v.index) && !varies_along_all(v.index))
        return true;
    }
    return false;
  }

  /// Loads of elements that no other point loads. Those of others stay in the near cache if these
  /// pass it by.
  void find_streamed() {
    for (size_t i = 0; i < k_.values.size(); ++i) {
      const loop::Value& v = k_.values[i];
      if (p_.needed[i] && v.op == Op::load && v.mask == kNone && !k_.polys.has_values(v.index))
        p_.streamed[i] = varies_along_all(v.index);
    }
  }

  void plan_columns(int par) {
    p_.mode = Mode::columns;
    p_.vector_axis = par;
    p_.vector = std::min(widest_vector(false), 4);
    if (p_.extent.is_const())
      p_.lanes = static_cast<int>(std::min<uint64_t>(
          std::bit_ceil(uint64_t(std::max<int64_t>(p_.extent.value(), 1))), loop::kLanes));
    p_.threads = kColumnThreads;
    int64_t wide = (likely(extent_of(par)) + p_.vector - 1) / p_.vector;
    int64_t across = std::clamp<int64_t>(std::bit_ceil(uint64_t(wide)), 1, p_.threads / p_.lanes);
    if (across < p_.threads / p_.lanes)
      p_.threads = std::max(static_cast<int>(across) * p_.lanes, kWarp);
    p_.unroll = p_.vector > 1 ? 2 : 4;
    int64_t columns = p_.threads / p_.lanes * p_.vector;
    p_.blocks = ceil_div(extent_of(par), columns);
    for (int axis : p_.par)
      if (axis != par) p_.blocks *= extent_of(axis);
    p_.shared_bytes = int64_t{p_.threads} * p_.vector * 16;
  }

  Part& p_;
  const loop::Kernel& k_;
  std::span<const Binding> sizes_;
};

/// Results of chunks lie in further pieces of the room: by reduction and part, by row and chunk.
void add_phases(Schedule& s, Part part) {
  Part finish = part;
  Dim chunks = part.points * ceil_div(part.extent, loop::kChunk);
  part.room = static_cast<int>(part.kernel.buffers.size());
  for (ValueId id : part.sweeps[0]) {
    const loop::Value& v = part.value(id);
    bool indexed = v.monoid >= loop::Monoid::argmax;
    for (int k = 0; k < (indexed ? 2 : 1); ++k) {
      DType type = k ? DType::i64 : part.value(v.a).type;
      part.kernel.buffers.push_back({format("chunk{}", s.rooms.size()), type, chunks, true});
      s.rooms.push_back(chunks * size_of(type));
    }
  }
  finish.kernel.buffers = part.kernel.buffers, finish.room = part.room;
  Planner(part, s.sizes).plan_phase(Phase::chunks);
  Planner(finish, s.sizes).plan_phase(Phase::finish);
  s.parts.push_back(std::move(part)), s.parts.push_back(std::move(finish));
}

void find_symbols(Schedule& s, const loop::Kernel& kernel, std::span<const Binding> likely) {
  for (Dim symbol : loop::symbols_in(kernel)) {
    std::string name = symbol_name(symbol);
    Bounds range = bounds(symbol);
    int64_t value = std::clamp(kUsualSize, range.lo, range.hi);
    for (const Binding& b : likely)
      if (symbol_name(b.symbol) == name) value = b.value;
    s.symbols.push_back(std::move(name));
    s.sizes.push_back({symbol, value});
  }
}

/// Results that may take the place of an operand, and those operands.
std::vector<bool> find_overlaid(const loop::Kernel& kernel) {
  loop::Sharing sharing(kernel);
  int count = static_cast<int>(kernel.buffers.size());
  std::vector<bool> overlaid(kernel.buffers.size(), false);
  for (int output = 0; output < count; ++output)
    for (int input = 0; kernel.buffers[size_t(output)].written && input < count; ++input)
      if (sharing.allows(input, output)) overlaid[size_t(input)] = overlaid[size_t(output)] = true;
  return overlaid;
}

}  // namespace

Schedule make_schedule(const KernelRequest& request) {
  Schedule s;
  s.overlaid = find_overlaid(*request.kernel);
  loop::Kernel kernel = loop::expand_math(*request.kernel);
  find_symbols(s, kernel, request.sizes);
  codegen::merge_axes(kernel);
  int first_room = static_cast<int>(kernel.buffers.size());
  std::vector<Part> parts = split(std::move(kernel), first_room);
  const loop::Kernel& last = parts.back().kernel;
  for (size_t k = size_t(first_room); k < last.buffers.size(); ++k)
    s.rooms.push_back(last.buffers[k].size * size_of(last.buffers[k].type));
  for (Part& part : parts) {
    Planner planner(part, s.sizes);
    planner.plan();
    if (planner.wants_phases() && parts.size() == 1)
      add_phases(s, std::move(part));
    else
      s.parts.push_back(std::move(part));
  }
  return s;
}

std::string to_text(const Schedule& schedule) {
  static constexpr const char* kModes[] = {"flat", "tiles", "rows", "columns", "walk"};
  static constexpr const char* kPhases[] = {"", " of chunks", " of the chunks' results"};
  std::string text;
  for (const Part& p : schedule.parts) {
    text += format("{}{}: {} blocks of {} threads, vectors of {}", kModes[int(p.mode)],
                   kPhases[int(p.phase)], p.blocks, p.threads, p.vector);
    if (p.unroll > 1) text += format(", {} at once", p.unroll);
    if (p.mode == Mode::rows) text += format(", {} threads a row", p.group);
    if (p.mode == Mode::columns) text += format(", {} lanes", p.lanes);
    if (p.unrolled) text += ", kept in registers";
    if (p.cut) text += ", the last is cut";
    if (p.shared_bytes) text += format(", {} bytes shared", p.shared_bytes);
    text += "\n";
  }
  return text;
}

}  // namespace tn::cuda
