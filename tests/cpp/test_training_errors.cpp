// Errors of modules, optimizers, batches and models in the C++ API.
#include <doctest/doctest.h>

#include <functional>

#include "errors.h"
#include "tenon/data.h"
#include "tenon/model_blocks.h"
#include "tenon/nn.h"
#include "tenon/optim.h"
#include "tenon/physical_model.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

void check_error(std::string_view expected, const std::function<void()>& call) {
  std::string found = error_in(call);
  CHECK_MESSAGE(contains(found, expected), found);
}

/// Its fields give two tensors one name.
struct Twins : nn::Module<Twins> {
  Tensor a = ones({2}), b = ones({2});
  static void fields(auto& m, auto&& f) { f("weight", m.a), f("weight", m.b); }
};

/// A layer that counts its calls.
struct Counter : nn::Module<Counter> {
  int64_t calls = 0;
  Tensor forward(const Tensor& x) { return ++calls, x; }
  static void fields(auto&, auto&&) {}
};

}  // namespace

TEST_CASE("errors of modules") {
  check_error("fields: two tensors have the name weight", [] { Twins().state_dict(); });
  const nn::Sequential counting{Counter()};
  check_error("Sequential: a layer that changes when it is called cannot be called in a constant",
              [&] { counting(ones({2})); });
  nn::Linear linear(2, 3);
  check_error("load_state_dict: rename: two weights become weight", [&] {
    linear.load_state_dict(linear.state_dict(), {.rename = [](auto&) { return "weight"; }});
  });
}

TEST_CASE("errors of optimizers and batches") {
  optim::SGD sgd(0.1);
  check_error("load_state_dict: step is a null tensor",
              [&] { sgd.load_state_dict({{"step", Tensor()}}); });
  check_error("clip_grad_norm: max_norm must be at least 0, not -1",
              [] { optim::clip_grad_norm({{"w", ones({2})}}, -1); });
  check_error("batches: the number of epochs is negative: -1",
              [] { data::batches(ones({4}), 2, {.epochs = -1}); });
}

TEST_CASE("errors of compiled models") {
  using namespace tn::model;
  check_error("model: the model has no blocks", [] { Model().last_block(); });
  Model linear;
  linear |= Linear(2)({{"input", "x"}, {"output", "y"}});
  PhysicalModel physical = model::compile(linear, {.shapes = {{"x", "4 3"}}});
  check_error("show: no stage \"colours\": there are flattening, terminals, shapes, types",
              [&] { physical.show("colours"); });
  Values params = physical.randomize_params();
  check_error("evaluate: model has no 'z' among its outputs\n  hint: did you mean 'y'?", [&] {
    physical.evaluate_gradients(params, {{"x", ones({4, 3})}}, {{"z", ones({4, 2})}});
  });
  check_error("model: 'x' has no gradient: it is int32", [&] {
    model::compile(linear, {.shapes = {{"x", "4 3"}},
                            .types = {{"x", DType::i32}},
                            .keys = {.trainable = std::vector<std::string>{"x"}}});
  });
  Model dropout;
  dropout |= Dropout(0.5)({{"input", "x"}, {"output", "y"}});
  PhysicalModel drawing = model::compile(dropout, {.shapes = {{"x", "4"}}});
  check_error("evaluate: model draws random numbers and has no key\n  hint: give the state",
              [&] { drawing.evaluate({}, {{"x", ones({4})}}); });
}
