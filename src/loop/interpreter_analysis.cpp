// What a kernel's values depend on decides segments, orientation and block sizes.
#include <algorithm>
#include <bit>

#include "base/error.h"
#include "loop/interpreter_lowering.h"
#include "loop/refine_kernel.h"
#include "runtime/threads.h"

namespace tn::loop::machine {

// Work that a task should have at least, in elements times steps, and how many tasks there are.
static constexpr int64_t kTaskWork = 32768, kMostTasks = 256;
// Columns of a tile: their lanes stay in the L2 cache.
static constexpr int64_t kColumns = 128;
// The same where the columns are read in place.
static constexpr int64_t kDirectColumns = 1024;
// Below this number of tiles, long reductions are cut instead.
static constexpr int64_t kFewTiles = 8;

void ProgramLowering::store_facts(const Store& store, AxisSet& axes, int& level) const {
  axes = kernel_.values[static_cast<size_t>(store.value)].axes | axes_in(kernel_, store.index);
  level = level_[static_cast<size_t>(store.value)];
  auto use = [&](ValueId id) { level = std::max(level, level_[static_cast<size_t>(id)]); };
  for_each_value_in(store.index, use);
  if (store.mask == kNone) return;
  for (PolyId poly : kernel_.masks[static_cast<size_t>(store.mask)]) {
    axes |= axes_in(kernel_, poly);
    for_each_value_in(poly, use);
  }
}

Domain ProgramLowering::domain_of(AxisSet axes, int level) const {
  if (program_.mode == Mode::flat) return axes == 0 ? Domain::uniform : Domain::full;
  if (axes & inner_) return Domain::full;
  return axes == 0 && level == 0 ? Domain::uniform : Domain::row;
}

void ProgramLowering::find_levels() {
  level_.assign(kernel_.values.size(), 0);
  for (size_t i = 0; i < kernel_.values.size(); ++i) {
    const Value& v = kernel_.values[i];
    int& level = level_[i];
    for_each_operand(v,
                     [&](ValueId id) { level = std::max(level, level_[static_cast<size_t>(id)]); });
    if (v.op == Op::reduce) ++level;
    levels_ = std::max(levels_, level);
  }
}

void ProgramLowering::find_needed() {
  needed_.assign(kernel_.values.size(), false);
  auto need = [&](ValueId id) { needed_[static_cast<size_t>(id)] = true; };
  for (const Store& store : kernel_.stores) {
    need(store.value);
    for_each_value_in(store.index, need);
    if (store.mask != kNone)
      for (PolyId poly : kernel_.masks[static_cast<size_t>(store.mask)])
        for_each_value_in(poly, need);
  }
  for (size_t i = kernel_.values.size(); i-- > 0;)
    if (needed_[i]) for_each_operand(kernel_.values[i], need);
}

// One set of red axes that every reduction runs over, or one scan axis with one direction.
bool ProgramLowering::is_plain() const {
  AxisSet red = 0, scan = 0;
  for (size_t k = 0; k < kernel_.axes.size(); ++k) {
    if (kernel_.axes[k].kind == AxisKind::red) red |= AxisSet{1} << k;
    if (kernel_.axes[k].kind == AxisKind::scan) scan |= AxisSet{1} << k;
  }
  if (red && scan) return false;
  if (std::popcount(scan) > 1) return false;
  int forward = 0, backward = 0;
  for (size_t i = 0; i < kernel_.values.size(); ++i) {
    const Value& v = kernel_.values[i];
    if (!needed_[i]) continue;
    if (v.op == Op::reduce && v.over != red) return false;
    if (v.op == Op::scan) ++(v.reverse ? backward : forward);
  }
  // A store that combines must not repeat over inner axes that it does not depend on.
  for (const Store& store : kernel_.stores) {
    AxisSet axes;
    int level;
    store_facts(store, axes, level);
    axes &= red | scan;
    bool repeatable = store.combine == Combine::set && !store.scattered;
    if (!repeatable && axes != 0 && axes != (red | scan)) return false;
  }
  return forward == 0 || backward == 0;
}

bool ProgramLowering::analyse() {
  for (const KernelAxis& axis : kernel_.axes) extents_.push_back(evaluate(axis.extent, symbols_));
  find_levels();
  find_needed();
  if (!is_plain()) return false;
  for (size_t k = 0; k < kernel_.axes.size(); ++k) {
    bool par = kernel_.axes[k].kind == AxisKind::par;
    (par ? par_ : inner_) |= AxisSet{1} << k;
    (par ? par_axes_ : inner_axes_).push_back(static_cast<int>(k));
    int64_t& size = par ? program_.points : program_.extent;
    if (__builtin_mul_overflow(size, extents_[k], &size))
      fail(Fault::value, "kernel {}: its axes have too many points", kernel_.name);
  }
  for (const Store& store : kernel_.stores) program_.ordered |= store.scattered;
  choose_mode();
  domain_.resize(kernel_.values.size());
  for (size_t i = 0; i < kernel_.values.size(); ++i)
    domain_[i] = domain_of(kernel_.values[i].axes, level_[i]);
  choose_sizes();
  return true;
}

bool ProgramLowering::prefers_columns() const {
  auto innermost = [&](const std::vector<int>& axes) {
    for (size_t k = axes.size(); k-- > 0;)
      if (extents_[static_cast<size_t>(axes[k])] > 1) return axes[k];
    return -1;
  };
  int par = innermost(par_axes_), red = innermost(inner_axes_);
  if (par < 0 || red < 0) return false;
  int score = 0;
  for (size_t i = 0; i < kernel_.values.size(); ++i) {
    const Value& v = kernel_.values[i];
    if (v.op != Op::load || !needed_[i]) continue;
    for (const Term& term : kernel_.polys[v.index].terms) {
      const auto& atoms = kernel_.polys.atoms_of(term.mono);
      if (atoms.size() != 1 || term.coef != 1) continue;
      const Atom& atom = kernel_.polys.atom(atoms[0]);
      if (atom.kind != AtomKind::axis) continue;
      if (atom.a == static_cast<uint32_t>(par)) ++score;
      if (atom.a == static_cast<uint32_t>(red)) --score;
    }
  }
  return score > 0;
}

// Whether every value over the inner axes is a plain load that only reductions use.
bool ProgramLowering::reads_directly() const {
  for (size_t i = 0; i < kernel_.values.size(); ++i) {
    const Value& v = kernel_.values[i];
    if (!needed_[i]) continue;
    bool uses_full = false;
    for_each_operand(
        v, [&](ValueId id) { uses_full |= domain_[static_cast<size_t>(id)] == Domain::full; });
    if (uses_full && v.op != Op::reduce) return false;
    if (v.op == Op::reduce && domain_[static_cast<size_t>(v.a)] != Domain::full) return false;
    if (domain_[i] != Domain::full) continue;
    if (v.op != Op::load || v.mask != kNone) return false;
    for (const Term& term : kernel_.polys[v.index].terms)
      for (AtomId id : kernel_.polys.atoms_of(term.mono)) {
        AtomKind kind = kernel_.polys.atom(id).kind;
        if (kind != AtomKind::axis && kind != AtomKind::symbol) return false;
      }
  }
  for (const Store& store : kernel_.stores) {
    AxisSet axes;
    int level;
    store_facts(store, axes, level);
    if (axes & inner_) return false;
  }
  return true;
}

void ProgramLowering::choose_mode() {
  Program& p = program_;
  if (inner_axes_.empty()) {
    p.mode = Mode::flat;
    return;
  }
  bool columns = options_.orientation == Orientation::columns ||
                 (options_.orientation == Orientation::by_strides && prefers_columns());
  p.mode = columns && !p.ordered ? Mode::columns : Mode::rows;
}

void ProgramLowering::choose_sizes() {
  Program& p = program_;
  int64_t points = std::max<int64_t>(p.points, 1), extent = std::max<int64_t>(p.extent, 1);
  if (p.mode == Mode::flat) {
    p.tile = std::min(points, kBlock);
    capacity_ = p.tile;
  } else if (p.mode == Mode::rows) {
    p.kept = extent <= kBlock;
    p.tile = p.kept ? std::min(points, kBlock / extent) : 1;
    p.step = p.kept ? extent : kBlock;
    capacity_ = p.tile * p.step;
  } else {
    p.direct = points > 2 * kColumns && reads_directly();
    int64_t few_rows = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent)));
    p.tile = std::min(points, std::max(kColumns, kBlock / few_rows));
    if (points <= 2 * kColumns) p.tile = points;
    p.step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(kBlock / p.tile)));
    if (p.direct) {
      p.tile = std::min(points, kDirectColumns);
      p.step = kLanes;
    }
    p.kept = p.step >= extent;
    if (p.kept) p.step = extent;
    capacity_ = p.direct ? p.tile : p.tile * p.step;
    p.lanes = std::min(few_rows, kLanes);
  }
  auto chunks = static_cast<uint64_t>((extent + kChunk - 1) / kChunk);
  p.total_lanes = std::min(static_cast<int64_t>(std::bit_ceil(chunks)), kLanes);
  p.tiles = p.extent == 0 && p.mode == Mode::flat ? 0 : (p.points + p.tile - 1) / p.tile;
}

void ProgramLowering::choose_tasks() {
  Program& p = program_;
  bool scans = false;
  for (const Segment& segment : p.segments) scans |= segment.has_scan;
  int64_t points = p.points * std::max<int64_t>(p.extent, 1);
  int64_t work = points * static_cast<int64_t>(p.steps.size() + 1);
  int64_t tasks = std::min(work / kTaskWork, kMostTasks);
  if (p.ordered || tasks < 2) return;
  p.sweep_in_parallel = p.tiles < kFewTiles && p.extent > kChunk && !scans;
  p.tasks = p.sweep_in_parallel ? tasks : std::min(tasks, p.tiles);
}

std::optional<Program> ProgramLowering::lower() {
  if (!analyse()) return std::nullopt;
  computed_.assign(kernel_.values.size(), kNone);
  emit_uniforms();
  for (int level = 0; level <= levels_; ++level) {
    if (program_.mode != Mode::flat) emit_rows(level);
    emit_sweep(level);
  }
  give_registers();
  choose_tasks();
  return std::move(program_);
}

}  // namespace tn::loop::machine
