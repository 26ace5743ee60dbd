// What makes a kernel well formed.
#include <bit>

#include "base/error.h"
#include "loop/kernel.h"

namespace tn::loop {
namespace {

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel) {}

  void check() {
    need(kernel_.axes.size() <= 32, "more than 32 axes");
    for (const BufferParam& buffer : kernel_.buffers)
      need(!is_complex(buffer.type), "a complex buffer");
    for (size_t i = 0; i < kernel_.values.size(); ++i) {
      at_ = static_cast<ValueId>(i);
      check_value(kernel_.values[i]);
    }
    at_ = static_cast<ValueId>(kernel_.values.size());
    for (const Store& store : kernel_.stores) check_store(store);
  }

 private:
  template <class... A>
  void need(bool holds, format_string<A...> what, A&&... args) {
    if (!holds) [[unlikely]]
      throw_internal(tn::format("kernel {}: value v{}: {}", kernel_.name, at_,
                                tn::format(what, std::forward<A>(args)...)));
  }

  const Value& value(ValueId id) const { return kernel_.values[static_cast<size_t>(id)]; }

  void check_value(const Value& v) {
    need(static_cast<int>(v.op) < kOps, "an unknown operation");
    need(!is_complex(v.type), "a complex value");
    int operands = facts(v.op).operands;
    AxisSet axes = 0;
    for (int k = 0; k < operands; ++k) {
      ValueId id = k == 0 ? v.a : k == 1 ? v.b : v.c;
      need(id >= 0 && id < at_, "operand {} is not an earlier value", k);
      axes |= value(id).axes;
    }
    if (v.op == Op::load || v.op == Op::index) axes = axes_of(v.index);
    if (v.op == Op::load) {
      need(is_buffer(v.buffer), "no buffer {}", v.buffer);
      need(v.type == buffer(v.buffer).type, "a load of another type than its buffer");
      axes |= check_mask(v.mask);
    }
    if (v.op == Op::index) need(v.type == DType::i64, "an index that is not i64");
    if (v.op == Op::argument) need(v.a >= 0 && v.a < kernel_.arguments, "no argument {}", v.a);
    if (v.op == Op::reduce) axes &= ~check_over(v, AxisKind::red);
    if (v.op == Op::scan) axes |= check_over(v, AxisKind::scan);
    need(v.axes == axes, "axes {:b}, but it varies over {:b}", v.axes, axes);
    check_types(v);
  }

  AxisSet check_over(const Value& v, AxisKind kind) {
    need(v.over != 0, "a reduction or scan over no axis");
    need(static_cast<size_t>(std::bit_width(v.over)) <= kernel_.axes.size(), "over unknown axes");
    for (size_t k = 0; k < kernel_.axes.size(); ++k)
      if (v.over >> k & 1) need(kernel_.axes[k].kind == kind, "over an axis of another kind");
    bool arg = v.monoid == Monoid::argmax || v.monoid == Monoid::argmin;
    DType type = value(v.a).type;
    if (v.op == Op::scan) {
      need(std::has_single_bit(v.over), "a scan over several axes");
      need(!arg, "a scan with {}", name_of(v.monoid));
    }
    need(v.type == (arg ? DType::i64 : type), "the result has another type than the monoid's");
    bool bitwise = v.monoid == Monoid::and_ || v.monoid == Monoid::or_;
    if (bitwise) need(!is_float(type), "bits of {}", type);
    if (v.monoid == Monoid::add || v.monoid == Monoid::mul)
      need(type != DType::b1, "a sum of bool");
    return v.over;
  }

  void check_types(const Value& v) {
    int operands = facts(v.op).operands;
    if (v.op == Op::cast || v.op == Op::reduce || v.op == Op::scan || operands == 0) return;
    const Value& a = value(v.a);
    if (v.op == Op::bitcast) {
      need(size_of(a.type) == size_of(v.type), "a bitcast from {} to {}", a.type, v.type);
      return;
    }
    if (v.op == Op::select) {
      need(a.type == DType::b1, "a condition of type {}", a.type);
      need(value(v.b).type == v.type && value(v.c).type == v.type, "branches of other types");
      return;
    }
    for (ValueId id : {v.b, v.c})
      if (id != kNone) need(value(id).type == a.type, "operands {} and {}", a.type, value(id).type);
    need(v.type == (facts(v.op).compares ? DType::b1 : a.type), "the result type {}", v.type);
    bool narrow = is_float(a.type) && a.type != DType::f32 && a.type != DType::f64;
    need(!narrow, "arithmetic on {}", a.type);
    if (facts(v.op).math) need(is_float(a.type), "{} of {}", facts(v.op).name, a.type);
    bool shorter = facts(v.op).narrow && a.type == DType::f32;
    need(!v.narrow || shorter, "no narrow {} of {}", facts(v.op).name, a.type);
  }

  void check_store(const Store& store) {
    need(is_buffer(store.buffer), "a store to no buffer");
    need(buffer(store.buffer).written, "a store to an input");
    need(store.value >= 0 && store.value < at_, "a store of no value");
    need(value(store.value).type == buffer(store.buffer).type, "a store of another type");
    axes_of(store.index);
    check_mask(store.mask);
  }

  AxisSet check_mask(MaskId mask) {
    if (mask == kNone) return 0;
    need(mask >= 0 && static_cast<size_t>(mask) < kernel_.masks.size(), "no mask {}", mask);
    AxisSet axes = 0;
    for (PolyId poly : kernel_.masks[static_cast<size_t>(mask)]) axes |= axes_of(poly);
    return axes;
  }

  AxisSet axes_of(PolyId poly) {
    AxisSet axes = 0;
    for (const Term& term : kernel_.polys[poly].terms)
      for (AtomId id : kernel_.polys.atoms_of(term.mono)) axes |= axes_of_atom(id);
    return axes;
  }

  AxisSet axes_of_atom(AtomId id) {
    const Atom& atom = kernel_.polys.atom(id);
    switch (atom.kind) {
      case AtomKind::axis:
        need(atom.a < kernel_.axes.size(), "an index over the unknown axis {}", atom.a);
        return AxisSet{1} << atom.a;
      case AtomKind::value: {
        ValueId number = static_cast<ValueId>(atom.a);
        need(number >= 0 && number < at_, "an index by a later value");
        need(is_integer(value(number).type), "an index of type {}", value(number).type);
        return value(number).axes;
      }
      case AtomKind::symbol:
        return 0;
      default:
        return axes_of(atom.a) | axes_of(atom.b);
    }
  }

  bool is_buffer(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < kernel_.buffers.size();
  }
  const BufferParam& buffer(int32_t id) const { return kernel_.buffers[static_cast<size_t>(id)]; }

  const Kernel& kernel_;
  ValueId at_ = 0;
};

}  // namespace

void verify(const Kernel& kernel) { Verifier(kernel).check(); }

}  // namespace tn::loop
