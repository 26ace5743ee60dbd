// LBFGS and MultiOptimizer in C++, and NumPy's files.
#include <doctest/doctest.h>

#include "errors.h"
#include "files.h"
#include "tenon/nn.h"
#include "tenon/optim.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

/// Rosenbrock's function, whose least value is at (1, 1).
Tensor rosenbrock(const Tensor& w) {
  Tensor x = w[0], y = w[1];
  return square(1 - x) + 100 * square(y - x * x);
}

double minimised(optim::LBFGSSettings settings, int steps) {
  Tensor w = array({-1.0, 1.5});
  optim::LBFGS optimizer(std::tie(w), settings);
  for (int i = 0; i < steps; ++i)
    optimizer.step([&] {
      optimizer.zero_grad();
      Tensor loss = rosenbrock(w);
      loss.backward();
      return loss;
    });
  return rosenbrock(w).item<double>();
}

}  // namespace

TEST_CASE("LBFGS finds the least value of Rosenbrock's function") {
  CHECK(minimised({.strong_wolfe = true}, 5) < 1e-12);
  CHECK(minimised({.learning_rate = 0.5, .max_iter = 5}, 20) < minimised({.max_iter = 1}, 1));
  CHECK(contains(error_in([] { minimised({.max_iter = 0}, 1); }), "max_iter must be at least 1"));
  CHECK(contains(error_in([] { minimised({.history_size = 0}, 1); }), "history_size"));
}

TEST_CASE("LBFGS goes on from its state, and refuses what it cannot do") {
  Tensor w = array({3.0, -2.0});
  auto made = [](Tensor& v) { return optim::LBFGS(std::tie(v), {.learning_rate = 0.3}); };
  optim::LBFGS first = made(w);
  auto closure = [](optim::LBFGS& optimizer, Tensor& v) {
    return [&] {
      optimizer.zero_grad();
      Tensor loss = sum(square(v) * array({1.0, 3.0}));
      loss.backward();
      return loss;
    };
  };
  Tensor loss = first.step(closure(first, w));
  CHECK(loss.item<double>() == 21);
  Tensor copy = stop_gradient(w);
  optim::LBFGS second = made(copy);
  second.load_state_dict(first.state_dict());
  CHECK(second.steps() == first.steps());
  first.step(closure(first, w)), second.step(closure(second, copy));
  CHECK(w.to_vector<double>() == copy.to_vector<double>());
  CHECK(contains(error_in([&] { first.load_state_dict({}); }), "of an LBFGS are missing"));
  CHECK(contains(error_in([&] {
                   compile([&](Tensor x) {
                     first.step(closure(first, w));
                     return x;
                   })(w);
                 }),
                 "LBFGS: step cannot be traced by compile"));
  nn::Linear frozen(2, 2);
  frozen.freeze();
  CHECK(contains(error_in([&] { optim::LBFGS(frozen.parameters()); }), "no parameters to train"));
}

TEST_CASE("several optimizers share a model by the names of its parameters") {
  auto is_bias = [](const std::string& name, const Tensor&) { return name == "bias"; };
  nn::Linear model(1, 1);
  model.update({{"weight", ones({1, 1})}, {"bias", ones({1})}});
  optim::MultiOptimizer optimizer({is_bias}, optim::SGD(1.0), optim::SGD(0.5));
  nn::TensorMap ones_of{{"weight", ones({1, 1})}, {"bias", ones({1})}};
  nn::TensorMap next = optimizer.apply_gradients(ones_of, ones_of);
  CHECK(next.at("weight").item<double>() == 0.5);
  CHECK(next.at("bias").item<double>() == 0);
  optimizer.watch(model.parameters());
  Tensor loss = sum(model(ones({1, 1})));
  loss.backward(), optimizer.step(), optimizer.zero_grad();
  CHECK(model.weight.item<double>() == 0.5);
  CHECK(model.bias.item<double>() == 0);
  CHECK(optimizer.state_dict().contains("optimizers.1.step"));
  optimizer.load_state_dict(optimizer.state_dict());
  optimizer.set_learning_rate(0.25);
  CHECK(optimizer[0].learning_rate().item<double>() == 0.25);
  CHECK(optimizer.size() == 2);
  CHECK(contains(error_in([&] { optimizer.load_state_dict({{"step", ones({})}}); }),
                 "0 of 1 tensors belong to these 2 optimizers"));
  CHECK(contains(error_in([&] { optim::MultiOptimizer({is_bias}, optim::SGD(1.0)); }),
                 "1 filters for 1 optimizers"));
}

TEST_CASE("NumPy's files are read as they were written") {
  Folder folder;
  std::string one = folder.path + "/x.npy", several = folder.path + "/all.npz";
  Tensor x = reshape(arange(6), {2, 3});
  save_npy(one, x);
  CHECK(load_npy(one).to_vector<int64_t>() == x.to_vector<int64_t>());
  save_npz(several, {{"x", x}, {"y", array({1.5, 2.5})}});
  NamedTensors all = load_npz(several);
  CHECK(all[0].first == "x");
  CHECK(all[1].second.to_vector<double>() == std::vector<double>{1.5, 2.5});

  std::string bytes = slurp(several);
  auto error_of = [&](const std::string& changed) {
    std::string path = folder.path + "/bad.npz";
    spill(path, changed);
    return error_in([&] { load_npz(path); });
  };
  auto with = [&](size_t place, char value) {
    std::string changed = bytes;
    changed[place] = value;
    return changed;
  };
  size_t central = bytes.find("PK\1\2");
  CHECK(contains(error_of(bytes.substr(0, 10)), "it ends too early"));
  CHECK(contains(error_of(std::string(100, 'x')), "it is not a zip archive"));
  CHECK(contains(error_of(with(central, 'x')), "its list of files"));
  CHECK(contains(error_of(with(central + 10, 8)), "x.npy is compressed, which is not supported"));
  CHECK(contains(error_of(with(0, 'x')), "invalid local file header"));
  CHECK(contains(error_of(with(central - 1, 'x')), "the checksum of y.npy differs"));
  CHECK(contains(error_of(with(central + 27, 'x')), "it ends too early"));
}
