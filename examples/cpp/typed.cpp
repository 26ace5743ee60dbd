// Functions of any arguments and results: gradients, batches, Hessians, loops and compiled steps.
#include <tenon/tenon.h>

#include <iostream>

struct Params {
  tn::Tensor w, b;
  static constexpr auto fields(auto& p, auto&& f) { f("w", p.w), f("b", p.b); }
};

static const auto loss = [](const Params& p, const tn::Tensor& x, const tn::Tensor& y) {
  return tn::mean(tn::square(tn::matmul(x, p.w) + p.b - y));
};

int main() {
  auto f = [](tn::Tensor x) { return tn::sum(tn::sin(x) * tn::exp(-x * x)); };
  tn::Tensor x = tn::linspace(-1.0, 1.0, 7), t = tn::ones_like(x);
  std::cout << tn::grad(f)(x) << '\n' << tn::compile(tn::grad(f))(x) << '\n';
  std::cout << tn::vmap([](tn::Tensor v) { return v * v + 1.0; })(x) << '\n';
  auto h = [](tn::Tensor x) { return x[{tn::slice(1, tn::none)}] * x[0]; };
  tn::Tensor H = tn::hessian(f)(x), J = tn::jacobian(h)(x);
  auto [y, dy] = tn::jvp(f, x, t);
  std::cout << H.shape().rank() << ' ' << J.dim(0) << ' ' << dy << '\n';

  tn::Tensor X = tn::random::normal({64, 3}), Y = tn::matmul(X, tn::array({{1.f}, {-2.f}, {3.f}}));
  Params params{tn::zeros({3, 1}), tn::zeros({1})};
  auto [value, d] = tn::value_and_grad(loss)(params, X, Y);  // d is a Params
  std::cout << value.shape().rank() << ' ' << d.w.dim(0) << '\n';
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

  auto [carry, path] = tn::scan(
      [](tn::Tensor h, tn::Tensor x) {
        h = tn::tanh(0.5 * h + x);
        return std::pair{h, h};
      },
      tn::array(0.0), x);
  tn::Tensor m = tn::reshape(tn::arange(12.0), {2, 3, 2}), n = tn::ones({3, 2});
  tn::Tensor a = x[0], b = m[{tn::slice(1, 2), tn::all, -1}], c = tn::sum(m, {0, 2});
  tn::Tensor e = tn::einsum("ij,jk->ik", tn::matrix_transpose(n), n);
  m[{0, tn::all}] = 5;
  m += 1;
  for (tn::Tensor row : m) std::cout << tn::sum(row) << '\n';
  std::cout << carry << path.dim(0) << a << b << c << e << '\n';
}
