#include "loop/index.h"

#include <algorithm>

#include "base/error.h"

namespace tn::loop {
namespace {

Access over(Access::Kind kind, Access from, Indices shape) {
  Access access;
  access.kind = kind;
  access.shape = std::move(shape);
  access.operands.push_back(std::move(from));
  return access;
}

Access on_axis(Access::Kind kind, Access from, int axis, PolyId extent) {
  Indices shape = from.shape;
  invariant(axis >= 0 && axis < static_cast<int>(shape.size()), "a view of axis {}", axis);
  shape[static_cast<size_t>(axis)] = extent;
  Access access = over(kind, std::move(from), std::move(shape));
  access.axis = axis;
  return access;
}

PolyId extent_of(const Access& a, int axis) { return a.shape[static_cast<size_t>(axis)]; }

}  // namespace

Access read(int32_t buffer, Indices shape) {
  Access access;
  access.buffer = buffer;
  access.shape = std::move(shape);
  return access;
}

Access permute(Access from, std::vector<int> perm) {
  Indices shape;
  for (int axis : perm) shape.push_back(extent_of(from, axis));
  Access access = over(Access::Kind::permute, std::move(from), std::move(shape));
  access.perm = std::move(perm);
  return access;
}

Access broadcast(Access from, Indices shape) {
  invariant(shape.size() >= from.shape.size(), "broadcast to fewer axes");
  return over(Access::Kind::broadcast, std::move(from), std::move(shape));
}

Access slice(Access from, int axis, PolyId start, PolyId length, int64_t step) {
  Access access = on_axis(Access::Kind::slice, std::move(from), axis, length);
  access.lo = start;
  access.step = step;
  return access;
}

Access reverse(Access from, int axis) {
  PolyId extent = extent_of(from, axis);
  return on_axis(Access::Kind::reverse, std::move(from), axis, extent);
}

Access reshape(Access from, Indices shape) {
  return over(Access::Kind::reshape, std::move(from), std::move(shape));
}

Access window(PolyTable& t, Access from, int axis, int64_t size, int64_t stride, int64_t dilation) {
  PolyId room = t.add_constant(extent_of(from, axis), -(size - 1) * dilation - 1);
  PolyId count = t.add_constant(t.div(room, t.constant(stride)), 1);
  Access access = on_axis(Access::Kind::window, std::move(from), axis, count);
  access.shape.push_back(t.constant(size));
  access.step = stride;
  access.dilation = dilation;
  return access;
}

Access pad(Access from, int axis, PolyId lo, PolyId padded) {
  Access access = on_axis(Access::Kind::pad, std::move(from), axis, padded);
  access.lo = lo;
  return access;
}

Access dilate(PolyTable& t, Access from, int axis, int64_t factor) {
  PolyId last = t.scale(t.add_constant(extent_of(from, axis), -1), factor);
  Access access = on_axis(Access::Kind::dilate, std::move(from), axis, t.add_constant(last, 1));
  access.step = factor;
  return access;
}

Access concat(PolyTable& t, std::vector<Access> pieces, int axis) {
  invariant(!pieces.empty(), "concat of nothing");
  PolyId total = 0;
  for (const Access& piece : pieces) total = t.add(total, extent_of(piece, axis));
  Access access;
  access.kind = Access::Kind::concat;
  access.axis = axis;
  access.shape = pieces[0].shape;
  access.shape[static_cast<size_t>(axis)] = total;
  access.operands = std::move(pieces);
  return access;
}

Access roll(PolyTable& t, Access from, int axis, int64_t shift) {
  PolyId front = t.constant(shift), back = t.add_constant(extent_of(from, axis), -shift);
  Access last = slice(from, axis, back, front);
  Access first = slice(std::move(from), axis, 0, back);
  std::vector<Access> pieces;
  pieces.push_back(std::move(last));
  pieces.push_back(std::move(first));
  return concat(t, std::move(pieces), axis);
}

Indices coordinates(PolyTable& t, PolyId flat, std::span<const PolyId> shape) {
  Indices index(shape.size());
  for (size_t k = shape.size(); k-- > 0;) {
    if (k == 0) {
      // What is left is in range already, unless the axis has one element.
      index[0] = shape[0] == 1 ? 0 : flat;
    } else {
      DivMod digit = t.divmod(flat, shape[k]);
      index[k] = digit.remainder;
      flat = digit.quotient;
    }
  }
  return index;
}

PolyId flatten(PolyTable& t, std::span<const PolyId> index, std::span<const PolyId> shape) {
  PolyId flat = 0;
  for (size_t k = 0; k < index.size(); ++k) flat = t.add(t.mul(flat, shape[k]), index[k]);
  return flat;
}

namespace {

/// Walks from the result to the buffers, carrying the index and the mask met so far.
class Composer {
 public:
  Composer(PolyTable& t, Cases& out) : t_(t), out_(out) {}

  bool over_caps = false;

  void walk(const Access& a, Indices index, Mask mask) {
    for (PolyId p : index) over_caps |= t_.size(p) > kMaxIndexSize;
    over_caps |= out_.size() > kMaxCases;
    if (over_caps) return;
    if (a.kind == Access::Kind::concat) return walk_concat(a, index, mask);
    if (a.kind == Access::Kind::buffer) {
      out_.push_back({std::move(mask), a.buffer, flatten(t_, index, a.shape)});
      return;
    }
    if (step(a, index, mask)) walk(a.operands[0], std::move(index), std::move(mask));
  }

 private:
  // From an index of the view to one of its operand; false when nothing is there.
  bool step(const Access& a, Indices& index, Mask& mask) {
    const Access& from = a.operands[0];
    size_t axis = static_cast<size_t>(a.axis);
    switch (a.kind) {
      case Access::Kind::permute: {
        Indices moved(index.size());
        for (size_t k = 0; k < index.size(); ++k) moved[static_cast<size_t>(a.perm[k])] = index[k];
        index = std::move(moved);
        break;
      }
      case Access::Kind::broadcast:
        index.erase(index.begin(), index.end() - static_cast<ptrdiff_t>(from.shape.size()));
        for (size_t k = 0; k < index.size(); ++k)
          if (from.shape[k] == 1) index[k] = 0;
        break;
      case Access::Kind::slice:
        index[axis] = t_.add(a.lo, t_.scale(index[axis], a.step));
        break;
      case Access::Kind::reverse:
        index[axis] = t_.sub(t_.add_constant(from.shape[axis], -1), index[axis]);
        break;
      case Access::Kind::reshape:
        index = coordinates(t_, flatten(t_, index, a.shape), from.shape);
        break;
      case Access::Kind::window:
        index[axis] = t_.add(t_.scale(index[axis], a.step), t_.scale(index.back(), a.dilation));
        index.pop_back();
        break;
      case Access::Kind::pad:
        index[axis] = t_.sub(index[axis], a.lo);
        if (!restrict(index[axis], from.shape[axis], mask)) return false;
        break;
      case Access::Kind::dilate: {
        DivMod parts = t_.divmod(index[axis], t_.constant(a.step));
        if (!require(t_.scale(parts.remainder, -1), mask)) return false;
        index[axis] = parts.quotient;
        break;
      }
      default:
        invariant(false, "a view of unknown kind");
    }
    return true;
  }

  // Adds p >= 0 unless it is proved; false when it never holds.
  bool require(PolyId p, Mask& mask) {
    if (t_.ge0(p)) return true;
    if (t_.ge0(t_.add_constant(t_.scale(p, -1), -1))) return false;
    if (std::find(mask.begin(), mask.end(), p) == mask.end()) mask.push_back(p);
    return true;
  }

  bool restrict(PolyId& e, PolyId extent, Mask& mask) {
    PolyId last = t_.add_constant(extent, -1);
    if (!require(e, mask) || !require(t_.sub(last, e), mask)) return false;
    e = t_.let(e, 0, last);
    return true;
  }

  void walk_concat(const Access& a, const Indices& index, const Mask& mask) {
    size_t axis = static_cast<size_t>(a.axis);
    PolyId start = 0;
    for (const Access& piece : a.operands) {
      Indices inner = index;
      Mask narrowed = mask;
      inner[axis] = t_.sub(index[axis], start);
      if (restrict(inner[axis], piece.shape[axis], narrowed))
        walk(piece, std::move(inner), std::move(narrowed));
      start = t_.add(start, piece.shape[axis]);
    }
  }

  PolyTable& t_;
  Cases& out_;
};

// p >= 0 is (p div g) >= 0; worth it when the remainder closes, for then it vanishes.
PolyId divide_mask(PolyTable& t, PolyId p) {
  std::vector<PolyId> factors;
  for (const Term& term : std::vector<Term>(t[p].terms)) {
    if (term.coef > 1 || term.coef < -1) factors.push_back(t.constant(std::abs(term.coef)));
    for (AtomId id : std::vector<AtomId>(t.atoms_of(term.mono))) {
      if (t.atom(id).kind == AtomKind::symbol || t.atoms_of(term.mono).size() == 1) continue;
      auto parts = t.split(p, id);
      if (!parts) continue;
      PolyId g = t.ge0(parts->factor) ? parts->factor : t.scale(parts->factor, -1);
      if (t.ge0(t.add_constant(g, -1))) factors.push_back(g);
    }
  }
  for (PolyId g : factors)
    if (auto parts = t.closed_divmod(p, g); parts && parts->quotient != p) return parts->quotient;
  return p;
}

// (x div d) + k >= 0 is x + k*d >= 0, and k - (x div d) >= 0 is d*k + d - 1 - x >= 0. For divisions
// that no cut removed.
PolyId multiply_mask(PolyTable& t, PolyId p) {
  for (const Term& term : std::vector<Term>(t[p].terms)) {
    const std::vector<AtomId> atoms = t.atoms_of(term.mono);
    if (atoms.size() != 1 || std::abs(term.coef) != 1) continue;
    Atom atom = t.atom(atoms[0]);
    if (atom.kind != AtomKind::div) continue;
    auto parts = t.split(p, atoms[0]);
    if (!parts || t.contains(parts->rest, atoms[0])) continue;
    PolyId scaled = t.mul(parts->rest, atom.b);
    if (term.coef == 1) return t.add(atom.a, scaled);
    return t.sub(t.add_constant(t.add(scaled, atom.b), -1), atom.a);
  }
  return p;
}

// Axes that `mask` fixes to one value: ±v + k >= 0 narrows v.
PolyTable::AtomMap fixed_axes(PolyTable& t, const Mask& mask) {
  PolyTable::AtomMap lows, highs, fixed;
  for (PolyId p : mask) {
    for (const Term& term : std::vector<Term>(t[p].terms)) {
      const std::vector<AtomId> atoms = t.atoms_of(term.mono);
      if (atoms.size() != 1 || t.atom(atoms[0]).kind != AtomKind::axis) continue;
      if (term.coef != 1 && term.coef != -1) continue;
      auto parts = t.split(p, atoms[0]);
      if (!parts || !t.has_only_symbols(parts->rest)) continue;
      if (term.coef == 1) lows[atoms[0]] = t.scale(parts->rest, -1);
      if (term.coef == -1) highs[atoms[0]] = parts->rest;
    }
  }
  auto fix = [&](AtomId id) {
    auto low = lows.find(id), high = highs.find(id);
    PolyId lo = low == lows.end() ? 0 : low->second;
    PolyId hi = high == highs.end() ? t.add_constant(t.atom(id).b, -1) : high->second;
    if (lo == hi) fixed[id] = lo;
  };
  for (auto [id, lo] : lows) fix(id);
  for (auto [id, hi] : highs) fix(id);
  return fixed;
}

}  // namespace

std::optional<Cases> compose(PolyTable& t, const Access& access, const Indices& index) {
  Cases cases;
  Composer composer(t, cases);
  composer.walk(access, index, {});
  if (composer.over_caps || cases.size() > kMaxCases) return std::nullopt;
  return cases;
}

bool simplify_mask(PolyTable& t, Mask& mask) {
  Mask kept;
  for (PolyId p : mask) {
    for (PolyId next; (next = divide_mask(t, p)) != p;) p = next;
    if (t.ge0(p)) continue;
    if (t.ge0(t.add_constant(t.scale(p, -1), -1))) return false;
    if (std::find(kept.begin(), kept.end(), p) == kept.end()) kept.push_back(p);
  }
  mask = std::move(kept);
  return true;
}

void finish(PolyTable& t, Cases& cases) {
  Cases kept;
  for (Case& c : cases) {
    for (PolyId& p : c.mask) {
      p = t.expand_lets(p);
      if (PolyId linear = multiply_mask(t, p); count_divisions(t, linear) < count_divisions(t, p))
        p = linear;
    }
    c.index = t.expand_lets(c.index);
    if (!simplify_mask(t, c.mask)) continue;
    PolyTable::AtomMap fixed = fixed_axes(t, c.mask);
    c.index = t.substitute(c.index, fixed);
    for (PolyId& p : c.mask) {
      PolyId replaced = t.substitute(p, fixed);
      if (!t.is_constant(replaced)) p = replaced;  // what fixes an axis must stay
    }
    if (simplify_mask(t, c.mask)) kept.push_back(std::move(c));
  }
  cases = std::move(kept);
}

int count_divisions(const PolyTable& t, PolyId p) {
  int count = 0;
  for (const Term& term : t[p].terms) {
    for (AtomId id : t.atoms_of(term.mono)) {
      const Atom& atom = t.atom(id);
      if (atom.kind == AtomKind::let) count += count_divisions(t, atom.a);
      if (atom.kind != AtomKind::div && atom.kind != AtomKind::mod) continue;
      count += 1 + count_divisions(t, atom.a) + count_divisions(t, atom.b);
    }
  }
  return count;
}

}  // namespace tn::loop
