#include "backend/cpu/codegen/schedule.h"

#include <algorithm>
#include <bit>

#include "backend/llvm/merge_axes.h"
#include "backend/llvm/value_ranges.h"
#include "loop/macros.h"
#include "loop/reduction_tree.h"

namespace tn::cpu {

using loop::AxisKind;
using loop::AxisSet;
using loop::Combine;
using loop::Kernel;
using loop::kNone;
using loop::Op;
using loop::Store;
using loop::ValueId;

// Vectors of one kernel are unrolled up to this many operations, so that compiling stays short.
static constexpr int kUnrolledOps = 24;
static constexpr int kUnrolledRowOps = 256;
// Longer rows would not stay in registers between sweeps.
static constexpr int64_t kUnrolledVectors = 32;
static constexpr int64_t kShortColumns = 16;
// Elements along the vector axis that a unit of a flat kernel covers.
static constexpr int64_t kFlatBlock = 8192;
// Values that cost more to compute again than to read from the first level cache.
static constexpr int kKeptCost = 8;
static constexpr int64_t kKeptRow = 65536;
// Below this number of rows, long reductions are cut.
static constexpr int64_t kFewUnits = 16;
// From this likely length on, rows of symbolic length may turn out to be cut.
static constexpr int64_t kLongRow = 1024;
// Square tiles repeat every operation for each of their rows.
static constexpr int kTiledOps = 12;
static constexpr int kMostTileLanes = 16;
static constexpr int64_t kTiledBlock = 512;
// What a symbol counts as where no likely value is given.
static constexpr int64_t kUsualSize = 64;
// Kernels beyond this take too long to compile.
static constexpr size_t kMostValues = 2000;

std::vector<UnitAxis> unit_axes(const Schedule& s) {
  std::vector<UnitAxis> found;
  bool blocks = s.mode != Mode::rows && s.vector_axis >= 0;
  if (blocks) found.push_back({s.vector_axis, ceil_div(s.vector_extent(), s.block), s.block});
  for (size_t k = s.par.size(); k-- > 0;) {
    int axis = s.par[k];
    Dim extent = s.extents[static_cast<size_t>(axis)];
    if (blocks && axis == s.vector_axis) continue;
    if (axis == s.tile_axis)
      found.push_back({axis, ceil_div(extent, s.lanes), s.lanes});
    else
      found.push_back({axis, extent, 1});
  }
  return found;
}

namespace {

class Scheduler {
 public:
  Scheduler(const KernelRequest& request, const CodeTarget& target) : k_(s_.kernel) {
    s_.kernel = loop::expand_math(*request.kernel);
    find_symbols(request.sizes);
    if (request.form == KernelForm::whole) codegen::merge_axes(s_.kernel);
    s_.form = request.form;
    s_.level = target.level;
    static constexpr int kBits[] = {128, 256, 512};
    s_.vector_bits =
        target.vector_bits ? target.vector_bits : kBits[static_cast<int>(target.level)];
  }

  /// Nothing once the schedule is made; else why it cannot be.
  std::string refusal() {
    if (k_.values.size() > kMostValues)
      return format("{} values, more than {}, would take too long to compile", k_.values.size(),
                    kMostValues);
    a_ = loop::analyse(k_);
    if (!find_axes()) return "its points are too many, or not those of tiles";
    s_.inside = codegen::casts_inside(k_);
    if (!a_.plain) return "it reduces over different axes, or scans in both directions";
    find_sweeps();
    if (!has_code()) return "a remainder of floats, or an fma below x86-64-v3, is a library call";
    choose_mode();
    choose_vectors();
    if (!check_stores()) return "its stores may collide";
    if (s_.mode == Mode::rows) choose_kept();
    choose_units();
    return "";
  }
  Schedule take() { return std::move(s_); }

 private:
  void find_symbols(std::span<const Binding> likely) {
    for (Dim symbol : loop::symbols_in(k_)) {
      std::string name = symbol_name(symbol);
      Bounds range = bounds(symbol);
      int64_t value = std::clamp(kUsualSize, range.lo, range.hi);
      for (const Binding& b : likely)
        if (symbol_name(b.symbol) == name) value = b.value;
      s_.symbols.push_back(std::move(name));
      s_.sizes.push_back({symbol, value});
    }
  }

  bool find_axes() {
    s_.par = a_.par_axes, s_.inner = a_.inner_axes, s_.inner_axes = a_.inner();
    int64_t points = 1;
    for (size_t k = 0; k < k_.axes.size(); ++k) {
      Dim extent = k_.axes[k].extent;
      s_.extents.push_back(extent);
      if (__builtin_mul_overflow(points, s_.likely(extent), &points)) return false;
      Dim& size = a_.par >> k & 1 ? s_.points : s_.extent;
      size *= extent;
    }
    return s_.form == KernelForm::whole || (s_.inner.empty() && s_.par.size() == 3);
  }

  void find_sweeps() {
    s_.depth = a_.level, s_.needed = a_.needed;
    for (size_t i = 0; i < k_.values.size(); ++i)
      s_.ops += s_.needed[i] && k_.values[i].op != Op::constant;
    if (s_.inner.empty()) return;
    s_.sweeps.resize(static_cast<size_t>(a_.levels));
    for (size_t i = 0; i < k_.values.size(); ++i)
      if (s_.needed[i] && k_.values[i].op == Op::reduce)
        s_.sweeps[static_cast<size_t>(s_.depth[i]) - 1].reductions.push_back(
            static_cast<ValueId>(i));
    for (const loop::StoreFacts& store : a_.stores) {
      s_.stored_in_sweep.push_back((store.axes & s_.inner_axes) != 0);
      if (s_.stored_in_sweep.back())
        s_.sweeps.resize(std::max(s_.sweeps.size(), static_cast<size_t>(store.level) + 1));
    }
  }

  // What would be a call of a library function.
  bool has_code() const {
    for (size_t i = 0; i < k_.values.size(); ++i) {
      const loop::Value& v = k_.values[i];
      if (!s_.needed[i]) continue;
      if (v.op == Op::rem && is_float(v.type)) return false;
      if (v.op == Op::fma && s_.level == CpuLevel::v2) return false;
    }
    return true;
  }

  /// Bytes of accesses whose neighbours along `axis` are neighbours in memory. Those of every point
  /// count; where there are inner axes, what happens once for all of their points does not.
  int64_t unit_bytes(int axis) const {
    int64_t bytes = 0;
    auto add = [&](PolyId index, DType type, int weight) {
      if (s_.inner_axes && !(axes_in(k_, index) & s_.inner_axes)) return;
      std::optional<int64_t> stride = stride_along(k_, index, axis);
      if (stride == 1) bytes += weight * size_of(type);
      if (!stride || (*stride != 0 && *stride != 1)) bytes -= weight * size_of(type);
    };
    for (size_t i = 0; i < k_.values.size(); ++i)
      if (s_.needed[i] && k_.values[i].op == Op::load)
        add(k_.values[i].index, k_.values[i].type, 1);
    for (const Store& store : k_.stores)
      add(store.index, k_.buffers[static_cast<size_t>(store.buffer)].type, 2);
    return bytes;
  }

  int best_axis(const std::vector<int>& axes) const {
    int best = -1;
    int64_t most = 0;
    for (size_t k = axes.size(); k-- > 0;) {
      int axis = axes[k];
      if (!s_.is_wide(axis)) continue;
      int64_t bytes = unit_bytes(axis);
      if (best >= 0 && bytes <= most) continue;
      best = axis;
      most = bytes;
    }
    return best;
  }

  int innermost(const std::vector<int>& axes) const {
    for (size_t k = axes.size(); k-- > 0;)
      if (s_.is_wide(axes[k])) return axes[k];
    return axes.empty() ? -1 : axes.back();
  }

  // Windows and other short rows: the ends of a row would cost more than its elements.
  bool is_short(int par, int red) const {
    bool several = red >= 0 && !identical(s_.extents[static_cast<size_t>(red)], s_.extent);
    return par >= 0 && s_.likely(s_.extents[static_cast<size_t>(par)]) >= 16 && !s_.ordered &&
           s_.extent.is_const() &&
           s_.extent.value() <= (several ? kShortColumns : kShortColumns / 2);
  }

  // Vectors along par axes need no folding, so they win where both are as good.
  bool lies_across(int par, int red) const {
    if (par < 0) return false;
    int64_t across = unit_bytes(par), along = unit_bytes(red);
    bool wide = s_.likely(s_.extents[static_cast<size_t>(par)]) >= 16;
    return across > along || (across == along && across > 0 && wide);
  }

  void choose_mode() {
    for (const Store& store : k_.stores) s_.ordered |= store.scattered;
    if (s_.inner.empty()) {
      s_.mode = Mode::flat;
      s_.vector_axis = s_.form == KernelForm::tile ? 2
                       : s_.ordered                ? innermost(s_.par)
                                                   : best_axis(s_.par);
      return;
    }
    int par = best_axis(s_.par), red = innermost(s_.inner);
    bool scans = k_.axes[static_cast<size_t>(s_.inner[0])].kind == AxisKind::scan;
    bool columns = scans || is_short(par, red) || lies_across(par, red);
    s_.mode = columns ? Mode::columns : Mode::rows;
    s_.vector_axis = columns ? par : red;
  }

  void choose_vectors() {
    int64_t widest = 1;
    bool several = false;
    for (size_t i = 0; i < k_.values.size(); ++i)
      if (s_.needed[i] && k_.values[i].axes) widest = std::max(widest, size_of(k_.values[i].type));
    s_.lanes = s_.vector_axis < 0 ? 1 : s_.vector_bits / static_cast<int>(8 * widest);
    if (s_.mode == Mode::rows) {
      s_.lanes = std::min(s_.lanes, static_cast<int>(loop::kLanes));
      for (int axis : s_.inner) several |= axis != s_.vector_axis && s_.is_wide(axis);
      s_.spread = several && !divides(loop::kLanes, s_.vector_extent());
      int64_t vectors = s_.likely(ceil_div(s_.extent, s_.lanes));
      s_.unrolled = s_.extent.is_const() && vectors <= kUnrolledVectors &&
                    vectors * s_.ops <= kUnrolledRowOps && !several;
      s_.copies = static_cast<int>(s_.unrolled ? vectors : loop::kLanes / s_.lanes);
      return;
    }
    int64_t vectors = s_.likely(ceil_div(s_.vector_extent(), s_.lanes));
    // A loop over single vectors follows, so that a short length costs little and may be long
    // later.
    if (s_.mode == Mode::flat && !s_.vector_extent().is_const()) vectors = kFlatBlock;
    int most = std::max(1, std::min(kUnrolledOps / std::max(s_.ops, 1), 4));
    // Long runs of each row of columns, as long as there is a tile for every thread.
    if (s_.mode == Mode::columns && most == 4 && s_.likely(s_.points) / s_.lanes >= 8 * kFewUnits)
      most = 8;
    s_.copies = static_cast<int>(std::min<int64_t>(most, std::max<int64_t>(vectors, 1)));
    if (s_.ordered || s_.lanes == 1) s_.copies = 1;
    s_.unrolled = s_.mode == Mode::columns && s_.extent.is_const() &&
                  s_.extent.value() <= kShortColumns &&
                  s_.extent.value() * s_.copies * s_.ops <= kUnrolledRowOps;
    if (s_.mode == Mode::flat && s_.form == KernelForm::whole && !s_.ordered) choose_tile();
  }

  // Loads that are contiguous along another axis than the stores come as square tiles, transposed
  // in registers. Indices must be linear; what is left beside whole tiles is gathered.
  void choose_tile() {
    if (s_.lanes == 1 || s_.ops > kTiledOps || s_.lanes > kMostTileLanes) return;
    for (int axis : s_.par) {
      if (axis == s_.vector_axis || !is_tileable(axis)) continue;
      for (size_t i = 0; i < k_.values.size(); ++i) {
        const loop::Value& v = k_.values[i];
        if (!s_.needed[i] || v.op != Op::load || stride_along(k_, v.index, axis) != 1) continue;
        std::optional<int64_t> across = stride_along(k_, v.index, s_.vector_axis);
        if (across == 0 || across == 1) continue;
        s_.tile_axis = axis;
        s_.copies = s_.lanes;
        return;
      }
    }
  }

  bool is_tileable(int axis) const {
    auto is_long = [&](Dim extent) { return bounds(extent).hi >= s_.lanes; };
    bool plain = is_long(s_.extents[static_cast<size_t>(axis)]) && is_long(s_.vector_extent());
    auto linear = [&](PolyId poly) {
      return is_linear_along(k_, poly, axis) && is_linear_along(k_, poly, s_.vector_axis);
    };
    for (size_t i = 0; i < k_.values.size(); ++i) {
      const loop::Value& v = k_.values[i];
      if (!s_.needed[i]) continue;
      plain &= v.op != Op::index;
      if (v.op == Op::load) plain &= v.mask == kNone && linear(v.index);
    }
    for (const Store& store : k_.stores) plain &= store.mask == kNone && linear(store.index);
    return plain;
  }

  // Each place is written once, or repeatedly with the same value.
  bool check_stores() const {
    if (s_.points.is(0)) return true;
    for (size_t i = 0; i < k_.stores.size(); ++i) {
      const Store& store = k_.stores[i];
      AxisSet axes = a_.stores[i].axes, index = axes_in(k_, store.index);
      if (s_.ordered && !s_.inner.empty()) return false;
      if (store.scattered) continue;
      AxisSet inner = axes & s_.inner_axes;
      bool repeats = (axes & ~index) != 0 || (inner && inner != s_.inner_axes);
      AxisSet wide = 0;
      for (size_t k = 0; k < s_.extents.size(); ++k)
        if (s_.is_wide(static_cast<int>(k))) wide |= AxisSet{1} << k;
      for (int axis : s_.par) repeats |= !(index >> axis & 1) && (wide >> axis & 1);
      if ((axes & ~index & wide) != 0) return false;
      if (repeats && store.combine != Combine::set) return false;
    }
    return true;
  }

  // The first sweep that computes a value keeps it when a later one would pay for it again.
  void choose_kept() {
    s_.kept.assign(k_.values.size(), -1);
    if (s_.unrolled || s_.likely(s_.extent) > kKeptRow) return;
    int count = 0;
    std::vector<int> first(k_.values.size(), -1);
    for (size_t k = 0; k < s_.sweeps.size(); ++k) {
      std::vector<bool> wanted = wanted_in(k);
      std::vector<int> cost(k_.values.size(), 0);
      for (size_t i = 0; i < k_.values.size(); ++i) {
        const loop::Value& v = k_.values[i];
        if (!(v.axes & s_.inner_axes) || v.op == Op::reduce) continue;
        cost[i] = v.op == Op::div || v.op == Op::sqrt ? 6 : 1;
        for_each_operand(k_, v, [&](ValueId id) { cost[i] += cost[static_cast<size_t>(id)]; });
        cost[i] = std::min(cost[i], 1000);
        if (s_.kept[i] >= 0) cost[i] = 1;
      }
      for (size_t i = k_.values.size(); i-- > 0;) {
        const loop::Value& v = k_.values[i];
        if (!wanted[i] || !(v.axes & s_.inner_axes) || v.op == Op::reduce) continue;
        bool early = first[i] >= 0 && first[i] < static_cast<int>(k);
        if (early && s_.kept[i] < 0 && cost[i] >= kKeptCost) s_.kept[i] = count++;
        if (early && s_.kept[i] >= 0) continue;
        if (first[i] < 0) first[i] = static_cast<int>(k);
        for_each_operand(k_, v, [&](ValueId id) { wanted[static_cast<size_t>(id)] = true; });
      }
    }
  }

  std::vector<bool> wanted_in(size_t sweep) const {
    std::vector<bool> wanted(k_.values.size(), false);
    for (ValueId id : s_.sweeps[sweep].reductions)
      wanted[static_cast<size_t>(s_.value(id).a)] = true;
    if (sweep + 1 == s_.sweeps.size())
      for (size_t i = 0; i < k_.stores.size(); ++i)
        if (s_.stored_in_sweep[i])
          for_each_operand(k_, k_.stores[i],
                           [&](ValueId id) { wanted[static_cast<size_t>(id)] = true; });
    return wanted;
  }

  void choose_units() {
    if (s_.mode == Mode::flat) {
      s_.block = s_.tile_axis < 0 ? kFlatBlock : kTiledBlock;
      Dim extent = s_.vector_extent();
      if (extent.is_const()) s_.block = std::clamp<int64_t>(extent.value(), 1, s_.block);
    } else if (s_.mode == Mode::columns) {
      s_.block = s_.lanes * s_.copies;
    } else {
      int64_t cut = s_.extent.is_const() ? loop::kChunk : kLongRow;
      s_.two_phases = s_.likely(s_.points) < kFewUnits && s_.likely(s_.extent) > cut &&
                      s_.sweeps.size() == 1 &&
                      std::none_of(s_.stored_in_sweep.begin(), s_.stored_in_sweep.end(),
                                   [](bool inside) { return inside; });
      if (s_.two_phases) s_.chunk_units = ceil_div(s_.extent, loop::kChunk);
    }
    for (const UnitAxis& axis : unit_axes(s_)) s_.units *= axis.count;
    if (s_.form == KernelForm::tile) s_.units = 1;
  }

  Schedule s_;
  const Kernel& k_;
  loop::Analysis a_;
};

}  // namespace

/// Angles beyond a few thousand turns are reduced with many words: rare elements, for which the
/// interpreter branches and vectors would not.
static bool has_rare_path(const Kernel& kernel) {
  return std::ranges::any_of(kernel.values, [](const loop::Value& v) {
    return v.op == Op::sin || v.op == Op::cos || v.op == Op::tan;
  });
}

std::optional<Schedule> make_schedule(const KernelRequest& request, const CodeTarget& target,
                                      std::string* why) {
  std::string reason = "angles of thousands of turns take a branch that vectors have not";
  if (!has_rare_path(*request.kernel)) {
    Scheduler scheduler(request, target);
    reason = scheduler.refusal();
    if (reason.empty()) return scheduler.take();
  }
  if (why) *why = std::move(reason);
  return std::nullopt;
}

}  // namespace tn::cpu
