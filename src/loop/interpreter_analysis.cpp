// What a kernel's values depend on decides segments, orientation and block sizes.
#include <algorithm>
#include <bit>

#include "base/error.h"
#include "loop/analysis.h"
#include "loop/interpreter_lowering.h"
#include "runtime/threads.h"

namespace tn::loop::machine {

// Work that a task should have at least, in elements times instructions, and how many tasks there
// are.
static constexpr int64_t kTaskWork = 32768, kMostTasks = 256;
// Columns of a tile: their lanes stay in the L2 cache.
static constexpr int64_t kColumns = 128;
// The same where the columns are read in place.
static constexpr int64_t kDirectColumns = 1024;
// Below this number of tiles, long reductions are cut instead.
static constexpr int64_t kFewTiles = 8;

Domain ProgramLowering::domain_of(AxisSet axes, int level) const {
  if (program_.mode == Mode::flat) return axes == 0 ? Domain::uniform : Domain::full;
  if (axes & a_.inner()) return Domain::full;
  return axes == 0 && level == 0 ? Domain::uniform : Domain::row;
}

// A store that combines must not repeat over inner axes that it does not depend on.
bool ProgramLowering::combines_once() const {
  for (size_t i = 0; i < kernel_.stores.size(); ++i) {
    const Store& store = kernel_.stores[i];
    AxisSet axes = a_.stores[i].axes & a_.inner();
    bool repeatable = store.combine == Combine::set && !store.scattered;
    if (!repeatable && axes != 0 && axes != a_.inner()) return false;
  }
  return true;
}

bool ProgramLowering::find_domains() {
  for (const KernelAxis& axis : kernel_.axes) extents_.push_back(evaluate(axis.extent, symbols_));
  a_ = analyse(kernel_);
  if (!a_.plain || !combines_once()) return false;
  for (size_t k = 0; k < kernel_.axes.size(); ++k) {
    int64_t& size = a_.par & axis_bit(k) ? program_.points : program_.extent;
    if (__builtin_mul_overflow(size, extents_[k], &size))
      fail(Fault::value, "kernel {}: its axes have too many points", kernel_.name);
  }
  for (const Store& store : kernel_.stores) program_.ordered |= store.scattered;
  choose_mode();
  domain_.resize(kernel_.values.size());
  for (size_t i = 0; i < kernel_.values.size(); ++i)
    domain_[i] = domain_of(kernel_.values[i].axes, a_.level[i]);
  choose_sizes();
  return true;
}

bool ProgramLowering::prefers_columns() const {
  auto innermost = [&](const std::vector<int>& axes) {
    for (size_t k = axes.size(); k-- > 0;)
      if (extents_[static_cast<size_t>(axes[k])] > 1) return axes[k];
    return -1;
  };
  int par = innermost(a_.par_axes), red = innermost(a_.inner_axes);
  if (par < 0 || red < 0) return false;
  int score = 0;
  for (size_t i = 0; i < kernel_.values.size(); ++i) {
    const Value& v = kernel_.values[i];
    if (v.op != Op::load || !a_.needed[i]) continue;
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
    if (!a_.needed[i]) continue;
    bool uses_full = false;
    for_each_operand(kernel_, v, [&](ValueId id) {
      uses_full |= domain_[static_cast<size_t>(id)] == Domain::full;
    });
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
  return std::ranges::none_of(a_.stores,
                              [&](const StoreFacts& store) { return store.axes & a_.inner(); });
}

void ProgramLowering::choose_mode() {
  BlockProgram& p = program_;
  if (a_.inner_axes.empty()) {
    p.mode = Mode::flat;
    return;
  }
  bool columns = options_.orientation == Orientation::columns ||
                 (options_.orientation == Orientation::by_strides && prefers_columns());
  p.mode = columns && !p.ordered ? Mode::columns : Mode::rows;
}

void ProgramLowering::choose_sizes() {
  BlockProgram& p = program_;
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
  BlockProgram& p = program_;
  bool scans = false;
  for (const Segment& segment : p.segments) scans |= segment.has_scan;
  int64_t points = p.points * std::max<int64_t>(p.extent, 1);
  int64_t work = points * static_cast<int64_t>(p.instructions.size() + 1);
  int64_t tasks = std::min(work / kTaskWork, kMostTasks);
  if (p.ordered || tasks < 2) return;
  p.sweep_in_parallel = p.tiles < kFewTiles && p.extent > kChunk && !scans;
  p.tasks = p.sweep_in_parallel ? tasks : std::min(tasks, p.tiles);
}

std::optional<BlockProgram> ProgramLowering::lower() {
  if (!find_domains()) return std::nullopt;
  computed_.assign(kernel_.values.size(), kNone);
  emit_uniforms();
  for (int level = 0; level <= a_.levels; ++level) {
    if (program_.mode != Mode::flat) emit_rows(level);
    emit_sweep(level);
  }
  give_registers();
  choose_tasks();
  return std::move(program_);
}

}  // namespace tn::loop::machine
