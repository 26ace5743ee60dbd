#include "model/unify.h"

#include <algorithm>
#include <utility>

namespace tn::model {

SizeId Unifier::any_size() {
  auto id = static_cast<SizeId>(values_.size());
  joined_.push_back(id);
  values_.emplace_back();
  return id;
}

SizeId Unifier::size(Dim value) {
  SizeId id = any_size();
  values_.back() = value;
  return id;
}

AxesId Unifier::any_axes() {
  axes_.emplace_back();
  return static_cast<AxesId>(axes_.size()) - 1;
}

Sizes Unifier::of(const Shape& shape) {
  Sizes sizes;
  for (Dim d : shape) sizes.front.push_back(size(d));
  return sizes;
}

SizeId Unifier::root(SizeId id) const {
  auto up = [&](SizeId i) -> SizeId& { return joined_[i]; };
  while (up(id) != id) id = up(id) = up(up(id));
  return id;
}

bool Unifier::unify(SizeId a, SizeId b) {
  a = root(a), b = root(b);
  if (a == b) return true;
  std::optional<Dim>& known = values_[a];
  const std::optional<Dim>& other = values_[b];
  if (known && other && !identical(*known, *other)) return false;
  if (!known) known = other;
  joined_[b] = a;
  return true;
}

Sizes Unifier::resolved(const Sizes& sizes) const {
  Sizes all = sizes;
  int steps = 0;
  while (all.rest >= 0) {
    const std::optional<Sizes>& found = axes_[all.rest];
    if (!found) break;
    ++steps;
    all.front.insert(all.front.end(), found->front.begin(), found->front.end());
    all.back.insert(all.back.begin(), found->back.begin(), found->back.end());
    all.rest = found->rest;
  }
  if (steps > 1)  // the next one to ask has a short way
    axes_[sizes.rest] = {.front = {all.front.begin() + std::ssize(sizes.front), all.front.end()},
                         .rest = all.rest,
                         .back = {all.back.begin(), all.back.end() - std::ssize(sizes.back)}};
  if (all.rest < 0) {
    all.front.insert(all.front.end(), all.back.begin(), all.back.end());
    all.back.clear();
  }
  return all;
}

/// Axes that would hold themselves are none.
bool Unifier::bind(AxesId rest, const Sizes& to) {
  if (rest == to.rest) return to.front.empty() && to.back.empty();
  axes_[rest] = to;
  has_bound_ = true;
  return true;
}

bool Unifier::unify(const Sizes& x, const Sizes& y) {
  if (!unify_once(x, y)) return false;
  while (std::exchange(has_bound_, false)) {
    for (auto& [a, b] : std::exchange(waiting_, {}))
      if (!unify_once(a, b)) return false;
  }
  return true;
}

bool Unifier::unify_once(const Sizes& x, const Sizes& y) {
  Sizes a = resolved(x), b = resolved(y);
  bool open = a.rest >= 0 && b.rest >= 0;
  size_t front = std::min(a.front.size(), b.front.size());
  for (size_t i = 0; i < front; ++i)
    if (!unify(a.front[i], b.front[i])) return false;
  auto from = [](const std::vector<SizeId>& list, size_t i) {
    return std::vector<SizeId>(list.begin() + static_cast<std::ptrdiff_t>(i), list.end());
  };
  a.front = from(a.front, front), b.front = from(b.front, front);
  // A side without open axes has what is left of it at its front; its end meets the other's back.
  auto tail = [](Sizes& s) -> std::vector<SizeId>& { return s.rest < 0 ? s.front : s.back; };
  size_t back = std::min(tail(a).size(), tail(b).size());
  if (a.rest < 0 && b.rest < 0) return a.front.empty() && b.front.empty();
  for (size_t i = 0; i < back; ++i) {
    if (!unify(tail(a).back(), tail(b).back())) return false;
    tail(a).pop_back(), tail(b).pop_back();
  }
  if (!open) {
    Sizes& known = a.rest < 0 ? a : b;
    Sizes& other = a.rest < 0 ? b : a;
    if (!other.front.empty() || !other.back.empty()) return false;  // fewer axes than it needs
    return bind(other.rest, {.front = known.front});
  }
  // What is left: a.front or b.front is empty, and so is a.back or b.back.
  if (a.rest == b.rest && a.front.size() + a.back.size() != b.front.size() + b.back.size())
    return false;
  if (a.front.empty() && a.back.empty()) return bind(a.rest, b);
  if (b.front.empty() && b.back.empty()) return bind(b.rest, a);
  // The front of one and the back of the other: they may share axes.
  waiting_.emplace_back(std::move(a), std::move(b));
  return true;
}

std::optional<Shape> Unifier::shape(const Sizes& sizes) const {
  Sizes all = resolved(sizes);
  if (all.rest >= 0 || all.front.size() > kMaxRank) return {};
  Shape shape;
  for (SizeId id : all.front) {
    std::optional<Dim> known = value(id);
    if (!known) return {};
    shape.push_back(*known);
  }
  return shape;
}

std::string Unifier::text(const Sizes& sizes) const {
  Sizes all = resolved(sizes);
  std::vector<std::string> parts;
  auto add = [&](const std::vector<SizeId>& ids) {
    for (SizeId id : ids) parts.push_back(value(id) ? format("{}", *value(id)) : "_");
  };
  add(all.front);
  if (all.rest >= 0) parts.push_back("...");
  add(all.back);
  return format("[{}]", join(parts, ", "));
}

}  // namespace tn::model
