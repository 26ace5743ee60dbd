// Physical models in C++: evaluations, gradients, options, and what is refused.
#include <doctest/doctest.h>

#include "errors.h"
#include "files.h"
#include "tenon/executable.h"
#include "tenon/model_blocks.h"
#include "tenon/physical_model.h"
#include "tenon/tenon.h"

using namespace tn;
using namespace tn::model;

namespace {

Model mlp() {
  Model m("net");
  m |= Linear(16)({{"input", "x"}, {"output", "h"}});
  m += op_block("relu");
  m += Linear(4);
  return m;
}

const PhysicalSettings kSettings{.shapes = {{"x", "8 6"}}};
const Values kData{{"x", ones({8, 6})}};

Tensor reference(const Values& p, const Tensor& x) {
  Tensor h = relu(linear(x, p.at("linear.weight"), p.at("linear.bias")));
  return linear(h, p.at("linear_1.weight"), p.at("linear_1.bias"));
}

bool same(const Tensor& a, const Tensor& b) { return all(a == b).item<bool>(); }

}  // namespace

TEST_CASE("a physical model evaluates what its blocks compute") {
  PhysicalModel physical = tn::model::compile(mlp(), kSettings);
  Values params = physical.randomize_params(3);
  CHECK(physical.shapes().at("linear_1.weight") == Shape{4, 16});
  CHECK(physical.types().at("h") == float32);
  Evaluated made = physical.evaluate(params, kData);
  CHECK(made.gradients.empty());
  CHECK(allclose(made.outputs.at("output"), reference(params, kData.at("x"))).item<bool>());
  CHECK(contains(physical.show("flattening"), "linear_1 = Linear"));
}

TEST_CASE("gradients are those of what is trainable; those of outputs that are left out are zero") {
  PhysicalSettings settings = kSettings;
  settings.keys.trainable = {"x", "linear.bias"};
  PhysicalModel physical = tn::model::compile(mlp(), settings);
  Values params = physical.randomize_params();
  Evaluated made = physical.evaluate_gradients(params, kData, {{"output", ones({8, 4})}});
  CHECK(made.gradients.size() == 2);
  Tensor wanted = grad([&](const Tensors& x) { return Tensors{sum(reference(params, x[0]))}; })(
      {kData.at("x")})[0];
  CHECK(allclose(made.gradients.at("x"), wanted).item<bool>());
  Evaluated none = physical.evaluate_gradients(params, kData, {});
  CHECK(same(none.gradients.at("x"), zeros({8, 6})));
}

TEST_CASE("keys are constants, data, or discarded") {
  PhysicalModel whole = tn::model::compile(mlp(), kSettings);
  Values params = whole.randomize_params();
  PhysicalSettings settings = kSettings;
  settings.keys.constants = {{"linear.weight", params.at("linear.weight")}};
  settings.keys.data = {"linear.bias"};
  PhysicalModel physical = tn::model::compile(mlp(), settings);
  Values rest = params, data = kData;
  rest.erase("linear.weight"), rest.erase("linear.bias");
  data.emplace("linear.bias", params.at("linear.bias"));
  CHECK(same(physical.evaluate(rest, data).outputs.at("output"),
             whole.evaluate(params, kData).outputs.at("output")));
  CHECK(physical.randomize_params().size() == 2);
  settings.keys.discard = {"output"};
  CHECK(contains(error_in([&] { tn::model::compile(mlp(), settings); }), "leaves no output"));
}

TEST_CASE("mixed precision and inference") {
  PhysicalSettings settings = kSettings;
  settings.mixed_precision = bfloat16;
  settings.inference = true;
  PhysicalModel physical = tn::model::compile(mlp(), settings);
  Values params = physical.randomize_params();
  CHECK(params.at("linear.weight").dtype() == float32);
  CHECK(physical.evaluate(params, kData).outputs.at("output").dtype() == bfloat16);
  CHECK(contains(error_in([&] { physical.evaluate_gradients(params, kData, {}); }),
                 "has no gradients"));
}

TEST_CASE("a saved model runs as an executable") {
  Folder folder;
  PhysicalModel physical = tn::model::compile(mlp(), {.shapes = {{"x", "n 6"}}});
  physical.save(folder.path + "/net.tnx");
  Executable loaded = Executable::load(folder.path + "/net.tnx");
  Values params = physical.randomize_params();
  Tensors args;
  for (const InputInfo& input : loaded.inputs())
    args.push_back(input.name == "x" ? kData.at("x") : params.at(input.name));
  CHECK(loaded.outputs()[0].name == "output");
  CHECK(same(loaded(args)[0], physical.evaluate(params, kData).outputs.at("output")));
}

TEST_CASE("what is given is checked, by name") {
  PhysicalModel physical = tn::model::compile(mlp(), kSettings);
  Values params = physical.randomize_params();
  auto error = [&](const Values& data) {
    return error_in([&] { physical.evaluate(params, data); });
  };
  CHECK(contains(error({}), "evaluate: data has no 'x'"));
  CHECK(contains(error({{"y", ones({8, 6})}}), "net has no 'y' among its data"));
  CHECK(contains(error({{"x", ones({7, 6})}}), "the shape of 'x' is [7,6], not [8,6]"));
  CHECK(contains(error({{"x", ones({8, 6}, float64)}}), "'x' is float64, not float32"));
  PhysicalSettings settings = kSettings;
  settings.keys.trainable = {"linear.weigh"};
  CHECK(contains(error_in([&] { tn::model::compile(mlp(), settings); }),
                 "did you mean 'linear.weight'?"));
}
