// The C++ API on one page: gradients, batches, loops, indexing, training and executables.
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/tenon.h>

#include <filesystem>
#include <iostream>

namespace nn = tn::nn;
namespace optim = tn::optim;

struct Params {
  tn::Tensor w, b;
  static constexpr auto fields(auto& p, auto&& f) { f("w", p.w), f("b", p.b); }
};

static const auto loss = [](const Params& p, const tn::Tensor& x, const tn::Tensor& y) {
  return tn::mean(tn::square(tn::matmul(x, p.w) + p.b - y));
};

/// Derivatives of functions of tensors.
static void differentiate() {
  auto f = [](tn::Tensor x) { return tn::sum(tn::sin(x) * tn::exp(-x * x)); };
  auto h = [](tn::Tensor x) { return x[{tn::slice(1, tn::none)}] * x[0]; };
  tn::Tensor x = tn::linspace(-1.0, 1.0, 7), t = tn::ones_like(x);
  std::cout << tn::grad(f)(x) << '\n' << tn::compile(tn::grad(f))(x) << '\n';
  std::cout << tn::vmap([](tn::Tensor v) { return v * v + 1.0; })(x) << '\n';
  auto H = tn::hessian(f)(x);
  auto J = tn::jacobian(h)(x);
  auto [y, dy] = tn::jvp(f, x, t);
  std::cout << H.shape().rank() << ' ' << J.dim(0) << ' ' << y.rank() << ' ' << dy << '\n';
}

/// A compiled step of gradient descent on a struct of parameters.
static void descend() {
  tn::Tensor X = tn::random::normal({64, 3}), Y = tn::matmul(X, tn::array({{1.f}, {-2.f}, {3.f}}));
  Params params{tn::zeros({3, 1}), tn::zeros({1})};
  auto [value, d] = tn::value_and_grad(loss)(params, X, Y);  // d is a Params
  std::cout << value.rank() << ' ' << d.w.dim(0) << '\n';
  auto step = tn::compile([](Params p, tn::Tensor x, tn::Tensor y) {
    auto [l, g] = tn::value_and_grad(loss)(p, x, y);
    return std::tuple{l, Params{p.w - 0.1 * g.w, p.b - 0.1 * g.b}};
  });
  for (int i = 0; i < 100; ++i) {
    auto [l, next] = step(params, X, Y);
    params = next;
  }
  std::cout << "w is found: " << (tn::sum(tn::abs(params.w[{tn::all, 0}])).item<float>() > 5.9)
            << '\n';
}

/// Loops over tensors, and parts of tensors.
static void index_and_scan() {
  tn::Tensor x = tn::linspace(-1.0, 1.0, 7), xs = x;
  auto [carry, path] = tn::scan(
      [](tn::Tensor h, tn::Tensor x) {
        h = tn::tanh(0.5 * h + x);
        return std::pair{h, h};
      },
      tn::array(0.0), xs);
  tn::Tensor m = tn::reshape(tn::arange(18.0), {3, 3, 2}), n = tn::ones({2, 3});
  tn::Tensor a = x[0], b = m[{tn::slice(1, -1), tn::all, -1}], c = tn::sum(m, {0, 2}),
             e = tn::einsum("ij,jk->ik", m[0], n);
  m[{0, tn::all}] = 5;
  m += 1;
  for (tn::Tensor row : m) std::cout << tn::sum(row) << '\n';
  std::cout << carry << path.dim(0) << a << b << c << e << '\n';
}

/// Trains a classifier of pictures whose class is the quarter with the most ink.
static void train() {
  tn::random::seed(0);
  tn::Tensor images = tn::random::uniform({512, 784});
  tn::Tensor labels = tn::argmax(tn::sum(tn::reshape(images, {512, 4, 196}), {2}), 1);

  nn::Sequential model{nn::Linear(784, 256), nn::relu, nn::Linear(256, 10)};
  optim::AdamW optimizer{model.parameters(), {.learning_rate = 1e-3}};
  float first = 0, last = 0;
  for (int epoch = 0; epoch < 3; ++epoch)
    for (auto [x, y] : tn::progress(tn::data::batches(images, labels, 128))) {
      tn::Tensor loss = nn::cross_entropy(model(x), y);
      loss.backward();
      optimizer.step();
      optimizer.zero_grad();
      last = loss.item<float>();
      if (first == 0) first = last;
    }
  std::cout << "the loss falls: " << (last < first) << " in " << optimizer.steps() << " steps\n";
}

/// Saves a function as a file, which needs no compiler to run.
static void save_and_load() {
  std::string file = std::filesystem::temp_directory_path() / "tenon-typed-example.tnx";
  auto f = [](tn::Tensor x, tn::Tensor y) { return tn::sum(x * y); };
  tn::compile_ahead(f, {{.shape = {4}}, {.shape = {4}}}).save(file);
  auto exe = tn::Executable::load<tn::Tensor(tn::Tensor, tn::Tensor)>(file);
  tn::Tensor x = tn::arange(4.0), y = tn::ones({4}), z = exe(x, y);
  std::cout << z << '\n';
  std::filesystem::remove(file);
}

int main() {
  differentiate();
  descend();
  index_and_scan();
  train();
  save_and_load();
  return 0;
}
