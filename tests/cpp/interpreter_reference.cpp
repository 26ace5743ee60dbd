#include "interpreter_reference.h"

#include <cmath>
#include <limits>
#include <optional>

namespace tn::loop {
namespace {

using Point = std::vector<int64_t>;

class Reference {
 public:
  Reference(const Kernel& kernel, void* const* buffers) : k_(kernel), buffers_(buffers) {
    for (const KernelAxis& axis : k_.axes) extents_.push_back(axis.extent.value());
    known_.resize(k_.values.size());
  }

  void run() {
    for (const Store& store : k_.stores) {
      AxisSet axes = 0;
      for (size_t k = 0; k < k_.axes.size(); ++k)
        if (k_.axes[k].kind == AxisKind::par || value(store.value).axes >> k & 1)
          axes |= AxisSet{1} << k;
      Point at(extents_.size(), 0);
      each(axes, at, [&] {
        if (!holds(store.mask, at)) return;
        write(store.buffer, index(store.index, at), evaluate(store.value, at), store.combine);
      });
    }
  }

 private:
  const Value& value(ValueId id) const { return k_.values[static_cast<size_t>(id)]; }

  template <class F>
  void each(AxisSet axes, Point& at, F&& f, size_t k = 0) const {
    if (k == extents_.size()) return f();
    if (!(axes >> k & 1)) return each(axes, at, f, k + 1);
    for (at[k] = 0; at[k] < extents_[k]; ++at[k]) each(axes, at, f, k + 1);
  }

  int64_t index(PolyId poly, const Point& at) {
    std::vector<int64_t> values(k_.values.size(), 0);
    for (const Term& term : k_.polys[poly].terms)
      for (AtomId id : k_.polys.atoms_of(term.mono))
        if (const Atom& atom = k_.polys.atom(id); atom.kind == AtomKind::value)
          values[atom.a] = evaluate(static_cast<ValueId>(atom.a), at).integer;
    return k_.polys.evaluate(poly, {.axes = at, .values = values, .symbols = {}});
  }

  bool holds(MaskId mask, const Point& at) {
    if (mask == kNone) return true;
    for (PolyId poly : k_.masks[static_cast<size_t>(mask)])
      if (index(poly, at) < 0) return false;
    return true;
  }

  Number read(int32_t buffer, int64_t i) const {
    const void* data = buffers_[buffer];
    switch (k_.buffers[static_cast<size_t>(buffer)].type) {
      case DType::f32:
        return {static_cast<const float*>(data)[i], 0};
      case DType::f64:
        return {static_cast<const double*>(data)[i], 0};
      case DType::i32:
        return {0, static_cast<const int32_t*>(data)[i]};
      case DType::i64:
        return {0, static_cast<const int64_t*>(data)[i]};
      default:
        return {0, static_cast<const uint8_t*>(data)[i]};
    }
  }

  void write(int32_t buffer, int64_t i, Number x, Combine combine) {
    DType type = k_.buffers[static_cast<size_t>(buffer)].type;
    static constexpr Op kOp[] = {Op::add, Op::add, Op::mul, Op::max, Op::min};
    if (combine != Combine::set)
      x = binary(kOp[static_cast<int>(combine)], type, read(buffer, i), x);
    void* data = buffers_[buffer];
    switch (type) {
      case DType::f32:
        static_cast<float*>(data)[i] = static_cast<float>(x.real);
        break;
      case DType::f64:
        static_cast<double*>(data)[i] = x.real;
        break;
      case DType::i32:
        static_cast<int32_t*>(data)[i] = static_cast<int32_t>(x.integer);
        break;
      case DType::i64:
        static_cast<int64_t*>(data)[i] = x.integer;
        break;
      default:
        static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(x.integer);
    }
  }

  static Number wrap(DType type, Number x) {
    if (type == DType::f32) x.real = static_cast<float>(x.real);
    if (type == DType::i32) x.integer = static_cast<int32_t>(x.integer);
    if (type == DType::u8) x.integer = static_cast<uint8_t>(x.integer);
    if (type == DType::b1) x.integer = x.integer != 0;
    return x;
  }

  // Double arithmetic rounded to float once more is float arithmetic, for these operations.
  static Number binary(Op op, DType type, Number a, Number b) {
    bool real = is_float(type);
    uint64_t x = static_cast<uint64_t>(a.integer), y = static_cast<uint64_t>(b.integer);
    auto result = [&](double r, uint64_t i) {
      return wrap(type, {real ? r : 0, real ? 0 : static_cast<int64_t>(i)});
    };
    auto truth = [](bool t) { return Number{0, t}; };
    switch (op) {
      case Op::add:
        return result(a.real + b.real, x + y);
      case Op::sub:
        return result(a.real - b.real, x - y);
      case Op::mul:
        return result(a.real * b.real, x * y);
      case Op::rem:
        return result(std::fmod(a.real, b.real),
                      b.integer == 0 ? 0 : static_cast<uint64_t>(a.integer % b.integer));
      case Op::max:
        return (real ? a.real > b.real || a.real != a.real : a.integer > b.integer) ? a : b;
      case Op::min:
        return (real ? a.real < b.real || a.real != a.real : a.integer < b.integer) ? a : b;
      case Op::and_:
        return {0, a.integer & b.integer};
      case Op::or_:
        return {0, a.integer | b.integer};
      case Op::xor_:
        return {0, a.integer ^ b.integer};
      case Op::eq:
        return truth(real ? a.real == b.real : a.integer == b.integer);
      case Op::lt:
        return truth(real ? a.real < b.real : a.integer < b.integer);
      default:
        return truth(real ? a.real <= b.real : a.integer <= b.integer);
    }
  }

  static Number cast(DType from, DType to, Number x) {
    if (is_float(from) && is_float(to)) return wrap(to, x);
    if (is_float(to)) return wrap(to, {static_cast<double>(x.integer), 0});
    if (!is_float(from)) return wrap(to, x);
    if (to == DType::b1) return {0, x.real != 0};
    double low = to == DType::u8 ? 0 : to == DType::i32 ? -0x1p31 : -0x1p63;
    double high = to == DType::u8 ? 255 : to == DType::i32 ? 0x1p31 - 1 : 0x1p63;
    if (x.real != x.real) return {0, 0};
    if (x.real <= low) return {0, static_cast<int64_t>(low)};
    if (x.real >= high)
      return {0,
              to == DType::i64 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(high)};
    return {0, static_cast<int64_t>(x.real)};
  }

  // Every value is computed once per point of its own axes.
  Number evaluate(ValueId id, const Point& at) {
    const Value& v = value(id);
    size_t place = 0, points = 1;
    for (size_t k = 0; k < extents_.size(); ++k)
      if (v.axes >> k & 1) {
        place = place * static_cast<size_t>(extents_[k]) + static_cast<size_t>(at[k]);
        points *= static_cast<size_t>(extents_[k]);
      }
    auto& known = known_[static_cast<size_t>(id)];
    if (known.empty()) known.resize(points);
    if (!known[place]) known[place] = compute(v, at);
    return *known[place];
  }

  Number compute(const Value& v, const Point& at) {
    DType type = facts(v.op).operands > 0 ? value(v.a).type : v.type;
    switch (v.op) {
      case Op::constant:
        return wrap(v.type, {v.literal.real, v.literal.integer});
      case Op::index:
        return {0, index(v.index, at)};
      case Op::load:
        return holds(v.mask, at) ? read(v.buffer, index(v.index, at)) : Number{};
      case Op::neg: {
        Number a = evaluate(v.a, at);
        return wrap(type, {-a.real, static_cast<int64_t>(0 - static_cast<uint64_t>(a.integer))});
      }
      case Op::select:
        return evaluate(evaluate(v.a, at).integer ? v.b : v.c, at);
      case Op::cast:
        return cast(type, v.type, evaluate(v.a, at));
      case Op::reduce:
        return reduce(v, at);
      case Op::scan:
        return scan(v, at);
      default:
        return binary(v.op, type, evaluate(v.a, at), evaluate(v.b, at));
    }
  }

  static Number empty(Monoid monoid, DType type) {
    double inf = std::numeric_limits<double>::infinity();
    bool wide = type == DType::i64;
    int64_t most = type == DType::u8 ? 255 : type == DType::b1 ? 1 : wide ? INT64_MAX : INT32_MAX;
    int64_t least = type == DType::u8 || type == DType::b1 ? 0 : wide ? INT64_MIN : INT32_MIN;
    switch (monoid) {
      case Monoid::mul:
        return {1, 1};
      case Monoid::max:
        return {-inf, least};
      case Monoid::min:
        return {inf, most};
      case Monoid::and_:
        return {0, type == DType::b1 || type == DType::u8 ? most : -1};
      default:
        return {0, 0};
    }
  }

  static Op op_of(Monoid monoid) {
    static constexpr Op kOp[] = {Op::add, Op::mul, Op::max, Op::min, Op::and_, Op::or_};
    return kOp[static_cast<int>(monoid)];
  }

  // The tree of the definition: 64 lanes, then halving.
  static Number tree(Monoid monoid, DType type, const std::vector<Number>& x, size_t begin,
                     size_t end) {
    Number start = empty(monoid, type);
    if (monoid == Monoid::add) start.real = -0.0;
    std::vector<Number> lanes(64, start);
    for (size_t i = begin; i < end; ++i)
      lanes[(i - begin) % 64] = binary(op_of(monoid), type, lanes[(i - begin) % 64], x[i]);
    for (size_t s = 32; s >= 1; s /= 2)
      for (size_t l = 0; l < s; ++l) lanes[l] = binary(op_of(monoid), type, lanes[l], lanes[l + s]);
    return lanes[0];
  }

  Number reduce(const Value& v, Point at) {
    std::vector<Number> all;
    each(v.over, at, [&] { all.push_back(evaluate(v.a, at)); });
    DType type = value(v.a).type;
    if (v.monoid >= Monoid::argmax) return extreme(v, type, all);
    if (all.empty()) return empty(v.monoid, type);
    std::vector<Number> chunks;
    for (size_t begin = 0; begin < all.size(); begin += 16384)
      chunks.push_back(tree(v.monoid, type, all, begin, std::min(begin + 16384, all.size())));
    return tree(v.monoid, type, chunks, 0, chunks.size());
  }

  static Number extreme(const Value& v, DType type, const std::vector<Number>& all) {
    int64_t best = -1;
    bool most = v.monoid == Monoid::argmax, real = is_float(type);
    for (size_t i = 0; i < all.size(); ++i) {
      if (best < 0) best = 0;
      const Number &x = all[i], &y = all[static_cast<size_t>(best)];
      bool nan = real && x.real != x.real && y.real == y.real;
      bool more = real ? x.real > y.real : x.integer > y.integer;
      bool less = real ? x.real < y.real : x.integer < y.integer;
      if (nan || (most ? more : less)) best = static_cast<int64_t>(i);
    }
    return {0, best};
  }

  Number scan(const Value& v, Point at) {
    size_t axis = static_cast<size_t>(__builtin_ctz(v.over));
    int64_t here = at[axis], n = extents_[axis];
    Number acc = empty(v.monoid, v.type);
    if (v.monoid == Monoid::add && !v.exclusive) acc.real = -0.0;
    for (int64_t i = v.reverse ? n - 1 : 0; i >= 0 && i < n; i += v.reverse ? -1 : 1) {
      if (i == here && v.exclusive) return acc;
      at[axis] = i;
      acc = binary(op_of(v.monoid), v.type, acc, evaluate(v.a, at));
      if (i == here) return acc;
    }
    return acc;
  }

  const Kernel& k_;
  void* const* buffers_;
  std::vector<int64_t> extents_;
  std::vector<std::vector<std::optional<Number>>> known_;
};

}  // namespace

void run_reference(const Kernel& kernel, void* const* buffers) { Reference(kernel, buffers).run(); }

}  // namespace tn::loop
