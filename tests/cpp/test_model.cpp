// Logical models in C++: building, flattening, inference, layers.
#include <doctest/doctest.h>

#include <cmath>

#include "errors.h"
#include "model/record.h"
#include "tenon/model_blocks.h"
#include "tenon/operators.h"
#include "tenon/random.h"

namespace tn::model {
namespace {

Resolved resolved(const Model& model, InferenceRequest request = {}) {
  return infer(flatten(model), request);
}

Shape shape_of(const Resolved& model, std::string_view name) {
  int w = model.flat.find(name);
  REQUIRE(w >= 0);
  return model.types[static_cast<size_t>(w)]->shape;
}

DType type_of(const Resolved& model, std::string_view name) {
  return model.types[static_cast<size_t>(model.flat.find(name))]->dtype;
}

using Names = std::vector<std::string>;

/// The outputs, then states, for first values of parameters and these data.
Tensors run(const Resolved& model, const Tensors& data) {
  Tensors given = first_values(model, random::key(0));
  size_t next = 0;
  for (Tensor& value : given)
    if (!value.defined()) value = data[next++];
  if (draws(model)) given.push_back(random::key(1));
  return record(model, given);
}

}  // namespace

TEST_CASE("model: blocks are connected by name and in a chain") {
  Model model;
  model |= Linear(64)({{"input", "x"}, {"output", "h"}});
  model += op_block("relu");
  model += Linear(10, {.bias = false});
  CHECK(model.keys(Role::input) == Names{"x"});
  CHECK(model.keys(Role::output) == Names{"output"});
  CHECK(model.keys(Role::parameter) == Names{"linear.weight", "linear.bias", "linear_1.weight"});
  Resolved r = resolved(model, {.shapes = {{"x", "32 16"}}});
  CHECK(shape_of(r, "linear.weight") == Shape{64, 16});
  CHECK(shape_of(r, "relu.output") == Shape{32, 64});
  CHECK(shape_of(r, "output") == Shape{32, 10});
}

TEST_CASE("model: sizes are found from results") {
  Model model;
  model |= op_block("relu")({{"input", "a"}, {"output", "b"}});
  model |= Linear(4)({{"input", "b"}, {"weight", "w"}, {"output", "c"}});
  Resolved r = resolved(model, {.shapes = {{"w", "4 7"}, {"c", "5 _"}}});
  CHECK(shape_of(r, "a") == Shape{5, 7});
  CHECK(shape_of(r, "c") == Shape{5, 4});
}

TEST_CASE("model: sizes that nothing determines are symbols") {
  Model model;
  model |= Linear(4, {.input_dims = 3})({{"input", "x"}, {"output", "y"}});
  Resolved r = resolved(model);
  Shape y = shape_of(r, "y");
  CHECK(y.rank() == 2);
  CHECK_FALSE(y[0].is_const());
  CHECK(y[1] == 4);
  CHECK(r.sizes.size() == 1);
  CHECK(contains(error_in([&] { resolved(model, {.static_shapes = true}); }), "static_shapes"));
}

TEST_CASE("model: multiples are found in both directions") {
  Model model;
  model |= Conv2d(8, 3, {.groups = 2})({{"input", "x"}, {"weight", "w"}});
  CHECK(shape_of(resolved(model, {.shapes = {{"x", "1 6 5 5"}}}), "w") == Shape{8, 3, 3, 3});
  CHECK(shape_of(resolved(model, {.shapes = {{"w", "8 3 3 3"}, {"x", "1 _ 5 5"}}}), "x") ==
        Shape{1, 6, 5, 5});
  std::string odd = error_in([&] { resolved(model, {.shapes = {{"x", "1 5 5 5"}}}); });
  CHECK(contains(odd, "Conv2d 'conv2d': 'in_channels' is 5, which is no multiple of 2"));
}

TEST_CASE("model: types") {
  Model model;
  model |= Linear(4)({{"input", "x"}, {"output", "h"}});
  model |= op_block("exp")({{"input", "h"}, {"output", "y"}});
  InferenceRequest request{.shapes = {{"x", "2 3"}}, .types = {{"y", DType::f64}}};
  Resolved r = resolved(model, request);
  CHECK(type_of(r, "x") == DType::f64);
  CHECK(type_of(r, "linear.weight") == DType::f64);
  request.types = {{"x", DType::f32},
                   {"linear.weight", DType::f32},
                   {"linear.bias", DType::f32},
                   {"y", DType::f16}};
  std::string text = error_in([&] { resolved(model, request); });
  CHECK(contains(text, "type mismatch at 'y'"));
  CHECK(contains(text, "Exp 'exp' says float32"));
  Model tokens;
  tokens |= Embedding(10, 4)({{"input", "x"}});
  CHECK(type_of(resolved(tokens, {.shapes = {{"x", "3"}}}), "x") == DType::i64);
}

TEST_CASE("model: nested models keep their own names") {
  Model inner("inner");
  inner |= Linear(3)({{"input", "x"}, {"output", "y"}});
  Model model;
  model |= inner({{"x", "a"}, {"y", "b"}});
  model |= inner({{"x", "b"}, {"y", "c"}});
  FlatModel flat = flatten(model);
  CHECK(flat.blocks.size() == 2);
  CHECK(flat.blocks[1].path == "inner_1.linear");
  CHECK(flat.find("inner_1.linear.weight") >= 0);
  CHECK(model.keys(Role::parameter).size() == 4);
  inner += op_block("relu");  // the others have it as it was
  CHECK(flatten(model).blocks.size() == 2);
}

TEST_CASE("model: blocks are ordered by what they read") {
  Model model;
  model |= op_block("exp")({{"input", "h"}, {"output", "y"}});
  model |= op_block("relu")({{"input", "x"}, {"output", "h"}});
  FlatModel flat = flatten(model);
  CHECK(flat.blocks[0].def->kind == "Relu");
  model |= op_block("tanh")({{"input", "y"}, {"output", "x"}});
  CHECK(contains(error_in([&] { flatten(model); }), "blocks depend on themselves: "));
}

TEST_CASE("model: merged connections are one") {
  Model model;
  model |= op_block("relu")({{"input", "a"}, {"output", "b"}});
  model |= Linear(2, {.input_dims = 7})({{"input", "c"}, {"output", "d"}});
  model.merge({"c", "b"});
  CHECK(shape_of(resolved(model, {.shapes = {{"a", "5 _"}}}), "a") == Shape{5, 7});
  model |= op_block("exp")({{"input", "a"}, {"output", "e"}});
  CHECK(contains(error_in([&] { model.merge({"e", "d"}); }), "'e' and 'd' both have values"));
}

TEST_CASE("model: layers run, and bias is drawn as its weight") {
  Model model;
  model |= Conv2d(16, 3, {.padding = 1})({{"input", "x"}});
  model += BatchNorm2d();
  model += op_block("relu");
  model += GlobalAvgPool2d();
  model += Dropout(0.5);
  model += Linear(10);
  for (bool training : {false, true}) {
    Resolved r = resolved(model, {.shapes = {{"x", "4 3 8 8"}}, .training = training});
    Tensors made = run(r, {ones({4, 3, 8, 8})});
    REQUIRE(made.size() == (training ? 4 : 3));  // output, running mean and variance, key
    CHECK(made[0].shape() == Shape{4, 10});
    CHECK(made[1].shape() == Shape{16});
    Tensors first = first_values(r, random::key(0));
    double bound = 1 / std::sqrt(27.0);
    double most = max(abs(first[2])).item<float>();
    CHECK(most <= bound);
    CHECK(most > bound / 2);
  }
}

TEST_CASE("model: what no block can be") {
  CHECK(contains(error_in([] { Block(BlockDef{.kind = "Odd", .terminals = {{.name = "x"}}}); }),
                 "Odd: a block needs an output"));
  BlockDef def{
      .kind = "Odd",
      .terminals = {{.name = "w", .role = Role::parameter}, {.name = "y", .role = Role::output}}};
  CHECK(contains(error_in([&] { Block{def}; }), "the parameter 'w' has no initial value"));
  CHECK(contains(error_in([] { op_block("sofmax"); }), "no op 'sofmax'"));
  CHECK(contains(error_in([] { op_block("softmax", "axes=1"); }), "softmax"));
  CHECK(contains(error_in([] { op_block("concat"); }), "say how many tensors it takes"));
}

TEST_CASE("model: text") {
  Model model;
  model |= Conv2d(8, 3, {.stride = 2})({{"input", "x"}});
  model += op_block("softmax", "axis=[1]");
  CHECK(model.to_text() ==
        "Model 'model', 2 blocks\n"
        "  conv2d   Conv2d(out_channels=8, kernel_size=3, stride=2)  x -> conv2d.output\n"
        "  softmax  Softmax(axis=[1])                                conv2d.output -> output");
}

}  // namespace tn::model
