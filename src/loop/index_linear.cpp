// Indices with known sizes: strides where they are linear, a small program where they are not.
#include <algorithm>

#include "base/error.h"
#include "loop/index.h"

namespace tn::loop {
namespace {

using Kind = RestStep::Kind;
constexpr int kMaxStack = 64;

/// Writes a polynomial without symbols as postfix steps.
class Writer {
 public:
  Writer(const PolyTable& t, LinearIndex& out) : t_(t), out_(out) {}

  void term(const Term& term) {
    push(Kind::constant, term.coef);
    for (AtomId id : t_.atoms_of(term.mono)) {
      atom(t_.atom(id));
      apply(Kind::mul);
    }
  }
  void apply(Kind kind) {
    out_.rest.push_back({kind});
    --depth_;
  }

 private:
  void push(Kind kind, int64_t number) {
    out_.rest.push_back({kind, number});
    invariant(++depth_ <= kMaxStack, "an index is nested too deeply");
  }
  void sum(PolyId p) {
    push(Kind::constant, t_.constant_of(p));
    for (const Term& next : t_[p].terms) {
      term(next);
      apply(Kind::add);
    }
  }
  void binary(const Atom& a, Kind kind) {
    sum(a.a);
    sum(a.b);
    apply(kind);
  }
  void atom(const Atom& a) {
    switch (a.kind) {
      case AtomKind::axis:
        out_.rest_axes |= uint64_t{1} << a.a;
        return push(Kind::axis, a.a);
      case AtomKind::value:
        out_.rest_has_values = true;
        return push(Kind::value, a.a);
      case AtomKind::let:
        return sum(a.a);
      case AtomKind::div:
        return binary(a, Kind::div);
      case AtomKind::mod:
        return binary(a, Kind::mod);
      case AtomKind::min:
        return binary(a, Kind::min);
      case AtomKind::max:
        return binary(a, Kind::max);
      case AtomKind::symbol:
        fail("index: no value is given for {}", t_.name_of(a));
    }
  }

  const PolyTable& t_;
  LinearIndex& out_;
  int depth_ = 0;
};

int64_t floor_quotient(int64_t a, int64_t b) {
  int64_t q = a / b;
  return a % b < 0 ? q - 1 : q;
}

int64_t apply(Kind kind, int64_t a, int64_t b) {
  int64_t d = std::max<int64_t>(b, 1);  // a divisor of 0 stands under a false mask
  switch (kind) {
    case Kind::add:
      return a + b;
    case Kind::mul:
      return a * b;
    case Kind::div:
      return floor_quotient(a, d);
    case Kind::mod:
      return a - floor_quotient(a, d) * d;
    case Kind::min:
      return std::min(a, b);
    default:
      return std::max(a, b);
  }
}

}  // namespace

LinearIndex linear_index(PolyTable& t, PolyId p, int axes, std::span<const Binding> bindings) {
  invariant(axes <= 64, "an index over {} axes", axes);
  p = t.bind(p, bindings);
  LinearIndex result;
  result.offset = t.constant_of(p);
  result.strides.assign(static_cast<size_t>(axes), 0);
  Writer writer(t, result);
  for (const Term& term : t[p].terms) {
    const std::vector<AtomId>& atoms = t.atoms_of(term.mono);
    const Atom& first = t.atom(atoms[0]);
    if (atoms.size() == 1 && first.kind == AtomKind::axis) {
      invariant(first.a < result.strides.size(), "an index over axis {} of {}", first.a, axes);
      result.strides[first.a] += term.coef;
      continue;
    }
    bool joined = !result.rest.empty();
    writer.term(term);
    if (joined) writer.apply(Kind::add);
  }
  return result;
}

int64_t LinearIndex::rest_at(std::span<const int64_t> axes, std::span<const int64_t> values) const {
  if (rest.empty()) return 0;
  int64_t stack[kMaxStack];
  int top = 0;
  for (const RestStep& step : rest) {
    switch (step.kind) {
      case Kind::constant:
        stack[top++] = step.number;
        break;
      case Kind::axis:
        stack[top++] = axes[static_cast<size_t>(step.number)];
        break;
      case Kind::value:
        stack[top++] = values[static_cast<size_t>(step.number)];
        break;
      default:
        --top;
        stack[top - 1] = apply(step.kind, stack[top - 1], stack[top]);
    }
  }
  return stack[0];
}

int64_t LinearIndex::at(std::span<const int64_t> axes, std::span<const int64_t> values) const {
  int64_t sum = offset + rest_at(axes, values);
  for (size_t k = 0; k < strides.size(); ++k) sum += strides[k] * axes[k];
  return sum;
}

}  // namespace tn::loop
