#include "backend/cuda/codegen/gpu_emitter.h"

#include "ir/dim_program.h"

namespace tn::cuda {

using loop::axis_bit;
using loop::AxisSet;
using loop::Op;

// LLVM knows arithmetic on bf16 from sm_90 on.
Emitter::Emitter(const Schedule& schedule, const Part& part, llvm::Module& module,
                 const codegen::Machine& machine)
    : s_(schedule),
      p_(part),
      b_(module.getContext()),
      ops_(b_, true, machine.kind == codegen::Machine::Kind::nvptx,
           machine.kind == codegen::Machine::Kind::nvptx && machine.arch >= 90),
      threads_(b_, module, machine.kind == codegen::Machine::Kind::x86) {}

void Emitter::add_param(EntryCode& entry, Param::Kind kind, int index, DType type, bool written) {
  entry.params.push_back({kind, index, type, 0});
  memory_.push_back({written, kind == Param::Kind::buffer && s_.is_overlaid(index)});
}

EntryCode Emitter::begin(const std::string& name) {
  EntryCode entry;
  entry.name = name;
  entry.blocks = size_program(p_.blocks, s_.symbols);
  entry.threads = p_.threads;
  entry.shared_bytes = p_.shared_bytes;
  const loop::Kernel& k = p_.kernel;
  std::vector<bool> read(k.buffers.size()), written(k.buffers.size());
  std::vector<int> arguments(size_t(k.arguments), -1);
  for (size_t i = 0; i < k.values.size(); ++i) {
    const loop::Value& v = k.values[i];
    if (!p_.needed[i]) continue;
    if (v.op == Op::load) read[size_t(v.buffer)] = true;
    if (v.op == Op::argument) arguments[size_t(v.a)] = static_cast<int>(v.type);
  }
  if (p_.phase != Phase::chunks)
    for (const loop::Store& store : k.stores) written[size_t(store.buffer)] = true;
  if (p_.phase != Phase::whole)
    for (size_t i = size_t(p_.room); i < k.buffers.size(); ++i)
      (p_.phase == Phase::chunks ? written : read)[i] = true;
  buffer_param_.assign(k.buffers.size(), -1);
  for (size_t i = 0; i < k.buffers.size(); ++i) {
    if (!read[i] && !written[i]) continue;
    buffer_param_[i] = static_cast<int>(entry.params.size());
    bool room = static_cast<int>(i) >= p_.first_room;
    add_param(entry, room ? Param::Kind::room : Param::Kind::buffer,
              static_cast<int>(i) - (room ? p_.first_room : 0), k.buffers[i].type, written[i]);
  }
  argument_param_.assign(arguments.size(), -1);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] < 0) continue;
    argument_param_[i] = static_cast<int>(entry.params.size());
    add_param(entry, Param::Kind::scalar, static_cast<int>(i), static_cast<DType>(arguments[i]),
              false);
  }
  for (size_t i = 0; i < s_.symbols.size(); ++i) {
    symbol_param_.push_back(static_cast<int>(entry.params.size()));
    add_param(entry, Param::Kind::value, static_cast<int>(i), DType::i64, false);
  }
  threads_.begin(name, entry.params, memory_, p_);
  return entry;
}

EntryCode Emitter::emit(const std::string& name) {
  EntryCode entry = begin(name);
  switch (p_.mode) {
    case Mode::flat:
      flat();
      break;
    case Mode::tiles:
      tiles();
      break;
    case Mode::rows:
      rows();
      break;
    case Mode::columns:
      columns();
      break;
    case Mode::walk:
      walk();
      break;
  }
  b_.CreateRetVoid();
  return entry;
}

void Emitter::set_elements(size_t count) {
  at_.assign(count, Values(p_.extents.size(), nullptr));
  inner_.assign(count, nullptr);
  valid_.assign(count, nullptr);
}

Emitter::Values Emitter::loop(Value* begin, Value* end, int64_t step, Values carried,
                              const codegen::LoopBody& body) {
  Made outside = made_;
  Values results = codegen::loop(b_, begin, end, step, std::move(carried), false, body);
  made_ = std::move(outside);
  return results;
}

void Emitter::when(Value* condition, const Callback<void()>& body) {
  if (!condition) return body();
  Made outside = made_;
  codegen::when(b_, condition, {}, [&] {
    body();
    return Values{};
  });
  made_ = std::move(outside);
}

void Emitter::place(Value* flat, const std::vector<int>& axes, Values& at) {
  Type* type = flat->getType();
  Value* rest = flat;
  size_t outermost = 0;
  while (outermost < axes.size() && bounds(p_.extents[size_t(axes[outermost])]).hi <= 1)
    ++outermost;
  for (size_t k = axes.size(); k-- > 0;) {
    Dim extent = p_.extents[size_t(axes[k])];
    Value*& digit = at[size_t(axes[k])];
    if (bounds(extent).hi <= 1) {
      digit = number(type, 0);
    } else if (k == outermost) {
      digit = rest;
    } else {
      Value* by = size(max(extent, 1), type);
      digit = b_.CreateURem(rest, by);
      rest = b_.CreateUDiv(rest, by);
    }
  }
}

// Neighbouring threads have neighbouring vectors; the second vector of a thread lies behind the
// first ones of the block.
void Emitter::flat() {
  Dim vectors = p_.points;
  if (p_.vector_axis >= 0) {
    vectors = ceil_div(p_.extents[size_t(p_.vector_axis)], p_.vector);
    for (int axis : p_.par)
      if (axis != p_.vector_axis) vectors *= p_.extents[size_t(axis)];
    lane_axes_ = axis_bit(size_t(p_.vector_axis));
  }
  for (int axis : p_.par) group_axes_ |= axis_bit(size_t(axis));
  Type* type = index_type(vectors * p_.vector);
  int64_t block = int64_t{p_.threads} * p_.unroll;
  Value* unit = b_.CreateAdd(b_.CreateMul(as(threads_.block(), type), number(type, block)),
                             as(threads_.thread(), type));
  Value* count = size(vectors, type);
  bool whole = divides(block, vectors);
  when(whole ? nullptr : b_.CreateICmpSLT(unit, count), [&] {
    set_elements(size_t(p_.unroll) * size_t(p_.vector));
    for (int u = 0; u < p_.unroll; ++u) {
      Value* here = b_.CreateAdd(unit, number(type, int64_t{u} * p_.threads));
      Value* guard = whole || u == 0 ? nullptr : b_.CreateICmpSLT(here, count);
      if (guard) here = b_.CreateSelect(guard, here, unit);
      place_vector(here, size_t(u) * size_t(p_.vector), guard);
    }
    if (p_.cut && p_.vector > 1) load_cut_vectors();
    emit_stores(true, nullptr);
  });
}

void Emitter::place_vector(Value* unit, size_t first, Value* guard) {
  Type* type = unit->getType();
  Values at(p_.extents.size(), nullptr);
  Value *rest = unit, *base = number(type, 0), *extent = nullptr;
  std::vector<int> others;
  bool several = false;
  for (int axis : p_.par) {
    if (axis == p_.vector_axis) continue;
    others.push_back(axis);
    several |= bounds(p_.extents[size_t(axis)]).hi > 1;
  }
  if (p_.vector_axis >= 0) {
    Dim along = p_.extents[size_t(p_.vector_axis)];
    Value* blocks = size(max(ceil_div(along, p_.vector), 1), type);
    base = several ? b_.CreateURem(rest, blocks) : rest;
    if (several) rest = b_.CreateUDiv(rest, blocks);
    base = b_.CreateMul(base, number(type, p_.vector));
    extent = size(along, type);
  }
  place(rest, others, at);
  if (p_.cut) {
    Value* end = b_.CreateAdd(base, number(type, p_.vector));
    full_ = both(full_, both(b_.CreateICmpSLE(end, extent), guard));
  }
  for (int v = 0; v < p_.vector; ++v) {
    size_t e = first + size_t(v);
    at_[e] = at;
    valid_[e] = guard;
    if (p_.vector_axis < 0) continue;
    Value* here = b_.CreateAdd(base, number(type, v));
    if (p_.cut && v > 0) {
      Value* inside = b_.CreateICmpSLT(here, extent);
      valid_[e] = both(guard, inside);
      here = b_.CreateSelect(inside, here, base);
    }
    at_[e][size_t(p_.vector_axis)] = here;
  }
}

void Emitter::walk() {
  Type* type = index_type(p_.points * p_.threads);
  Value* unit = b_.CreateAdd(b_.CreateMul(as(threads_.block(), type), number(type, p_.threads)),
                             as(threads_.thread(), type));
  group_axes_ = p_.inner_axes;
  for (size_t i = 0; i < p_.kernel.values.size(); ++i)
    if (p_.needed[i] && p_.value(ValueId(i)).op == Op::scan) scans_.push_back(ValueId(i));
  when(b_.CreateICmpSLT(unit, size(p_.points, type)), [&] {
    set_elements(1);
    place(unit, p_.par, at_[0]);
    Type* along = index_type(p_.extent);
    loop(number(along, 0), size(p_.extent, along), 1, walk_carries(),
         [&](Value* i, const Values& now) {
           for (size_t k = 0; k < scans_.size(); ++k) carry_[scans_[k]] = now[k];
           walk_step(i);
           Values next;
           for (ValueId id : scans_) next.push_back(carry_[id]);
           return next;
         });
    emit_stores(false, nullptr);
  });
}

// An exclusive scan shows its beginning, so there it is the plain zero.
Emitter::Values Emitter::walk_carries() const {
  Values first;
  for (ValueId id : scans_) {
    const loop::Value& v = p_.value(id);
    first.push_back(v.exclusive ? ops_.empty(v.monoid, v.type) : ops_.identity(v.monoid, v.type));
  }
  return first;
}

void Emitter::walk_step(Value* i) {
  Type* type = i->getType();
  Value* here = i;
  if (p_.reverse) here = b_.CreateSub(b_.CreateSub(size(p_.extent, type), number(type, 1)), i);
  place(here, p_.inner, at_[0]);
  for (ValueId id : scans_) value(id, 0);
  emit_stores(true, nullptr);
}

}  // namespace tn::cuda
