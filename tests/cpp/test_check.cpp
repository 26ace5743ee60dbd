// check: a wrong compiler is caught, and the op found.
#include <doctest/doctest.h>

#include "base/error.h"
#include "eval/eval.h"
#include "ir/element.h"
#include "observe/check.h"
#include "run_graph.h"
#include "tenon/tenon.h"

namespace tn {

namespace {

constexpr const char* kText = R"(func @main(%x: f32[4,6], %w: f32[6,5]) -> (f32[4,5], f32[4]) {
  %0 = exp %x : f32[4,6]
  %1 = dot %0, %w {lhs_contract=[1], rhs_contract=[0]} : f32[4,5]
  %2 = relu %1 : f32[4,5]
  %3 = log %x : f32[4,6]
  %4 = sum %3 {axis=[1]} : f32[4]
  %5 = add %2, %2 : f32[4,5]
  return %5, %4
})";

/// A compiler that takes one op for another.
struct Wrong {
  std::string_view op, other;
  std::shared_ptr<const Plan> operator()(const Graph& graph, const CompileOptions& options) const {
    std::string text = to_text(graph);
    size_t at = text.find(format(" {} ", op));
    if (at != std::string::npos) text.replace(at + 1, op.size(), other);
    return compile(parse_graph(text), options);
  }
};

/// The error of a check whose compiler is `wrong`, or "".
std::string checked(const Wrong& wrong) {
  Graph graph = parse_graph(kText);
  CompileOptions options{.effort = Effort::e2};
  Tensors in{full({4, 6}, 0.5f).eval(), full({6, 5}, 0.25f).eval()};
  std::vector<Bound> inputs, outputs(graph.outputs.size());
  for (const Tensor& t : in) inputs.push_back(bound_of(slot_of(t)));
  run(*wrong(graph, options), inputs, nullptr, outputs);
  try {
    check_run({graph, options, inputs}, outputs, wrong);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("check: right code passes") { CHECK(checked({"nothing", ""}) == ""); }

TEST_CASE("check: the op that is compiled wrongly is named, wherever it is") {
  for (auto [op, other] : {std::pair{"exp", "exp2"}, std::pair{"relu", "negative"},
                           std::pair{"log", "log2"}, std::pair{"add", "multiply"}}) {
    CAPTURE(op);
    std::string error = checked({op, other});
    CHECK_MESSAGE(error.find(format("check: compiled {} differs from interpreted in ", op)) !=
                      std::string::npos,
                  error);
    CHECK(error.find("please report it") != std::string::npos);
  }
}

TEST_CASE("check: the error has the place and both values") {
  std::string error = checked({"exp", "exp2"});
  CHECK_MESSAGE(error.find("24 of 24 elements of f32[4,6], most at [0, 0]: 1.41421354 compiled, "
                           "1.64872122 interpreted") != std::string::npos,
                error);
}

TEST_CASE("check: compiled functions check every call") {
  CompileSettings settings{.check = true};
  auto f =
      compile([](const Tensors& in) { return Tensors{softmax(in[0]) * 2, sum(in[0])}; }, settings);
  for (int64_t n : {3, 5, 7}) CHECK(f({full({n, 4}, 0.5f)}).size() == 2);
}

}  // namespace tn
