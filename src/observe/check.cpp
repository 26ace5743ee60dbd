#include "observe/check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "base/error.h"
#include "ir/element.h"

namespace tn {

std::string index_text(int64_t at, const Shape& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t k = shape.size(); k-- > 0;) {
    int64_t extent = shape[static_cast<int>(k)].value();
    index[k] = at % extent;
    at /= extent;
  }
  return format("[{}]", join(index, ", "));
}

namespace {

constexpr int kShownDigits = 9;  // tell all f32 apart

/// Where two results differ most.
struct WrongElement {
  int64_t elements = 0;  // that differ
  int64_t at = 0;
  Scalar compiled, interpreted;
};

bool is_nan(const Scalar& s) {
  return (s.kind == Kind::floating || s.kind == Kind::complex) &&
         (std::isnan(s.real) || std::isnan(s.imag));
}

double distance(const Scalar& a, const Scalar& b) {
  double d = std::hypot(a.real - b.real, a.imag - b.imag);
  return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
}

std::optional<WrongElement> difference(const Bound& compiled, const Bound& interpreted,
                                       TypeRef type) {
  auto bytes = static_cast<size_t>(size_of(type->dtype));
  HostView host_a(compiled), host_b(interpreted);
  const char *a = host_a.data(), *b = host_b.data();
  if (std::memcmp(a, b, bytes * static_cast<size_t>(type->elements)) == 0) return {};
  WrongElement found;
  double most = -1;
  for (int64_t i = 0; i < type->elements; ++i, a += bytes, b += bytes) {
    if (std::memcmp(a, b, bytes) == 0) continue;
    Scalar x = element_at(type->dtype, a), y = element_at(type->dtype, b);
    if (is_nan(x) && is_nan(y)) continue;
    ++found.elements;
    if (double d = distance(x, y); d > most)
      most = d, found.at = i, found.compiled = x, found.interpreted = y;
  }
  if (found.elements == 0) return {};
  return found;
}

class Checker {
 public:
  Checker(const CheckedRun& run, PlanMaker make) : run_(run), make_(make), graph_(run.graph) {
    for (size_t n = 0; n < graph_.ops.size(); ++n)
      for (int k = 0; k < graph_.ops[n].outs; ++k)
        maker_[graph_.ops[n].out + k] = static_cast<int>(n);
  }

  std::vector<Bound> interpreted(const Graph& graph) const {
    return results(*compile(graph, {.constants = run_.options.constants}), graph);
  }

  /// The value that differs although none of its operands does, from one that differs.
  void descend(Val& v, WrongElement& found) const {
    while (true) {
      std::vector<Val> before = ancestors(v);
      size_t right = 0, wrong = before.size();  // before[wrong] differs, or is v
      std::optional<WrongElement> at_wrong;
      while (right < wrong) {
        size_t middle = (right + wrong) / 2;
        if (auto d = differs(before[middle]))
          wrong = middle, at_wrong = d;
        else
          right = middle + 1;
      }
      if (!at_wrong && !wrong_operand(v, at_wrong, before, wrong)) return;
      v = before[wrong], found = *at_wrong;
    }
  }

  std::string text(Val v, const WrongElement& d) const {
    TypeRef type = graph_.types[static_cast<size_t>(v)];
    auto made_by = maker_.find(v);
    std::string name = "a result", place;
    if (made_by != maker_.end()) {
      const GraphOp& op = graph_.ops[static_cast<size_t>(made_by->second)];
      name = op.op->name;
      place = to_text(op.loc);
    }
    return format(
        "check: compiled {} differs from interpreted in {} of {} elements of {}, most at {}: "
        "{} compiled, {} interpreted{}",
        name, d.elements, type->elements, *type, index_text(d.at, type->shape),
        to_text(d.compiled, kShownDigits), to_text(d.interpreted, kShownDigits),
        place.empty() ? "" : format(" (made at {})", place));
  }

 private:
  std::vector<Bound> results(const Plan& plan, const Graph& graph) const {
    std::vector<Bound> out(graph.outputs.size());
    run(plan, run_.inputs, nullptr, out);
    return out;
  }

  /// Of a value that is compiled with nothing but what it needs.
  std::optional<WrongElement> differs(Val v) const {
    Graph part = graph_;
    part.outputs = {v};
    part = prune(part);
    std::vector<Bound> compiled = results(*make_(part, run_.options), part);
    return difference(compiled[0], interpreted(part)[0], part.types[index(part.outputs[0])]);
  }

  /// Where halving missed it: an operand of `v` that differs.
  bool wrong_operand(Val v, std::optional<WrongElement>& found, const std::vector<Val>& before,
                     size_t& at) const {
    auto made_by = maker_.find(v);
    if (made_by == maker_.end()) return false;
    for (Val in : graph_.in(graph_.ops[index(made_by->second)])) {
      auto known = std::ranges::find(before, in);
      if (known == before.end()) continue;
      found = differs(in);
      if (!found) continue;
      at = static_cast<size_t>(known - before.begin());
      return true;
    }
    return false;
  }

  /// Computed values that `v` needs, in order.
  std::vector<Val> ancestors(Val v) const {
    std::vector<bool> needed(graph_.types.size());
    needed[index(v)] = true;
    std::vector<Val> out;
    for (size_t n = graph_.ops.size(); n-- > 0;) {
      const GraphOp& op = graph_.ops[n];
      bool wanted = false;
      for (int k = 0; k < op.outs; ++k) wanted |= needed[index(op.out + k)];
      if (!wanted) continue;
      for (Val in : graph_.in(op)) needed[index(in)] = true;
      if (op.op == &scalar_leaf) continue;
      for (int k = op.outs; k-- > 0;)
        if (needed[index(op.out + k)] && op.out + k != v) out.push_back(op.out + k);
    }
    std::ranges::reverse(out);
    return out;
  }

  static size_t index(Val v) { return static_cast<size_t>(v); }

  const CheckedRun& run_;
  PlanMaker make_;
  const Graph& graph_;
  std::map<Val, int> maker_;
};

}  // namespace

void check_run(const CheckedRun& run, std::span<const Bound> outputs, PlanMaker make) {
  Checker checker(run, make);
  std::vector<Bound> expected = checker.interpreted(run.graph);
  for (size_t i = 0; i < run.graph.outputs.size(); ++i) {
    Val v = run.graph.outputs[i];
    auto found = difference(outputs[i], expected[i], run.graph.types[static_cast<size_t>(v)]);
    if (!found) continue;
    checker.descend(v, *found);
    throw_internal(checker.text(v, *found));
  }
}

}  // namespace tn
