// Contractions, sorting and the composites over them: cases beyond the samples of the ops.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "ir/node.h"
#include "ops/contraction_order.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> ramp(int64_t count, float step = 1) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i % 17 - 8) * step);
  return values;
}

Tensor ramp_of(const Shape& shape) { return array(ramp(shape.elements().value()), shape); }

template <class F>
std::string message_of(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool near(const Tensor& a, const Tensor& b, float tolerance = 1e-4f) {
  if (!(a.shape() == b.shape())) return false;
  std::vector<float> x = a.to_vector<float>(), y = b.to_vector<float>();
  for (size_t i = 0; i < x.size(); ++i)
    if (!(std::abs(x[i] - y[i]) <= tolerance * (1 + std::abs(y[i])))) return false;
  return true;
}

}  // namespace

TEST_CASE("a matrix product of large operands is the sum of products") {
  const int64_t m = 70, n = 90, k = 300;
  Tensor x = ramp_of({m, k}), y = ramp_of({k, n});
  std::vector<float> a = ramp(m * k), b = ramp(k * n), c = matmul(x, y).to_vector<float>();
  for (int64_t i = 0; i < m; i += 13)
    for (int64_t j = 0; j < n; j += 17) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += double(a[size_t(i * k + p)]) * b[size_t(p * n + j)];
      CHECK(c[size_t(i * n + j)] == doctest::Approx(sum));
    }
}

TEST_CASE("axes of a contraction may lie in any order") {
  Tensor x = ramp_of({3, 4, 5, 6}), y = ramp_of({6, 2, 4, 3});
  Tensor direct = einsum("abcd,deba->ce", {x, y});
  Tensor moved = matmul(reshape(permute_dims(x, Perm{2, 0, 1, 3}), {5, 72}),
                        reshape(permute_dims(y, Perm{3, 2, 0, 1}), {72, 2}));
  CHECK(near(direct, moved));
  CHECK(near(einsum("abcd,deba->bec", {x, y}), sum(einsum("abcd,deba->abec", {x, y}), Axes(0))));
}

TEST_CASE("a product over no elements is 0 and one without results is empty") {
  Tensor zero = matmul(ramp_of({2, 0}), ramp_of({0, 3}));
  CHECK(zero.to_vector<float>() == std::vector<float>(6, 0.0f));
  CHECK(matmul(ramp_of({0, 4}), ramp_of({4, 3})).size() == 0);
  CHECK(einsum("bij,bjk->bik", {ramp_of({0, 2, 3}), ramp_of({0, 3, 2})}).size() == 0);
}

TEST_CASE("many operands are contracted in pairs, in any order") {
  Tensors chain;
  std::string equation;
  for (int i = 0; i < 10; ++i) {
    chain.push_back(ramp_of({2, 2}) * 0.25);
    equation += {static_cast<char>('a' + i), static_cast<char>('b' + i)};
    if (i < 9) equation += ',';
  }
  Tensor want = chain[0];
  for (size_t i = 1; i < chain.size(); ++i) want = matmul(want, chain[i]);
  CHECK(near(einsum(equation + "->ak", chain), want));
}

TEST_CASE("the cheapest order multiplies the small matrices first") {
  ops::LabelSizes sizes{{'a', Dim(1000)}, {'b', Dim(2)}, {'c', Dim(1000)}, {'d', Dim(2)}};
  auto steps = ops::contraction_order({"ab", "bc", "cd"}, "ad", sizes);
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].first == 1);
  CHECK(steps[0].second == 2);
}

TEST_CASE("products that do not fit name the operands and say what would") {
  std::string text = message_of([] { matmul(ramp_of({8, 16}), ramp_of({4, 16})); });
  CHECK(text.find("matmul: inner dimensions differ: 16 (x1 f32[8,16]) and 4 (x2 f32[4,16])") == 0);
  CHECK(text.find("use matrix_transpose(x2): the product is f32[8,4]") != text.npos);
  CHECK(message_of([] { matmul(Tensor(1.0), ramp_of({2})); }).find("at least one axis") !=
        text.npos);
  CHECK(message_of([] {
          einsum("ij,jk->iz", {ramp_of({2, 3}), ramp_of({3, 2})});
        }).find("'z' is in no operand") != text.npos);
  CHECK(message_of([] {
          einsum("ij,jk", {ramp_of({2, 3}), ramp_of({4, 2})});
        }).find("extents of 'j' differ") != text.npos);
  CHECK(message_of([] { einsum("ij", {ramp_of({2, 3, 4})}); }).find("rank 3") != text.npos);
}

TEST_CASE("sorting moves NaN last, along any axis") {
  Tensor x = array<float>({2, NAN, -kInfinity, 1, kInfinity, 0}, {2, 3});
  std::vector<float> up = sort(x).to_vector<float>(), down = sort(x, -1, true).to_vector<float>();
  CHECK(up[0] == -kInfinity);
  CHECK(std::isnan(up[2]));
  CHECK(down[0] == 2);
  CHECK(std::isnan(down[2]));
  Tensor y = ramp_of({4, 5, 3});
  CHECK(near(take_along_axis(y, argsort(y, 1), 1), sort(y, 1), 0));
  TopKResult top = top_k(y, 2, 0);
  CHECK(near(take_along_axis(y, top.indices, 0), top.values, 0));
}

TEST_CASE("logsumexp and attention are right where everything is masked") {
  Tensor x = array<float>({-kInfinity, -kInfinity, 0, kInfinity}, {2, 2});
  CHECK(logsumexp(x, Axes(1)).to_vector<float>() == std::vector<float>{-kInfinity, kInfinity});
  CHECK(logsumexp(ramp_of({2, 0}), Axes(1)).to_vector<float>() ==
        std::vector<float>{-kInfinity, -kInfinity});
  Tensor q = ramp_of({1, 2, 3, 4}), k = ramp_of({1, 1, 2, 4});
  Tensor none = array<bool>(std::vector<bool>(6, false), {3, 2});
  Tensor out = scaled_dot_product_attention(q, k, k, none);
  CHECK(out.to_vector<float>() == std::vector<float>(24, 0.0f));
}

TEST_CASE("distinct values and positions of a lazy tensor") {
  Tensor x = array<float>({3, 1, 3, 0}, {2, 2}) + 0.0;
  CHECK(unique_values(x).to_vector<float>() == std::vector<float>{0, 1, 3});
  CHECK(unique_counts(x).counts.to_vector<int64_t>() == std::vector<int64_t>{1, 1, 2});
  CHECK(nonzero(x)[1].to_vector<int64_t>() == std::vector<int64_t>{0, 1, 0});
  Tensor found = astype(isin(x, array<float>({1, 0})), int64);
  CHECK(found.to_vector<int64_t>() == std::vector<int64_t>{0, 1, 0, 1});
}

TEST_CASE("ops whose shape depends on values are refused while tracing") {
  Tensor x = make_param(intern(DType::f32, {4})) + 1.0;
  CHECK(message_of([&] { unique_values(x); }).find("unique_values: its shape depends on values") ==
        0);
  CHECK(message_of([&] { nonzero(x); }).find("nonzero: its shape depends on values") == 0);
}
