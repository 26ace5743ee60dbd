// The logarithm of the gamma function and its derivatives.
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "tenon/operators.h"

namespace tn::ops {

struct PolygammaAttrs {
  int64_t order = 0;
  static constexpr void fields(auto& a, auto&& f) { f("order", a.order); }
};

constexpr auto lgamma_def = Elementwise<>{
    .doc =
        "The logarithm of the absolute value of the gamma function. Zero and negative whole "
        "numbers give infinity.",
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::lgamma(x); },
    .partials = {[](T t, T x) { return t * tn::polygamma(x, 0); }},
    .precision = Precision::full,
    .samples = {{"f32[2,3]", "", 0.5, 10}, {"f32[]", "", 1, 3}},
};
TN_OP(lgamma);

constexpr int kMaxOrder = 30;
// The even Bernoulli numbers, from B2 on.
constexpr double kBernoulli[] = {1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                 5.0 / 66, -691.0 / 2730, 7.0 / 6,  -3617.0 / 510};

static S power(S x, int n) {
  S result = x;
  for (int i = 1; i < n; ++i) result = result * x;
  return result;
}

// psi_n for y >= 0, times (-1)^(n+1), so that all orders but 0 are sums of positive numbers:
// n! / (y+k)^(n+1) over the first k, then the asymptotic series at what follows them.
static S polygamma_positive(int n, S y) {
  int steps = 10 + n;
  double factorial = std::tgamma(n + 1.0);
  S sum = constant_like(y, 0);
  for (int k = steps - 1; k >= 0; --k) sum = sum + power(1.0 / (y + double(k)), n + 1) * factorial;
  S z = y + double(steps), inverse = 1.0 / z, square = inverse * inverse;
  S tail = constant_like(y, 0);
  for (int k = std::size(kBernoulli); k > 0; --k)
    tail =
        (tail + kBernoulli[k - 1] * std::tgamma(2.0 * k + n) / std::tgamma(2.0 * k + 1)) * square;
  tail = tail + inverse * (factorial / 2);
  S series = n == 0 ? tail - sc::log(z) : (tail + std::tgamma(double(n))) * power(inverse, n);
  return sum + series;
}

// The n-th derivative of cot(pi x) is a polynomial in the cotangent c, as c' = -pi (1 + c^2).
static S cotangent_derivative(int n, S c) {
  std::vector<double> terms = {0, 1};
  for (int i = 0; i < n; ++i) {
    std::vector<double> next(terms.size() + 1);
    for (size_t k = 1; k < terms.size(); ++k) {
      double term = -M_PI * static_cast<double>(k) * terms[k];
      next[k - 1] += term, next[k + 1] += term;
    }
    terms = std::move(next);
  }
  S result = constant_like(c, terms.back());
  for (size_t k = terms.size() - 1; k-- > 0;) result = result * c + terms[k];
  return result;
}

// Below zero by reflection: psi_n(x) = (-1)^n psi_n(1 - x) - pi cot^(n)(pi x).
static S polygamma_of(const PolygammaAttrs& a, S given) {
  int n = static_cast<int>(a.order);
  S x = sc::cast(given, DType::f64);
  S below = x < 0.0;
  S positive = polygamma_positive(n, sc::select(below, 1.0 - x, x));
  S phase = x - sc::round(x);
  S pole = constant_like(x, n % 2 ? std::numeric_limits<double>::infinity()
                                  : std::numeric_limits<double>::quiet_NaN());
  S reflected = -positive - cotangent_derivative(n, 1.0 / sc::tan(phase * M_PI)) * M_PI;
  S negative = sc::select(phase == 0.0, pole, reflected);
  return sc::cast(sc::select(below, negative, n % 2 ? positive : -positive), given.type());
}

constexpr auto polygamma_def = Elementwise<PolygammaAttrs>{
    .doc =
        "The derivative of `digamma` of an order in [0, 30]; order 0 is `digamma` itself. At zero "
        "and at negative whole numbers odd orders give infinity, even ones NaN, and order 0 at "
        "zero an infinity.",
    .args = {"x"},
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](const PolygammaAttrs& a, S x) { return polygamma_of(a, x); },
    .prepare =
        [](PolygammaAttrs& a, Tensors& in) {
          if (a.order < 0 || a.order > kMaxOrder)
            fail("polygamma: order out of range [0, {}]: {} ({})", kMaxOrder, a.order,
                 *type_of(in[0]));
        },
    .partials = {[](const PolygammaAttrs& a, T t, T x) {
      return t * tn::polygamma(x, a.order + 1);
    }},
    .precision = Precision::full,
    .samples = {{"f32[2,3]", "", 2, 10},
                {"f32[4]", "", -2.9, -2.1},
                {"f32[2,3]", "order=1", 0.5, 10},
                {"f32[4]", "order=1", -0.9, -0.1},
                {"f32[4]", "order=2", -0.9, 3}},
};
TN_OP(polygamma);

constexpr auto digamma_def = Composite<>{
    .doc = "The derivative of `lgamma`; `polygamma` has the further ones.",
    .args = {"x"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors { return {tn::polygamma(in[0])}; },
    .precision = Precision::full,
    .samples = {{"f32[2,3]", "", 0.5, 10}, {"f32[4]", "", -0.9, -0.1}},
};
TN_OP(digamma);

}  // namespace tn::ops
