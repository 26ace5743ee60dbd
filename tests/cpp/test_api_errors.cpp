// Errors of the C++ API that Python checks before it calls it.
#include <doctest/doctest.h>

#include "errors.h"
#include "tenon/flat.h"
#include "tenon/model_blocks.h"
#include "tenon/ops.h"
#include "tenon/physical_model.h"

using namespace tn;

namespace {

void check_error(std::string_view expected, const std::function<void()>& call) {
  std::string found = error_in(call);
  CHECK_MESSAGE(contains(found, expected), found);
}

Tensors first(const Tensors& in) { return {in[0]}; }
Tensors twice(const Tensors& in) { return {in[0], in[0]}; }

}  // namespace

TEST_CASE("errors of control flow") {
  Tensor x = ones({2}), yes(true);
  check_error("cond: the branches return 1 and 2 results",
              [&] { flat::cond(yes, first, twice, {x}); });
  check_error("while_loop: the condition returns 2 results",
              [&] { flat::while_loop(twice, first, {yes}); });
}

TEST_CASE("errors of transforms") {
  Tensor x = ones({2});
  check_error("vmap: 2 in_axes for 1 arguments", [&] { flat::vmap(first, {0, 0})({x}); });
  check_error("vmap: 2 out_axes for 1 results", [&] { flat::vmap(first, {0}, {0, 0})({x}); });
  auto sum_of = [](const Function& f) {
    return [f](const Tensors& in) { return Tensors{sum(f(in)[0])}; };
  };
  auto with_vjp = [&](Tensors cotangents) {
    flat::CustomRules rules;
    rules.vjp = [=](const Tensors&, const Tensors&, const Tensors&) { return cotangents; };
    flat::grad(sum_of(flat::custom_function(first, rules)))({x});
  };
  check_error("vjp returns 0 cotangents for 1 arguments", [&] { with_vjp({}); });
  check_error("vjp returns f32[3] as the cotangent of argument 0, which is f32[2]",
              [&] { with_vjp({ones({3})}); });
}

TEST_CASE("errors of ops and models") {
  using namespace tn::model;
  check_error("einsum: no operands: \"i\"", [] { einsum("i", {}); });
  check_error("op_block: no op 'nothing'", [] { op_block("nothing"); });
  Model m;
  check_error("terminal 'input' is connected twice",
              [&] { m |= Linear(2)({{"input", "x"}, {"input", "y"}}); });
  Model linear;
  linear |= Linear(2)({{"input", "x"}, {"output", "y"}});
  check_error("invalid size -1", [&] { model::compile(linear, {.shapes = {{"x", "-1 3"}}}); });
  PhysicalModel physical = model::compile(linear, {.shapes = {{"x", "4 3"}}});
  check_error("evaluate: params has no 'linear.",
              [&] { physical.evaluate({}, {{"x", ones({4, 3})}}); });
}
