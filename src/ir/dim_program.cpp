#include "ir/dim_program.h"

#include <algorithm>

#include "base/error.h"
#include "ir/poly.h"

namespace tn {
namespace {

class Writer {
 public:
  Writer(const PolyTable& t, std::span<const std::string> symbols) : t_(t), symbols_(symbols) {}

  void sum(PolyId p) {
    bool begun = t_.constant_of(p) != 0 || t_.is_constant(p);
    if (begun) push(SizeStep::Kind::constant, t_.constant_of(p));
    for (const Term& term : t_[p].terms) {
      product(term);
      if (begun) push(SizeStep::Kind::add);
      begun = true;
    }
  }
  SizeProgram done;

 private:
  void push(SizeStep::Kind kind, int64_t number = 0) { done.steps.push_back({kind, number}); }

  void product(const Term& term) {
    bool begun = term.coef != 1;
    if (begun) push(SizeStep::Kind::constant, term.coef);
    for (AtomId id : t_.atoms_of(term.mono)) {
      atom(t_.atom(id));
      if (begun) push(SizeStep::Kind::mul);
      begun = true;
    }
  }

  void atom(const Atom& a) {
    if (a.kind == AtomKind::symbol) {
      auto at = std::find(symbols_.begin(), symbols_.end(), t_.name_of(a));
      invariant(at != symbols_.end(), "no value is given for the size {}", t_.name_of(a));
      return push(SizeStep::Kind::symbol, at - symbols_.begin());
    }
    sum(a.a);
    sum(a.b);
    push(a.kind == AtomKind::div   ? SizeStep::Kind::div
         : a.kind == AtomKind::mod ? SizeStep::Kind::mod
         : a.kind == AtomKind::min ? SizeStep::Kind::min
                                   : SizeStep::Kind::max);
  }

  const PolyTable& t_;
  std::span<const std::string> symbols_;
};

}  // namespace

SizeProgram size_program(Dim size, std::span<const std::string> symbols) {
  if (size.is_const()) return SizeProgram(size.value());
  PolyTable t;
  PolyId p = t.from_dim(size);
  Writer writer(t, symbols);
  writer.sum(p);
  invariant(writer.done.is_sound(symbols.size()), "the size {} is nested too deeply", size);
  return std::move(writer.done);
}

}  // namespace tn
