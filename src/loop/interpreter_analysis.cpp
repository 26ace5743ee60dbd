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

// Where loaded indices do not vary along the last axes, these are rows of what is read; where they
// do not vary along the first ones, all rows are read at the same places.
void ProgramLowering::find_rows() {
  for (const Store& store : kernel_.stores)
    if (store.scattered || store.combine != Combine::set) return;
  AxisSet varied = 0;
  for (size_t i = 0; i < kernel_.values.size(); ++i) {
    const Value& v = kernel_.values[i];
    if (v.op != Op::load || !a_.needed[i]) continue;
    for_each_value_in(kernel_, v.index,
                      [&](ValueId id) { varied |= kernel_.values[static_cast<size_t>(id)].axes; });
  }
  if (varied == 0) return;
  auto points = [&](size_t first, size_t last) {
    int64_t count = 1;
    for (size_t k = first; k < last; ++k) count *= extents_[k];
    return count;
  };
  size_t first = static_cast<size_t>(std::countr_zero(varied)), last = extents_.size();
  size_t end = static_cast<size_t>(std::bit_width(varied));
  by_index_ = points(end, last) > 1  ? Mode::rows
              : points(0, first) > 1 ? Mode::columns
                                     : Mode::flat;
  if (by_index_ == Mode::flat) return;
  a_.par_axes.clear();
  for (size_t k = 0; k < last; ++k) {
    bool outer = by_index_ == Mode::rows ? k < end : k >= first;
    (outer ? a_.par_axes : a_.inner_axes).push_back(static_cast<int>(k));
    if (!outer) a_.par &= ~axis_bit(k), a_.red |= axis_bit(k);
  }
}

/// Whether the second index is the one behind the first, which is even everywhere.
static bool are_pair(const Kernel& kernel, PolyId first, PolyId second) {
  const Poly &a = kernel.polys[first], &b = kernel.polys[second];
  return a.c0 % 2 == 0 && b.c0 == a.c0 + 1 && a.terms == b.terms &&
         std::ranges::all_of(a.terms, [&](const Term& term) {
           auto varies = [&](AtomId id) { return kernel.polys.atom(id).kind != AtomKind::symbol; };
           return term.coef % 2 == 0 &&
                  std::ranges::count_if(kernel.polys.atoms_of(term.mono), varies) <= 1;
         });
}

/// The load of the first half where two stores copy a pair, and nothing else uses it.
ValueId ProgramLowering::whole_pair(const Store& first, const Store& second) const {
  auto plain = [](const Store& store) { return store.combine == Combine::set && !store.scattered; };
  if (first.buffer != second.buffer || first.mask != second.mask || !plain(first) ||
      !plain(second) || !are_pair(kernel_, first.index, second.index))
    return kNone;
  auto source = [&](ValueId id) {
    for (;;) {
      const Value& v = kernel_.values[static_cast<size_t>(id)];
      std::optional<bool> chosen = v.op == Op::select ? facts_.known(v.a) : std::nullopt;
      if (!chosen) return id;
      id = *chosen ? v.b : v.c;
    }
  };
  ValueId re = source(first.value), im = source(second.value);
  const Value &a = kernel_.values[static_cast<size_t>(re)],
              &b = kernel_.values[static_cast<size_t>(im)];
  bool loads = a.op == Op::load && b.op == Op::load && !facts_.known(re) && !facts_.known(im) &&
               domain_of(a.axes, 0) == Domain::full;
  if (!loads || a.buffer != b.buffer || a.mask != b.mask || !is_float(a.type) ||
      size_of(a.type) < 4 || !are_pair(kernel_, a.index, b.index))
    return kNone;
  for (const Value& v : kernel_.values) {
    if (v.op == Op::select && facts_.known(v.a)) continue;  // its users are asked
    bool used = false;
    for_each_operand(kernel_, v, [&](ValueId id) { used |= source(id) == re || source(id) == im; });
    if (used) return kNone;
  }
  for (const Store& store : kernel_.stores)
    if (&store != &first && &store != &second &&
        (source(store.value) == re || source(store.value) == im))
      return kNone;
  return re;
}

// Complex numbers that are only copied move as a whole.
void ProgramLowering::find_pairs() {
  wide_.assign(kernel_.values.size(), false), skipped_.assign(kernel_.stores.size(), false);
  for (size_t i = 1; i < kernel_.stores.size(); ++i) {
    if (skipped_[i - 1]) continue;
    ValueId load = whole_pair(kernel_.stores[i - 1], kernel_.stores[i]);
    if (load == kNone) continue;
    wide_[static_cast<size_t>(load)] = skipped_[i] = true;
  }
}

bool ProgramLowering::find_domains() {
  extents_ = facts_.extents();
  a_ = analyse(kernel_);
  if (!a_.plain || !combines_once()) return false;
  if (a_.inner_axes.empty()) find_rows();
  for (size_t k = 0; k < kernel_.axes.size(); ++k) {
    int64_t& size = a_.par & axis_bit(k) ? program_.points : program_.extent;
    if (__builtin_mul_overflow(size, extents_[k], &size))
      fail(Fault::value, "kernel {}: its axes have too many points", kernel_.name);
  }
  for (const Store& store : kernel_.stores) program_.ordered |= store.scattered;
  choose_mode();
  find_pairs();
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
  if (by_index_ != Mode::flat) {
    p.mode = by_index_;
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
    int64_t room =
        by_index_ == Mode::rows ? kBlock * 4 : kBlock;  // rows read by index are mostly copied
    p.kept = extent <= room;
    p.tile = p.kept ? std::min(points, room / extent) : 1;
    p.step = p.kept ? extent : kBlock;
    capacity_ = p.tile * p.step;
  } else if (by_index_ == Mode::columns) {
    p.tile = std::min(points, kBlock * 4);  // wide: each tile reads all rows
    p.step = std::min(extent, kBlock * 4 / p.tile);
    p.kept = p.step == extent;
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

// Whether what is loaded lies side by side where it comes from, or is filled in where it goes to.
bool ProgramLowering::only_copies(Range body) const {
  std::vector<int32_t> loaded, aimed;
  for (int32_t i = body.first; i < body.last; ++i) {
    const Instruction& instruction = program_.instructions[static_cast<size_t>(i)];
    auto is_in = [](const std::vector<int32_t>& slots, int32_t slot) {
      return std::ranges::find(slots, slot) != slots.end();
    };
    if (instruction.access == kNone || instruction.mask != kNone) return false;
    bool unit = program_.accesses[static_cast<size_t>(instruction.access)].unit;
    if (instruction.kind == InstructionKind::aim && unit)
      aimed.push_back(instruction.dst);
    else if (instruction.kind == InstructionKind::load && (unit || is_in(aimed, instruction.home)))
      loaded.push_back(instruction.dst);
    else if (instruction.kind != InstructionKind::store || !is_in(loaded, instruction.a))
      return false;
  }
  return true;
}

// Copies use no registers, so that blocks need not fit in one.
void ProgramLowering::widen_copies() {
  BlockProgram& p = program_;
  if (p.mode != Mode::flat || p.segments.size() < 2 || !only_copies(p.segments[1].body)) return;
  p.tile = std::min(std::max<int64_t>(p.points, 1), kChunk);
  p.tiles = (p.points + p.tile - 1) / p.tile;
}

void ProgramLowering::choose_tasks() {
  BlockProgram& p = program_;
  bool scans = false;
  for (const Segment& segment : p.segments) scans |= segment.has_scan;
  int64_t points = p.points * std::max<int64_t>(p.extent, 1);
  int64_t work = points * static_cast<int64_t>(p.instructions.size() + 1);
  int64_t tasks = std::min(work / kTaskWork, kMostTasks);
  if (p.ordered || tasks < 2) return;
  bool is_long = p.extent > kChunk || by_index_ == Mode::columns;
  p.sweep_in_parallel = p.tiles < kFewTiles && is_long && !scans;
  p.tasks = p.sweep_in_parallel ? tasks : std::min(tasks, p.tiles);
}

std::optional<BlockProgram> ProgramLowering::lower() {
  if (!find_domains()) return std::nullopt;
  computed_.assign(kernel_.values.size(), kNone);
  offsets_ = computed_;
  emit_uniforms();
  for (int level = 0; level <= a_.levels; ++level) {
    if (program_.mode != Mode::flat) emit_rows(level);
    emit_sweep(level);
  }
  give_registers();
  widen_copies();
  choose_tasks();
  return std::move(program_);
}

}  // namespace tn::loop::machine
