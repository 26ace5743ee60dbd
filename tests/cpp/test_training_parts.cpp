// Schedules, clipping, scaled losses, initializers and checkpoints in C++.
#include <doctest/doctest.h>

#include <cmath>

#include "errors.h"
#include "files.h"
#include "tenon/checkpoints.h"
#include "tenon/files.h"
#include "tenon/nn.h"
#include "tenon/nn/init.h"
#include "tenon/optim.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

std::vector<double> rates(const optim::Schedule& schedule, int steps) {
  std::vector<double> all;
  for (int step = 0; step < steps; ++step)
    all.push_back(std::round(schedule(Tensor(step)).item<double>() * 1000) / 1000);
  return all;
}

std::vector<std::vector<float>> values(const nn::TensorMap& tensors) {
  std::vector<std::vector<float>> out;
  for (const auto& [name, t] : tensors) out.push_back(astype(t, DType::f32).to_vector<float>());
  return out;
}

/// A step of the loss `factor * sum(model(x))`, whose gradients may overflow.
template <class F>
void scaled_step(nn::Linear& model, F update, amp::LossScaler& scaler, const Tensor& factor) {
  Tensor loss = scaler.scale(sum(model(ones({1, 2}))) * factor);
  loss.backward();
  update();
}

}  // namespace

TEST_CASE("schedules are those of Python") {
  using namespace optim;
  using List = std::vector<double>;
  Schedule joined = join_schedules({linear_schedule(0.0, 0.1, 2), cosine_decay(0.1, 4)}, {2});
  CHECK(rates(joined, 8) == List{0, 0.05, 0.1, 0.085, 0.05, 0.015, 0, 0});
  CHECK(rates(step_decay(1.0, 0.5, 2), 5) == List{1, 1, 0.5, 0.5, 0.25});
  CHECK(rates(exponential_decay(1.0, 0.5), 3) == List{1, 0.5, 0.25});
  CHECK(rates(constant(0.25), 2) == List{0.25, 0.25});
  CHECK(AdamW(joined).learning_rate().item<float>() == 0);
  CHECK(error_in([] { step_decay(1, 0.5, 0); }) == "step_decay: step_size must be above 0, not 0");
  CHECK(contains(error_in([] { join_schedules({constant(1)}, {2}); }),
                 "one schedule more than boundaries: 1 and 1"));
  CHECK(contains(error_in([] { join_schedules({constant(1), constant(1), constant(1)}, {3, 2}); }),
                 "do not increase: 3, 2"));
}

TEST_CASE("gradients in parameters are clipped") {
  Tensor w = array({3.f, 4.f});
  require_grad(w);
  sum(w * w / 2).backward();
  CHECK(optim::clip_grad_norm_(std::tie(w), 1.0).item<float>() == 5);
  CHECK(grad(w).to_vector<float>()[0] == doctest::Approx(0.6));
  optim::clip_grad_value_(std::tie(w), 0.7);
  CHECK(grad(w).to_vector<float>()[1] == doctest::Approx(0.7));
  CHECK(optim::clip_grad_value({{"w", array({-3.f, 1.f})}}, 2)["w"].to_vector<float>() ==
        std::vector<float>{-2, 1});
  CHECK(contains(error_in([&] { optim::clip_grad_norm_(std::tie(w), -1); }),
                 "clip_grad_norm_: max_norm must be at least 0, not -1"));
  CHECK(contains(error_in([] { optim::clip_grad_value({}, -1); }),
                 "clip_value must be at least 0, not -1"));
}

TEST_CASE("a scaled loss leaves out steps whose gradients overflow") {
  nn::Linear model(2, 1);
  optim::Adam optimizer{model.parameters(), {.learning_rate = 0.5}};
  amp::LossScaler scaler(4, {.interval = 2});
  auto step = [&] { scaler.step(optimizer), optimizer.zero_grad(); };
  auto scale = [&] { return scaler.state_dict()["scale"].item<float>(); };
  scaled_step(model, step, scaler, Tensor(1.0));
  auto [before, state] = std::pair(values(model.state_dict()), values(optimizer.state_dict()));
  scaled_step(model, step, scaler, Tensor(INFINITY));
  CHECK(values(model.state_dict()) == before);
  CHECK(values(optimizer.state_dict()) == state);
  CHECK(scale() == 2);
  scaled_step(model, step, scaler, Tensor(1.0)), scaled_step(model, step, scaler, Tensor(1.0));
  CHECK(scale() == 4);
  CHECK(optimizer.steps().item<int>() == 3);
  before = values(model.state_dict());
  scaler.update(optimizer, model, {{"bias", array({NAN})}});
  CHECK(values(model.state_dict()) == before);
  CHECK(scaler.unscale(nn::TensorMap{{"g", array({8.f})}})["g"].item<float>() == 4);
  CHECK(!amp::all_finite(Tensors{array({1.f, INFINITY})}).item<bool>());
  CHECK(contains(error_in([] { amp::LossScaler(-1); }), "scale > 0"));
}

TEST_CASE("a compiled step with a scaled loss has the bits of the plain one") {
  nn::Linear one(2, 1), other = one;
  optim::Adam first{one.parameters()}, second{other.parameters()};
  amp::LossScaler a(8, {.interval = 1}), b = a;
  auto step = [](nn::Linear& model, optim::Optimizer& optimizer, amp::LossScaler& scaler,
                 const Tensor& factor) {
    scaled_step(model, [&] { scaler.step(optimizer), optimizer.zero_grad(); }, scaler, factor);
  };
  auto compiled = compile(
      [&](const Tensor& factor) {
        step(other, second, b, factor);
        return factor;
      },
      std::tie(other, second, b));
  for (double factor : {1.0, HUGE_VAL, 2.0}) {
    step(one, first, a, Tensor(factor));
    compiled(Tensor(factor));
  }
  CHECK(values(one.state_dict()) == values(other.state_dict()));
  CHECK(values(a.state_dict()) == values(b.state_dict()));
}

TEST_CASE("initializers draw numbers of the right size") {
  using namespace nn::init;
  random::seed(3);
  Tensor w = zeros({64, 32, 3});
  auto deviation = [&](const Initializer& draw) { return tn::std(draw(w)).item<double>(); };
  CHECK(deviation(glorot_uniform()) == doctest::Approx(std::sqrt(2 / 288.0)).epsilon(0.05));
  CHECK(deviation(glorot_normal(2)) == doctest::Approx(2 * std::sqrt(2 / 288.0)).epsilon(0.05));
  CHECK(deviation(he_normal()) == doctest::Approx(std::sqrt(2 / 96.0)).epsilon(0.05));
  CHECK(deviation(he_uniform("fan_out", 1.0)) ==
        doctest::Approx(std::sqrt(1 / 192.0)).epsilon(0.05));
  CHECK(min(uniform(2, 3)(w)).item<float>() >= 2);
  CHECK(normal(3, 0)(w).shape() == w.shape());
  CHECK(constant(0.5)(zeros({2})).to_vector<float>() == std::vector<float>{0.5, 0.5});
  CHECK(identity()(zeros({2, 2})).to_vector<float>() == std::vector<float>{1, 0, 0, 1});
  Tensor q = orthogonal()(zeros({2, 3}));
  CHECK(allclose(matmul(q, matrix_transpose(q)), eye(2), 1e-5, 1e-6).item<bool>());
  CHECK(sum(sparse(0.5)(zeros({4, 3})) == 0, {0}).to_vector<int64_t>() ==
        std::vector<int64_t>{2, 2, 2});
  CHECK(contains(error_in([] { he_normal("fan"); }), "mode must be 'fan_in' or 'fan_out'"));
  CHECK(contains(error_in([] { glorot_normal()(zeros({2})); }), "expected at least 2 axes"));
  CHECK(contains(error_in([] { identity()(zeros({2, 3})); }), "expected a square matrix"));
  CHECK(contains(error_in([] { sparse(2); }), "sparsity must be between 0 and 1, not 2"));
  CHECK(contains(error_in([] { sparse(0.5)(zeros({2})); }), "expected a matrix"));
}

TEST_CASE("a checkpoint resumes a run with the same bits") {
  Folder folder;
  Checkpoints checkpoints(folder.path + "/run", 2);
  nn::Linear model(2, 1), other(2, 1);
  optim::AdamW optimizer{model.parameters()}, second{other.parameters()};
  auto step = [](nn::Linear& m, optim::Optimizer& o) {
    sum(square(m(random::normal({4, 2})))).backward();
    o.step(), o.zero_grad();
  };
  CHECK(checkpoints.load({{"model", other}}).empty());
  for (int i = 1; i <= 3; ++i) {
    step(model, optimizer);
    checkpoints.save(i, {{"model", model}, {"optimizer", optimizer}, {"note", "good"}});
  }
  CHECK(checkpoints.steps() == std::vector<int64_t>{2, 3});
  step(model, optimizer);
  CheckpointValues rest = checkpoints.load({{"model", other}, {"optimizer", second}});
  CHECK(std::get<int64_t>(rest.at("step")) == 3);
  CHECK(std::get<std::string>(rest.at("note")) == "good");
  step(other, second);
  CHECK(values(model.state_dict()) == values(other.state_dict()));
  CHECK(values(optimizer.state_dict()) == values(second.state_dict()));

  std::string path = folder.path + "/values";
  save_checkpoint(path, {{"w", ones({2})}, {"rate", 0.5}, {"on", true}, {"n", 7}}, false);
  rest = load_checkpoint(path);
  CHECK(std::get<Tensor>(rest.at("w")).size() == 2);
  CHECK(std::get<double>(rest.at("rate")) == 0.5);
  CHECK(std::get<bool>(rest.at("on")));
  CHECK(std::get<int64_t>(rest.at("n")) == 7);
}

namespace {

struct Layer {
  Tensor w, b;
  static void fields(auto& l, auto&& f) { f("w", l.w), f("b", l.b); }
};
struct Net {
  int64_t width = 2;
  std::vector<Layer> layers;
  static void fields(auto& n, auto&& f) { f("width", n.width), f("layers", n.layers); }
};

}  // namespace

TEST_CASE("a checkpoint has structs with fields and other trees") {
  Folder folder;
  std::string path = folder.path + "/run";
  Net net{.layers = {{full({2}, 1.0), full({1}, 2.0)}, {full({2}, 3.0), full({1}, 4.0)}}};
  std::map<std::string, Tensor> best{{"loss", array(0.5)}};
  save_checkpoint(path, {{"net", net}, {"best", best}, {"epoch", 7}});
  CHECK(load_safetensors(path).tensors.size() == 6);  // the random state too
  Net other{.width = 5, .layers = {{zeros({2}), zeros({1})}, {zeros({2}), zeros({1})}}};
  best["loss"] = array(0.0);
  auto rest = load_checkpoint(path, {{"net", other}, {"best", best}});
  CHECK(std::get<int64_t>(rest.at("epoch")) == 7);
  CHECK(other.layers[1].w.to_vector<float>() == std::vector<float>{3, 3});
  CHECK(other.layers[0].b.item<float>() == 2);
  CHECK(other.width == 5);
  CHECK(best.at("loss").item<float>() == 0.5f);
  other.layers.pop_back();
  std::string error = error_in([&] { load_checkpoint(path, {{"net", other}}); });
  CHECK(contains(error, "load_checkpoint: net: 2 problems with the weights"));
  CHECK(contains(error, "test_training_parts.cpp"));
}

TEST_CASE("what checkpoints refuse") {
  Folder folder;
  std::string path = folder.path + "/run", weights = folder.path + "/weights";
  nn::Linear model(2, 1);
  optim::SGD optimizer(0.1);
  optim::Adam adam(0.1);
  save_checkpoint(path, {{"model", model}, {"optimizer", optimizer}, {"n", 1}});
  model.save_weights(weights);
  auto error = [](const std::string& file, const CheckpointParts& parts) {
    return error_in([&] { load_checkpoint(file, parts); });
  };
  CHECK(contains(error(weights, {}), "holds tensors, not a checkpoint"));
  CHECK(contains(error(path, {{"optimizer", adam}}), "was saved as \"SGD\", not as a Adam"));
  CHECK(contains(error(path, {{"n", model}}), "'n' was saved as a value, not as a Module"));
  CHECK(contains(error(path, {{"other", model}}), "has no 'other'"));
  CHECK(contains(error(path, {{"n", 3}}), "n is a value, which has no state"));
  auto written = [&](const std::string& text) {
    save_safetensors(path, {}, {{"tenon.checkpoint", text}});
    return error(path, {});
  };
  CHECK(contains(written("no"), "is damaged: its metadata is not that of a checkpoint"));
  CHECK(contains(written(R"({"version": 2, "parts": {}})"), "has version 2"));
  CHECK(contains(written(R"({"version": 1, "parts": {"w": {"tensor": "w"}}})"),
                 "it does not contain the tensor \"w\""));
  CHECK(contains(error_in([&] { save_checkpoint(path, {{"a", 1}, {"a", 2}}); }),
                 "two parts are called a"));
  CHECK(contains(error_in([] { Checkpoints("x", 0); }), "keep is a number above 0, not 0"));
  CHECK(contains(error_in([] { Checkpoints("x").path(-1); }), "a step must be 0 or more, not -1"));
}

TEST_CASE("micro-batches give the gradients of the whole batch") {
  nn::Linear model(3, 1);
  auto loss_and_grad =
      nn::value_and_grad(model, [&](const Tensor& x) { return mean(square(model(x))); });
  Tensor x = random::normal({8, 3});
  auto [loss, gradients] = optim::accumulate(loss_and_grad, data::batches(x, 2));
  auto [want, wanted] = loss_and_grad(x);
  CHECK(allclose(loss, want, 1e-5, 1e-6).item<bool>());
  CHECK(allclose(gradients["weight"], wanted["weight"], 1e-5, 1e-6).item<bool>());
  auto product = [](const Tensor& a, const Tensor& b) { return sum(a * b); };
  Tensor n = arange(4.0);
  CHECK(optim::accumulate(product, data::batches(n, n, 2)).item<float>() == 7);
  CHECK(contains(
      error_in([&] { optim::accumulate(product, std::vector<std::tuple<Tensor, Tensor>>()); }),
      "there are no batches"));
}

TEST_CASE("activations that are no ops") {
  Tensor x = array({-2.f, -0.25f, 0.f, 3.f});
  auto list = [](const Tensor& t) { return t.to_vector<float>(); };
  using List = std::vector<float>;
  CHECK(list(nn::hard_shrink(x)) == List{-2, 0, 0, 3});
  CHECK(list(nn::softshrink(x)) == List{-1.5, 0, 0, 2.5});
  CHECK(list(nn::prelu(x, 0.5)) == List{-1, -0.125, 0, 3});
  CHECK(list(nn::relu2(x)) == List{0, 0, 0, 9});
  CHECK(list(nn::step(x)) == List{0, 0, 0, 1});
  CHECK(list(nn::glu(x)) == List{-1, -0.25f / (1 + std::exp(-3.f))});
  CHECK(sum(nn::softmin(x)).item<float>() == doctest::Approx(1));
  CHECK(list(nn::gelu_fast_approx(zeros({1}))) == List{0});
  CHECK(all(nn::gelu_approx(x) == gelu_tanh(x)).item<bool>());
}

TEST_CASE("activations as layers") {
  Tensor x = array({-2.f, -0.25f, 0.f, 3.f});
  auto list = [](const Tensor& t) { return t.to_vector<float>(); };
  using List = std::vector<float>;
  CHECK(list(nn::ReLU()(x)) == list(nn::relu(x)));
  CHECK(list(nn::LeakyReLU(0.5)(x)) == List{-1, -0.125, 0, 3});
  CHECK(list(nn::HardTanh(-1, 0.5)(x)) == List{-1, -0.25, 0, 0.5});
  CHECK(list(nn::GELU("tanh")(x)) == list(gelu_tanh(x)));
  CHECK(list(nn::Step(-1)(x)) == List{0, 1, 1, 1});
  CHECK(nn::GLU(0)(reshape(x, {4, 1})).shape() == Shape{2, 1});
  CHECK(list(nn::PReLU(1, 0.5).weight) == List{0.5});
  CHECK(nn::PReLU(3, 0.5, true)(zeros({2, 4, 3})).shape() == Shape{2, 4, 3});
  CHECK(contains(error_in([] { nn::GELU("erf"); }),
                 "GELU: approximate must be one of none, tanh, fast: 'erf'"));
}
