#include "ops/contraction_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "ir/sizes.h"

namespace tn::ops {
namespace {

constexpr size_t kExactTerms = 8;
constexpr double kUnknownSize = 256;

struct Problem {
  std::vector<std::string> terms;
  std::string out;
  const LabelSizes& sizes;
};

std::string united(const std::string& a, const std::string& b) {
  std::string all = a;
  for (char c : b)
    if (all.find(c) == all.npos) all += c;
  return all;
}

/// Size hints steer the order; it serves all sizes.
double steering_size(Dim extent) {
  SizeHints* hints = SizeHints::current();
  if (!extent.is_const() && !hints) return kUnknownSize;
  return static_cast<double>(extent.is_const() ? extent.raw : evaluate(extent, hints->values));
}

double cost_of(const std::string& labels, const LabelSizes& sizes) {
  double cost = 1;
  for (char c : labels) cost *= steering_size(sizes.at(c));
  return cost;
}

/// The labels of `all` that the result or some of `others` need.
std::string still_needed(const std::string& all, const std::string& out,
                         const std::vector<std::string>& others) {
  std::string kept;
  for (char c : all) {
    bool needed = out.find(c) != out.npos;
    for (const std::string& t : others) needed = needed || t.find(c) != t.npos;
    if (needed) kept += c;
  }
  return kept;
}

/// The labels of the product of the terms in `set`.
std::string product_labels(const Problem& p, uint32_t set) {
  std::string all;
  std::vector<std::string> others;
  for (size_t i = 0; i < p.terms.size(); ++i) {
    if (set >> i & 1)
      all = united(all, p.terms[i]);
    else
      others.push_back(p.terms[i]);
  }
  if (std::has_single_bit(set)) return all;
  return still_needed(all, p.out, others);
}

/// For each set of terms the subset on one side of its last product.
std::vector<uint32_t> best_splits(const Problem& p) {
  uint32_t sets = 1u << p.terms.size();
  std::vector<double> cost(sets, 0);
  std::vector<uint32_t> split(sets, 0);
  std::vector<std::string> labels(sets);
  for (uint32_t set = 1; set < sets; ++set) {
    labels[set] = product_labels(p, set);
    if (std::has_single_bit(set)) continue;
    cost[set] = std::numeric_limits<double>::infinity();
    for (uint32_t part = (set - 1) & set; part; part = (part - 1) & set) {
      uint32_t rest = set ^ part;
      if (part > rest) continue;
      double total = cost[part] + cost[rest] + cost_of(united(labels[part], labels[rest]), p.sizes);
      if (total < cost[set] || !split[set]) cost[set] = total, split[set] = part;
    }
  }
  return split;
}

/// Writes the products of `set` in order and returns the place of its result in `live`.
void emit_steps(const Problem& p, const std::vector<uint32_t>& split, uint32_t set,
                std::vector<uint32_t>& live, std::vector<PairStep>& steps) {
  if (std::has_single_bit(set)) return;
  uint32_t part = split[set], rest = set ^ part;
  emit_steps(p, split, part, live, steps);
  emit_steps(p, split, rest, live, steps);
  auto i = static_cast<size_t>(std::find(live.begin(), live.end(), part) - live.begin());
  auto k = static_cast<size_t>(std::find(live.begin(), live.end(), rest) - live.begin());
  if (i > k) std::swap(i, k);
  live.erase(live.begin() + static_cast<ptrdiff_t>(k));
  live.erase(live.begin() + static_cast<ptrdiff_t>(i));
  live.push_back(set);
  steps.push_back({i, k, product_labels(p, set)});
}

PairStep cheapest_pair(const Problem& p) {
  PairStep best{0, 1, {}};
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < p.terms.size(); ++i)
    for (size_t k = i + 1; k < p.terms.size(); ++k) {
      std::string all = united(p.terms[i], p.terms[k]);
      double cost = cost_of(all, p.sizes);
      if (cost >= least && !best.result.empty()) continue;
      std::vector<std::string> others = p.terms;
      others.erase(others.begin() + static_cast<ptrdiff_t>(k));
      others.erase(others.begin() + static_cast<ptrdiff_t>(i));
      best = {i, k, still_needed(all, p.out, others)}, least = cost;
    }
  return best;
}

}  // namespace

std::vector<PairStep> contraction_order(std::vector<std::string> terms, const std::string& out,
                                        const LabelSizes& sizes) {
  Problem p{std::move(terms), out, sizes};
  std::vector<PairStep> steps;
  while (p.terms.size() > kExactTerms) {
    PairStep step = cheapest_pair(p);
    p.terms.erase(p.terms.begin() + static_cast<ptrdiff_t>(step.second));
    p.terms.erase(p.terms.begin() + static_cast<ptrdiff_t>(step.first));
    p.terms.push_back(step.result);
    steps.push_back(std::move(step));
  }
  std::vector<uint32_t> live;
  for (size_t i = 0; i < p.terms.size(); ++i) live.push_back(1u << i);
  if (p.terms.size() > 1) emit_steps(p, best_splits(p), (1u << p.terms.size()) - 1, live, steps);
  return steps;
}

}  // namespace tn::ops
