// Emitting the instructions of each segment.
#include "loop/interpreter_lowering.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "loop/interpreter_walk.h"

namespace tn::loop::machine {

static bool is_arg(Monoid monoid) { return monoid == Monoid::argmax || monoid == Monoid::argmin; }

ProgramLowering::ProgramLowering(const Kernel& kernel, std::span<const Binding> symbols, Box box,
                                 const BlockOps& ops, const PrepareOptions& options)
    : kernel_(kernel), facts_(kernel, symbols, std::move(box)), ops_(ops), options_(options) {}

BlockFn ProgramLowering::function(Op op, DType type) const {
  BlockFn fn = ops_.op[static_cast<int>(op)][static_cast<int>(type)];
  invariant(fn != nullptr, "kernel {}: no {} of {}", kernel_.name, facts(op).name, type);
  return fn;
}

Instruction& ProgramLowering::push(InstructionKind kind, int32_t dst, DType type) {
  Instruction instruction{
      .kind = kind, .size = static_cast<uint8_t>(size_of(type)), .type = type, .dst = dst};
  emitting_->push_back(instruction);
  return emitting_->back();
}

int64_t ProgramLowering::elements_in(Domain domain) const {
  return domain == Domain::full ? capacity_ : domain == Domain::row ? program_.tile : 1;
}

int32_t ProgramLowering::new_slot(int64_t size, Domain domain) {
  slots_.push_back({.bytes = (size * elements_in(domain) + 63) / 64 * 64, .size = size});
  return static_cast<int32_t>(slots_.size()) - 1;
}

int32_t ProgramLowering::constant_slot(const Scalar& value, DType type) {
  std::array<std::byte, 8> element = element_bits(value, type);
  uint64_t bits;
  std::memcpy(&bits, element.data(), 8);
  int64_t size = size_of(type), n = elements_in(current_);
  std::array key = {bits, static_cast<uint64_t>(size), static_cast<uint64_t>(n)};
  int32_t& at = constants_.try_emplace(key, kNone).first->second;
  if (at != kNone) return at;
  size_t offset = constant_bytes_.size();
  constant_bytes_.resize((offset + static_cast<size_t>(n * size) + 63) / 64 * 64);
  splat(static_cast<int>(size), &constant_bytes_[offset], element.data(), n);
  slots_.push_back({.constant = static_cast<int64_t>(offset)});
  return at = static_cast<int32_t>(slots_.size()) - 1;
}

int32_t ProgramLowering::compute(BlockFn fn, DType type, int32_t a, int32_t b, int32_t c) {
  int32_t dst = new_slot(size_of(type), current_);
  Instruction& instruction = push(InstructionKind::compute, dst, type);
  instruction.fn = fn;
  instruction.a = a;
  instruction.b = b ? b : a;
  instruction.c = c ? c : a;
  return dst;
}

int32_t ProgramLowering::own_slot(ValueId id) {
  int32_t at = computed_[static_cast<size_t>(id)];
  invariant(at != kNone, "kernel {}: v{} is used before it is computed", kernel_.name, id);
  return at;
}

int32_t ProgramLowering::zero_slot(DType type) {
  static constexpr DType kWords[] = {DType::u8, DType::u16, DType::u32, DType::u64};
  auto size = static_cast<unsigned>(size_of(type));
  return constant_slot(int64_t{0}, kWords[std::countr_zero(size)]);
}

// The slot that holds `id` at the points of the current domain.
int32_t ProgramLowering::slot(ValueId id) {
  const Value& v = kernel_.values[static_cast<size_t>(id)];
  if (v.op == Op::constant) return constant_slot(v.literal, v.type);
  if (std::optional<bool> known = facts_.known(id))
    return *known ? constant_slot(true, DType::b1) : zero_slot(v.type);
  Domain domain = domain_[static_cast<size_t>(id)];
  int32_t own = own_slot(id);
  if (domain == current_) return own;
  auto& copies = domain == Domain::uniform ? splats_ : expands_;
  int32_t& copy = copies.try_emplace(id, kNone).first->second;
  if (copy != kNone) return copy;
  copy = new_slot(size_of(v.type), Domain::full);
  bool uniform = domain == Domain::uniform;
  Instruction instruction{.kind = uniform ? InstructionKind::splat : InstructionKind::expand,
                          .size = static_cast<uint8_t>(size_of(v.type)),
                          .type = v.type,
                          .dst = copy,
                          .a = own};
  (uniform ? uniform_ : prologue_).push_back(instruction);
  return copy;
}

void ProgramLowering::emit_uniforms() {
  slots_.push_back({.bytes = 64, .size = 8});  // slot 0 stands for operands that are not there
  current_ = Domain::uniform;
  emitting_ = &uniform_;
  emit_domain(Domain::uniform, 0);
  poly_slots_.clear();
  mask_slots_.clear();
  program_.segments.push_back({.domain = Domain::uniform});
}

void ProgramLowering::emit_rows(int level) {
  current_ = Domain::row;
  emitting_ = &body_;
  emit_domain(Domain::row, level);
  finish_segment();
}

void ProgramLowering::emit_sweep(int level) {
  current_ = Domain::full;
  emitting_ = &body_;
  segment_.reducers.first = static_cast<int32_t>(program_.reducers.size());
  emit_domain(Domain::full, level);
  segment_.reducers.last = static_cast<int32_t>(program_.reducers.size());
  aim_last_store();
  finish_segment();
  expands_.clear();
  if (program_.kept) return;
  for (size_t i = 0; i < computed_.size(); ++i)
    if (domain_[i] == Domain::full) computed_[i] = kNone;
}

// All values of the domain that this level's stores and reductions want, in order, then its stores.
void ProgramLowering::emit_domain(Domain domain, int level) {
  std::vector<bool> wanted(kernel_.values.size(), false);
  auto want = [&](ValueId id) { wanted[static_cast<size_t>(id)] = true; };
  std::vector<const Store*> stores;
  for (size_t i = 0; i < kernel_.stores.size(); ++i) {
    const StoreFacts& store = a_.stores[i];
    bool full = program_.mode == Mode::flat || (store.axes & a_.inner()) != 0;
    if (domain != (full ? Domain::full : Domain::row) || store.level != level || skipped_[i])
      continue;
    stores.push_back(&kernel_.stores[i]);
    for_each_operand(kernel_, kernel_.stores[i], want);
  }
  for (size_t i = kernel_.values.size(); i-- > 0;) {
    const Value& v = kernel_.values[i];
    if (!a_.needed[i]) continue;
    if (domain == Domain::full && v.op == Op::reduce && a_.level[i] == level + 1) {
      wanted[i] = true;
      want(v.a);
      continue;
    }
    // Row values are few and live on; full ones are computed in the sweeps that use them.
    if (domain != Domain::full && domain_[i] == domain && a_.level[i] == level) wanted[i] = true;
    if (wanted[i] && domain_[i] == domain && !facts_.known(static_cast<ValueId>(i)))
      facts_.for_each_wanted(v, want);
  }
  for (size_t i = 0; i < kernel_.values.size(); ++i) {
    const Value& v = kernel_.values[i];
    bool here = v.op == Op::reduce ? domain == Domain::full && a_.level[i] == level + 1
                                   : domain_[i] == domain;
    if (wanted[i] && here && computed_[i] == kNone && v.op != Op::constant &&
        !facts_.known(static_cast<ValueId>(i)))
      emit_value(static_cast<ValueId>(i));
  }
  if (domain != Domain::full) emit_offsets();
  for (const Store* store : stores) emit_store(*store);
}

void ProgramLowering::emit_value(ValueId id) {
  const Value& v = kernel_.values[static_cast<size_t>(id)];
  int32_t& at = computed_[static_cast<size_t>(id)];
  switch (v.op) {
    case Op::argument: {
      at = new_slot(8, current_);
      push(InstructionKind::argument, at, v.type).a = v.a;
      return;
    }
    case Op::index:
      at = poly_slot(v.index);
      return;
    case Op::load:
      if (program_.direct && current_ == Domain::full) return;
      return emit_load(id);
    case Op::cast:
      return emit_cast(id);
    case Op::bitcast:
      at = slot(v.a);
      return;
    case Op::reduce:
      return emit_reduce(id);
    case Op::scan:
      return emit_scan(id);
    default:
      return emit_compute(id);
  }
}

// The load of rows drops the rows itself, if nothing else selects from it.
bool ProgramLowering::drop_rows(ValueId id) {
  const Value& v = kernel_.values[static_cast<size_t>(id)];
  if (v.op != Op::select || by_index_ != Mode::rows || current_ != Domain::full) return false;
  if (facts_.known(v.a)) return false;  // one of the branches takes its place
  const Value& zero = kernel_.values[static_cast<size_t>(v.c)];
  if (domain_[static_cast<size_t>(v.a)] != Domain::row || zero.op != Op::constant) return false;
  if (element_bits(zero.literal, zero.type) != std::array<std::byte, 8>{}) return false;
  int uses = 0;
  auto count = [&](ValueId operand) { uses += operand == v.b; };
  for (const Value& user : kernel_.values) for_each_operand(kernel_, user, count);
  for (const Store& store : kernel_.stores) for_each_operand(kernel_, store, count);
  int32_t loaded = kernel_.values[static_cast<size_t>(v.b)].op == Op::load ? slot(v.b) : kNone;
  auto load = std::ranges::find(body_, loaded, &Instruction::dst);
  if (uses != 1 || load == body_.end() || !load->by_row) return false;
  load->drops = true;
  load->b = own_slot(v.a);
  computed_[static_cast<size_t>(id)] = loaded;
  return true;
}

void ProgramLowering::emit_compute(ValueId id) {
  const Value& v = kernel_.values[static_cast<size_t>(id)];
  if (drop_rows(id)) return;
  if (std::optional<bool> chosen = v.op == Op::select ? facts_.known(v.a) : std::nullopt) {
    computed_[static_cast<size_t>(id)] = slot(*chosen ? v.b : v.c);
    return;
  }
  DType key = key_of(kernel_, v);
  int operands = facts(v.op).operands;
  int32_t a = slot(v.a);
  int32_t b = operands > 1 ? slot(v.b) : 0;
  int32_t c = operands > 2 ? slot(v.c) : 0;
  computed_[static_cast<size_t>(id)] = compute(function(v.op, key), v.type, a, b, c);
}

// Narrow floats convert from and to f32, and from f64 directly; other pairs take two instructions.
void ProgramLowering::emit_cast(ValueId id) {
  const Value& v = kernel_.values[static_cast<size_t>(id)];
  DType from = kernel_.values[static_cast<size_t>(v.a)].type;
  auto cast = [&](DType source, DType target) {
    return ops_.cast[static_cast<int>(source)][static_cast<int>(target)];
  };
  int32_t at = slot(v.a);
  if (from != v.type && !cast(from, v.type)) {
    bool wide = is_integer(from) && size_of(from) >= 4;
    DType middle = wide ? DType::f64 : DType::f32;
    at = compute(cast(from, middle), middle, at);
    from = middle;
  }
  if (from != v.type) {
    invariant(cast(from, v.type) != nullptr, "no cast from {} to {}", from, v.type);
    at = compute(cast(from, v.type), v.type, at);
  }
  computed_[static_cast<size_t>(id)] = at;
}

// The values in the indices of loads that they do not vary along all axes of: once for each row.
void ProgramLowering::emit_offsets() {
  for (size_t i = 0; i < kernel_.values.size(); ++i) {
    const Value& v = kernel_.values[i];
    if (v.op != Op::load || !a_.needed[i] || domain_[i] != Domain::full || offsets_[i] != kNone)
      continue;
    if (domain_of_offset(v.index) != current_) continue;
    Linear sum = sum_of_terms(v.index, true, wide_[i]);
    Linear rest = sum_of_terms(v.index, false, wide_[i]);
    if (!rest.terms.empty()) continue;  // it is gathered, by one sum
    if (current_ == Domain::row && by_index_ == Mode::columns) {
      for (int axis : a_.par_axes)
        sum.strides[static_cast<size_t>(axis)] = rest.strides[static_cast<size_t>(axis)];
    }
    offsets_[i] = number_slot(sum);
  }
}

void ProgramLowering::emit_load(ValueId id) {
  const Value& v = kernel_.values[static_cast<size_t>(id)];
  int32_t mask = mask_slot(v.mask);
  int32_t offset = current_ == Domain::full ? offsets_[static_cast<size_t>(id)] : kNone;
  bool wide = wide_[static_cast<size_t>(id)], moved = offset != kNone;
  bool by_row = moved && domain_of_offset(v.index) == Domain::row;
  Linear index = sum_of_terms(v.index, false, wide);
  if (!moved) {
    Linear values = sum_of_terms(v.index, true, wide);
    index.terms.insert(index.terms.end(), values.terms.begin(), values.terms.end());
    index.base += values.base;
  } else if (by_row && by_index_ == Mode::columns) {
    for (int axis : a_.par_axes) index.strides[static_cast<size_t>(axis)] = 0;
  }
  DType type = wide ? complex_of(v.type) : v.type;
  int64_t size = size_of(type);
  if (!index.terms.empty()) {
    int32_t offsets = number_slot(index);
    int32_t access = add_access(v.buffer, size, Linear{0, index.strides, {}});
    int32_t dst = new_slot(size, current_);
    Instruction& instruction = push(InstructionKind::gather, dst, type);
    instruction.a = offsets;
    instruction.mask = mask;
    instruction.access = access;
    computed_[static_cast<size_t>(id)] = dst;
    return;
  }
  int32_t home = new_slot(size, current_);
  slots_.push_back({.home = home});
  int32_t dst = static_cast<int32_t>(slots_.size()) - 1;
  int32_t access = add_access(v.buffer, size, index);
  Instruction& instruction =
      push(moved ? InstructionKind::load_at : InstructionKind::load, dst, type);
  if (moved) instruction.a = offset;
  instruction.by_row = by_row;
  instruction.home = home;
  instruction.mask = mask;
  instruction.access = access;
  computed_[static_cast<size_t>(id)] = dst;
}

int ProgramLowering::add_reducer(const Value& v, DType type) {
  Reducer r{.monoid = v.monoid, .type = type, .size = static_cast<int32_t>(size_of(type))};
  r.arg = is_arg(v.monoid);
  r.reverse = v.reverse;
  r.exclusive = v.exclusive;
  if (r.arg) {
    r.arg_fns = &ops_.arg[v.monoid == Monoid::argmin][static_cast<int>(type)];
    invariant(r.arg_fns->run != nullptr, "no {} of {}", name_of(v.monoid), type);
  } else {
    static constexpr Op kOp[] = {Op::add, Op::mul, Op::max, Op::min, Op::and_, Op::or_};
    r.fn = function(kOp[static_cast<int>(v.monoid)], type);
    r.run = &ops_.run[static_cast<int>(v.monoid)][static_cast<int>(type)];
    invariant(r.run->rows != nullptr, "no {} of {}", name_of(v.monoid), type);
    r.run->rows(r.empty.data(), nullptr, 1, 0);
    r.identity = r.empty;
    if (v.monoid == Monoid::add && is_float(type)) r.identity = element_bits(-0.0, type);
    if (v.monoid == Monoid::and_ && type == DType::b1)
      r.identity = r.empty = element_bits(true, type);
    if (v.monoid == Monoid::min && type == DType::b1)
      r.identity = r.empty = element_bits(true, type);
  }
  program_.reducers.push_back(r);
  return static_cast<int>(program_.reducers.size()) - 1;
}

void ProgramLowering::emit_reduce(ValueId id) {
  const Value& v = kernel_.values[static_cast<size_t>(id)];
  const Value& from = kernel_.values[static_cast<size_t>(v.a)];
  int32_t operand = program_.direct ? 0 : slot(v.a);
  int32_t access = kNone;
  if (program_.direct) access = add_access(from.buffer, size_of(from.type), linear(from.index));
  int reducer = add_reducer(v, from.type);
  int32_t result = new_slot(size_of(v.type), Domain::row);
  program_.reducers.back().result = result;
  Instruction& instruction = push(InstructionKind::reduce, result, v.type);
  instruction.a = operand;
  instruction.access = access;
  instruction.reducer = reducer;
  computed_[static_cast<size_t>(id)] = result;
}

void ProgramLowering::emit_scan(ValueId id) {
  const Value& v = kernel_.values[static_cast<size_t>(id)];
  int32_t operand = slot(v.a);
  int reducer = add_reducer(v, v.type);
  segment_.has_scan = true;
  segment_.reverse = v.reverse;
  int32_t dst = new_slot(size_of(v.type), current_);
  Instruction& instruction = push(InstructionKind::scan, dst, v.type);
  instruction.a = operand;
  instruction.reducer = reducer;
  computed_[static_cast<size_t>(id)] = dst;
}

void ProgramLowering::emit_store(const Store& store) {
  DType type = kernel_.buffers[static_cast<size_t>(store.buffer)].type;
  auto next = static_cast<size_t>(&store - kernel_.stores.data()) + 1;
  bool wide = next < skipped_.size() && skipped_[next];
  if (wide) type = complex_of(type);
  int64_t size = size_of(type);
  int32_t value = slot(store.value);
  int32_t mask = mask_slot(store.mask);
  Linear index = linear(store.index);
  if (wide) index = halved(std::move(index));
  static constexpr Op kOp[] = {Op::add, Op::add, Op::mul, Op::max, Op::min};
  Op op = kOp[static_cast<int>(store.combine)];
  if (store.scattered || !index.terms.empty()) {
    int32_t offsets = number_slot(index);
    int32_t access = add_access(store.buffer, size, Linear{0, index.strides, {}});
    Instruction& instruction = push(InstructionKind::scatter, 0, type);
    instruction.a = offsets;
    instruction.b = value;
    instruction.mask = mask;
    instruction.access = access;
    if (store.combine == Combine::set) return;
    int monoid = static_cast<int>(store.combine) - static_cast<int>(Combine::add);
    instruction.scatter = ops_.run[monoid][static_cast<int>(type)].scatter;
    invariant(instruction.scatter != nullptr, "kernel {}: no scatter of {}", kernel_.name, type);
    return;
  }
  int32_t access = add_access(store.buffer, size, index);
  if (store.combine != Combine::set) {
    int32_t home = new_slot(size, current_);
    slots_.push_back({.home = home});
    int32_t old = static_cast<int32_t>(slots_.size()) - 1;
    Instruction& load = push(InstructionKind::load, old, type);
    load.home = home;
    load.mask = mask;
    load.access = access;
    value = compute(function(op, type), type, old, value);
  }
  Instruction& instruction = push(InstructionKind::store, 0, type);
  instruction.a = value;
  instruction.mask = mask;
  instruction.access = access;
}

// The last value that is made goes straight to where it is stored. Only the last: an output may
// share memory with an input, and earlier results would overwrite what later instructions read.
void ProgramLowering::aim_last_store() {
  size_t last = body_.size();
  while (last > 0 && body_[last - 1].kind == InstructionKind::store) --last;
  if (last == 0 || last == body_.size()) return;
  InstructionKind kind = body_[last - 1].kind;
  bool loads = kind == InstructionKind::load || kind == InstructionKind::load_at;
  if (!loads && kind != InstructionKind::compute && kind != InstructionKind::gather) return;
  for (size_t i = last; i < body_.size(); ++i) {
    Instruction& producer = body_[last - 1];
    const Instruction& store = body_[i];
    if (store.a != producer.dst || store.mask != kNone || store.size != producer.size) continue;
    int32_t home = loads ? producer.home : producer.dst;
    slots_.push_back({.home = home});
    int32_t aimed = static_cast<int32_t>(slots_.size()) - 1;
    if (loads) producer.home = aimed;
    for (size_t k = last - 1; k < body_.size() && !loads; ++k) {
      if (body_[k].dst == home && k == last - 1) body_[k].dst = aimed;
      if (body_[k].kind == InstructionKind::store && body_[k].a == home) body_[k].a = aimed;
    }
    for (int32_t& slot : computed_)
      if (slot == home) slot = aimed;
    Instruction aim{
        .kind = InstructionKind::aim, .size = store.size, .type = store.type, .dst = aimed};
    aim.home = home;
    aim.access = store.access;
    body_.insert(body_.begin() + static_cast<std::ptrdiff_t>(last) - 1, aim);
    return;
  }
}

void ProgramLowering::finish_segment() {
  auto append = [&](std::vector<Instruction>& from) {
    Range range{static_cast<int32_t>(program_.instructions.size()), 0};
    program_.instructions.insert(program_.instructions.end(), from.begin(), from.end());
    range.last = static_cast<int32_t>(program_.instructions.size());
    from.clear();
    return range;
  };
  segment_.domain = current_;
  segment_.prologue = append(prologue_);
  segment_.body = append(body_);
  if (segment_.body.size() > 0) program_.segments.push_back(segment_);
  segment_ = Segment{};
  poly_slots_.clear();
  mask_slots_.clear();
}

}  // namespace tn::loop::machine
