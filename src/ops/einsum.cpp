// Einstein sums: parsing of the equation, diagonals, and the order of pairwise contractions.
#include <algorithm>

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/contract.h"
#include "ops/contraction_order.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct EinsumAttrs {
  std::string_view equation;
  static constexpr void fields(auto& a, auto&& f) { f("equation", a.equation, required); }
};

struct Term {
  Tensor x;
  Labels labels;
};

constexpr std::string_view kDots = "...";

/// Labels of the axes behind an ellipsis, aligned at the last one. They are no letters.
Labels ellipsis_labels(int count) {
  Labels out;
  for (int k = count - 1; k >= 0; --k) out += static_cast<char>(1 + k);
  return out;
}

/// One operand's part of the equation with `rank` axes; the ellipsis takes those left over.
Labels parse_term(std::string_view term, int rank, std::string_view equation) {
  Labels before, after;
  bool dots = false;
  for (size_t i = 0; i < term.size(); ++i) {
    char c = term[i];
    if (term.substr(i).starts_with(kDots)) {
      if (dots) fail("einsum: two ellipses in '{}': \"{}\"", term, equation);
      dots = true, i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(c))) {
      (dots ? after : before) += c;
    } else {
      fail("einsum: '{}' is neither a letter nor part of an ellipsis: \"{}\"", c, equation);
    }
  }
  int rest = rank - static_cast<int>(before.size() + after.size());
  if (rest < 0 || (rest > 0 && !dots))
    fail("einsum: '{}' names {} axes of an operand of rank {}: \"{}\"", term,
         before.size() + after.size(), rank, equation);
  return before + (dots ? ellipsis_labels(rest) : Labels()) + after;
}

/// The labels of the result: those given, or the ellipsis and then what occurs once, by letter.
Labels parse_result(std::string_view text, bool given, const std::vector<Term>& terms,
                    std::string_view equation) {
  Labels all, dots, once;
  for (const Term& t : terms) all += t.labels;
  for (char c : all)
    if (!std::isalpha(static_cast<unsigned char>(c)) && dots.find(c) == Labels::npos) dots += c;
  std::sort(dots.rbegin(), dots.rend());
  if (!given) {
    for (char c : all)
      if (std::isalpha(static_cast<unsigned char>(c)) && std::count(all.begin(), all.end(), c) == 1)
        once += c;
    std::sort(once.begin(), once.end());
    return dots + once;
  }
  auto letters = text.size() - (text.find(kDots) == text.npos ? 0 : kDots.size());
  int rank = static_cast<int>(letters) +
             (text.find(kDots) == text.npos ? 0 : static_cast<int>(dots.size()));
  Labels out = parse_term(text, rank, equation);
  for (char c : out) {
    if (std::count(out.begin(), out.end(), c) > 1)
      fail("einsum: '{}' occurs twice in the result: \"{}\"", c, equation);
    if (all.find(c) == Labels::npos) fail("einsum: '{}' is in no operand: \"{}\"", c, equation);
  }
  return out;
}

/// Every (n+1)th element of the two axes taken as one is the diagonal.
Term diagonal_of(const Term& t, size_t first, size_t second, std::string_view equation) {
  const Shape& shape = t.x.shape();
  int i = static_cast<int>(first), k = static_cast<int>(second);
  if (!decide_equal(shape[i], shape[k]))
    fail("einsum: extents of '{}' differ: {} and {} ({}): \"{}\"", t.labels[first], shape[i],
         shape[k], *type_of(t.x), equation);
  Perm perm;
  Shape flat;
  Labels labels;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis == i || axis == k) continue;
    perm.push_back(axis), flat.push_back(shape[axis]);
    labels += t.labels[static_cast<size_t>(axis)];
  }
  Dim n = shape[i];
  perm.push_back(i), perm.push_back(k), flat.push_back(n * n);
  Tensor x = tn::reshape(tn::permute_dims(t.x, perm), flat);
  return {spaced(x, flat.rank() - 1, 0, n, n + 1), labels + t.labels[first]};
}

void take_diagonals(Term& t, std::string_view equation) {
  for (size_t i = 0; i < t.labels.size(); ++i) {
    size_t k = t.labels.find(t.labels[i], i + 1);
    if (k == Labels::npos) continue;
    t = diagonal_of(t, i, k, equation);
    i = static_cast<size_t>(-1);
  }
}

/// The extent of every label; 1 gives way to others.
LabelSizes label_sizes(const std::vector<Term>& terms, std::string_view equation) {
  LabelSizes sizes;
  for (const Term& t : terms)
    for (size_t k = 0; k < t.labels.size(); ++k) {
      Dim extent = t.x.shape()[static_cast<int>(k)];
      auto [at, fresh] = sizes.emplace(t.labels[k], extent);
      if (fresh || decide_equal(at->second, extent) || decide_equal(extent, 1)) continue;
      if (!decide_equal(at->second, 1))
        fail("einsum: extents of {} differ: {} and {} ({}): \"{}\"",
             std::isalpha(static_cast<unsigned char>(t.labels[k])) ? format("'{}'", t.labels[k])
                                                                   : "the ellipsis",
             at->second, extent, *type_of(t.x), equation);
      at->second = extent;
    }
  return sizes;
}

/// Operands and result of "ij,jk->ik".
std::vector<Term> parse(std::string_view equation, const Tensors& in, Labels& out) {
  std::string text;
  for (char c : equation)
    if (c != ' ') text += c;
  size_t arrow = text.find("->");
  std::string_view left = std::string_view(text).substr(0, std::min(arrow, text.size()));
  std::vector<Term> terms;
  for (size_t i = 0;; ++i) {
    size_t comma = std::min(left.find(','), left.size());
    if (i < in.size())
      terms.push_back({in[i], parse_term(left.substr(0, comma), in[i].rank(), equation)});
    else
      fail("einsum: more terms than the {} operands: \"{}\"", in.size(), equation);
    if (comma == left.size()) break;
    left.remove_prefix(comma + 1);
  }
  if (terms.size() != in.size())
    fail("einsum: {} terms and {} operands: \"{}\"", terms.size(), in.size(), equation);
  bool given = arrow != text.npos;
  out = parse_result(given ? std::string_view(text).substr(arrow + 2) : "", given, terms, equation);
  return terms;
}

Tensors einsum_body(const EinsumAttrs& a, const Tensors& in) {
  if (in.empty()) fail("einsum: no operands: \"{}\"", a.equation);
  Tensors operands = in;
  promote_all(operands, "einsum", every_type);
  Labels out;
  std::vector<Term> terms = parse(a.equation, operands, out);
  for (Term& t : terms) take_diagonals(t, a.equation);
  LabelSizes sizes = label_sizes(terms, a.equation);
  std::vector<Labels> labels;
  for (const Term& t : terms) labels.push_back(t.labels);
  for (const PairStep& step : contraction_order(labels, out, sizes)) {
    Term x = terms[step.first], y = terms[step.second];
    terms.erase(terms.begin() + static_cast<ptrdiff_t>(step.second));
    terms.erase(terms.begin() + static_cast<ptrdiff_t>(step.first));
    terms.push_back({contract(x.x, x.labels, y.x, y.labels, step.result), step.result});
  }
  Term& last = terms[0];
  Tensor summed = sum_except(last.x, last.labels, out);
  return {in_order(summed, last.labels, out)};
}

}  // namespace

constexpr auto einsum_def = Composite<EinsumAttrs>{
    .doc =
        "Sums products of the operands over the labels that are not in the result: \"ij,jk->ik\". "
        "A "
        "label twice in one operand takes the diagonal, \"...\" stands for the remaining axes, "
        "which "
        "broadcast. Without \"->\" the result has the ellipsis, then the labels that occur once, "
        "in "
        "alphabetical order. Three or more operands are multiplied in pairs, in the cheapest "
        "order.",
    .args = {"*operands"},
    .body = rule<einsum_body>,
    .precision = Precision::low,
    .samples = {{"f32[2,3], f32[3,4]", "equation=\"ij,jk->ik\""},
                {"f32[3,3]", "equation=\"ii\""},
                {"f32[3,3,2]", "equation=\"iij->ji\""},
                {"f32[2,5,3], f32[3,4]", "equation=\"...ij,jk\""},
                {"f32[2,3], f32[3,4], f32[4,2]", "equation=\"ij,jk,kl->il\""},
                {"f32[4,2,3], f32[4,3,2]", "equation=\"bij,bji->b\""},
                {"f32[2,3], f32[4]", "equation=\"ij,k->kj\""}},
};
TN_OP(einsum);

}  // namespace tn::ops
