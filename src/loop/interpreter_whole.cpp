// The general path: every value over its whole domain, one after the other. It takes any kernel,
// at the price of memory for each value and an evaluation of the index at each point.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "loop/analysis.h"
#include "loop/interpreter_program.h"
#include "loop/interpreter_walk.h"

namespace tn::loop::machine {

struct WholeProgram {
  Kernel kernel;  // with constants for its symbols
  std::vector<int64_t> extents;
  const BlockOps& ops;
};

std::shared_ptr<const WholeProgram> prepare_whole(const Kernel& kernel,
                                                  std::span<const Binding> symbols,
                                                  const BlockOps& ops) {
  std::vector<int64_t> extents;
  for (const KernelAxis& axis : kernel.axes) extents.push_back(evaluate(axis.extent, symbols));
  Kernel bound = kernel;
  for (Value& value : bound.values) value.index = bound.polys.bind(value.index, symbols);
  for (Store& store : bound.stores) store.index = bound.polys.bind(store.index, symbols);
  for (Mask& mask : bound.masks)
    for (PolyId& poly : mask) poly = bound.polys.bind(poly, symbols);
  return std::make_shared<const WholeProgram>(WholeProgram{std::move(bound), extents, ops});
}

namespace {

using Bytes = std::vector<std::byte>;

class WholeRun {
 public:
  WholeRun(const WholeProgram& program, void* const* buffers, const Scalar* arguments)
      : p_(program), k_(program.kernel), buffers_(buffers), arguments_(arguments) {
    values_.resize(k_.values.size());
    loaded_.resize(k_.values.size());
  }

  void run() {
    for (size_t i = 0; i < k_.values.size(); ++i) values_[i] = compute(k_.values[i]);
    for (const Store& store : k_.stores) run_store(store);
  }

 private:
  const Value& value(ValueId id) const { return k_.values[static_cast<size_t>(id)]; }
  const Bytes& bytes(ValueId id) const { return values_[static_cast<size_t>(id)]; }

  int64_t points(AxisSet axes) const {
    int64_t n = 1;
    for (size_t k = 0; k < p_.extents.size(); ++k)
      if (axes >> k & 1) n *= p_.extents[k];
    return n;
  }

  /// Row-major position of `at` in the domain `axes`.
  int64_t place(AxisSet axes, const std::vector<int64_t>& at) const {
    int64_t index = 0;
    for (size_t k = 0; k < p_.extents.size(); ++k)
      if (axes >> k & 1) index = index * p_.extents[k] + at[k];
    return index;
  }

  template <class F>
  void for_each_point(AxisSet axes, std::vector<int64_t>& at, F&& f) const {
    int64_t n = points(axes);
    for (int64_t i = 0; i < n; ++i) {
      int64_t rest = i;
      for (size_t k = p_.extents.size(); k-- > 0;)
        if (axes >> k & 1) {
          at[k] = rest % p_.extents[k];
          rest /= p_.extents[k];
        }
      f(i);
    }
  }

  const std::byte* element(ValueId id, const std::vector<int64_t>& at) const {
    return bytes(id).data() + place(value(id).axes, at) * size_of(value(id).type);
  }

  int64_t evaluate_at(PolyId poly, const std::vector<int64_t>& at) {
    for_each_value_in(k_, poly, [&](ValueId id) {
      int64_t number = 0;
      BlockFn widen = p_.ops.cast[static_cast<int>(value(id).type)][static_cast<int>(DType::i64)];
      widen(&number, element(id, at), nullptr, nullptr, 1);
      loaded_[static_cast<size_t>(id)] = number;
    });
    return k_.polys.evaluate(poly, {.axes = at, .values = loaded_, .symbols = {}});
  }

  bool holds(MaskId mask, const std::vector<int64_t>& at) {
    if (mask == kNone) return true;
    for (PolyId poly : k_.masks[static_cast<size_t>(mask)])
      if (evaluate_at(poly, at) < 0) return false;
    return true;
  }

  /// `id` at every point of the larger domain `axes`.
  Bytes expanded(ValueId id, AxisSet axes) const {
    int64_t size = size_of(value(id).type);
    Bytes out(static_cast<size_t>(points(axes) * size));
    std::vector<int64_t> at(p_.extents.size(), 0);
    for_each_point(axes, at, [&](int64_t i) {
      std::memcpy(out.data() + i * size, element(id, at), static_cast<size_t>(size));
    });
    return out;
  }

  Bytes compute(const Value& v) {
    int64_t n = points(v.axes), size = size_of(v.type);
    Bytes out(static_cast<size_t>(n * size));
    std::vector<int64_t> at(p_.extents.size(), 0);
    auto put = [&](int64_t i, const void* element) {
      std::memcpy(out.data() + i * size, element, static_cast<size_t>(size));
    };
    switch (v.op) {
      case Op::constant:
        put(0, element_bits(v.literal, v.type).data());
        return out;
      case Op::argument:
        put(0, element_bits(arguments_[v.a], v.type).data());
        return out;
      case Op::index:
        for_each_point(v.axes, at, [&](int64_t i) {
          int64_t number = evaluate_at(v.index, at);
          put(i, &number);
        });
        return out;
      case Op::load:
        for_each_point(v.axes, at, [&](int64_t i) {
          if (holds(v.mask, at))
            put(i, static_cast<const std::byte*>(buffers_[v.buffer]) +
                       evaluate_at(v.index, at) * size);
        });
        return out;
      case Op::bitcast:
        return expanded(v.a, v.axes);
      case Op::cast:
        return cast(v, n);
      case Op::reduce:
        return reduce(v);
      case Op::scan:
        return scan(v);
      default:
        break;
    }
    DType key = key_of(k_, v);
    BlockFn fn = p_.ops.op[static_cast<int>(v.op)][static_cast<int>(key)];
    invariant(fn != nullptr, "kernel {}: no {} of {}", k_.name, facts(v.op).name, key);
    Bytes a = expanded(v.a, v.axes);
    Bytes b = facts(v.op).operands > 1 ? expanded(v.b, v.axes) : Bytes{};
    Bytes c = facts(v.op).operands > 2 ? expanded(v.c, v.axes) : Bytes{};
    fn(out.data(), a.data(), b.data(), c.data(), n);
    return out;
  }

  Bytes cast(const Value& v, int64_t n) {
    Bytes in = expanded(v.a, v.axes);
    DType from = value(v.a).type;
    auto convert = [&](DType target) {
      Bytes out(static_cast<size_t>(n * size_of(target)));
      p_.ops.cast[static_cast<int>(from)][static_cast<int>(target)](out.data(), in.data(), nullptr,
                                                                    nullptr, n);
      from = target;
      return out;
    };
    if (from == v.type) return in;
    if (!p_.ops.cast[static_cast<int>(from)][static_cast<int>(v.type)])
      in = convert(is_integer(from) && size_of(from) >= 4 ? DType::f64 : DType::f32);
    return convert(v.type);
  }

  /// The elements along `over` at `at`, side by side.
  Bytes line(ValueId id, AxisSet over, std::vector<int64_t> at) const {
    int64_t size = size_of(value(id).type);
    Bytes out(static_cast<size_t>(points(over) * size));
    for_each_point(over, at, [&](int64_t i) {
      std::memcpy(out.data() + i * size, element(id, at), static_cast<size_t>(size));
    });
    return out;
  }

  Bytes reduce(const Value& v) {
    DType type = value(v.a).type;
    int64_t size = size_of(type), extent = points(v.over);
    Bytes out(static_cast<size_t>(points(v.axes) * size_of(v.type)));
    std::vector<int64_t> at(p_.extents.size(), 0);
    for_each_point(v.axes, at, [&](int64_t i) {
      Bytes in = line(v.a, v.over, at);
      std::byte* dst = out.data() + i * size_of(v.type);
      if (v.monoid >= Monoid::argmax) {
        int64_t index = -1;
        alignas(8) std::byte best[8] = {};
        p_.ops.arg[v.monoid == Monoid::argmin][static_cast<int>(type)].run(best, &index, in.data(),
                                                                           extent, 0);
        std::memcpy(dst, &index, 8);
        return;
      }
      const RunFns& fns = p_.ops.run[static_cast<int>(v.monoid)][static_cast<int>(type)];
      int64_t chunks = (extent + kChunk - 1) / kChunk;
      Bytes partial(static_cast<size_t>((chunks + 1) * size));
      for (int64_t c = 0; c < chunks; ++c)
        fns.rows(partial.data() + c * size, in.data() + c * kChunk * size, 1,
                 std::min(kChunk, extent - c * kChunk));
      fns.rows(dst, partial.data(), 1, chunks);
      if (type == DType::b1 && chunks == 0) *dst &= std::byte{1};
    });
    return out;
  }

  Bytes scan(const Value& v) {
    int64_t size = size_of(v.type), extent = points(v.over);
    const RunFns& fns = p_.ops.run[static_cast<int>(v.monoid)][static_cast<int>(v.type)];
    Bytes out(static_cast<size_t>(points(v.axes) * size));
    std::vector<int64_t> at(p_.extents.size(), 0);
    for_each_point(v.axes & ~v.over, at, [&](int64_t) {
      Bytes in = line(v.a, v.over, at), result(in.size());
      alignas(8) std::byte carry[8] = {}, first[8];
      fns.rows(carry, nullptr, 1, 0);
      if (!v.exclusive && v.monoid == Monoid::add && is_float(v.type))
        std::memcpy(carry, element_bits(-0.0, v.type).data(), 8);
      std::memcpy(first, carry, 8);
      (v.reverse ? fns.scan_reverse : fns.scan)(result.data(), in.data(), carry, extent);
      std::vector<int64_t> point = at;
      for_each_point(v.over, point, [&](int64_t i) {
        int64_t from = v.exclusive ? (v.reverse ? i + 1 : i - 1) : i;
        const std::byte* src = from < 0 || from >= extent ? first : result.data() + from * size;
        std::memcpy(out.data() + place(v.axes, point) * size, src, static_cast<size_t>(size));
      });
    });
    return out;
  }

  void run_store(const Store& store) {
    AxisSet axes = (AxisSet{1} << k_.axes.size()) - 1;
    if (k_.axes.size() == 32) axes = ~AxisSet{0};
    AxisSet used =
        value(store.value).axes | axes_in(k_, store.index) | axes_in_mask(k_, store.mask);
    for (size_t k = 0; k < k_.axes.size(); ++k)  // reduced axes do not repeat the store
      if (k_.axes[k].kind != AxisKind::par && !(used >> k & 1)) axes &= ~(AxisSet{1} << k);
    DType type = value(store.value).type;
    int64_t size = size_of(type);
    static constexpr Op kOp[] = {Op::add, Op::add, Op::mul, Op::max, Op::min};
    BlockFn fn =
        p_.ops.op[static_cast<int>(kOp[static_cast<int>(store.combine)])][static_cast<int>(type)];
    std::vector<int64_t> at(p_.extents.size(), 0);
    for_each_point(axes, at, [&](int64_t) {
      if (!holds(store.mask, at)) return;
      std::byte* dst =
          static_cast<std::byte*>(buffers_[store.buffer]) + evaluate_at(store.index, at) * size;
      const std::byte* src = element(store.value, at);
      if (store.combine == Combine::set)
        std::memcpy(dst, src, static_cast<size_t>(size));
      else
        fn(dst, dst, src, nullptr, 1);
    });
  }

  const WholeProgram& p_;
  const Kernel& k_;
  void* const* buffers_;
  const Scalar* arguments_;
  std::vector<Bytes> values_;
  std::vector<int64_t> loaded_;
};

}  // namespace

void run_whole(const WholeProgram& program, void* const* buffers, const Scalar* arguments) {
  WholeRun(program, buffers, arguments).run();
}

}  // namespace tn::loop::machine
