#include <cmath>
#include <numbers>

#include "base/error.h"
#include "ir/node.h"
#include "tenon/nn/init.h"
#include "tenon/operators.h"
#include "tenon/random.h"

namespace tn::nn::init {
namespace {

struct Fans {
  double in, out;
};

/// The elements of all axes from `first` on.
int64_t elements_from(const Tensor& x, int first) {
  int64_t count = 1;
  for (int axis = first; axis < x.rank(); ++axis) count *= x.dim(axis);
  return count;
}

void check_matrix(std::string_view name, const Tensor& x) {
  if (x.rank() < 2) fail("init.{}: expected at least 2 axes, given {}", name, *type_of(x));
}

Fans fans_of(std::string_view name, const Tensor& x) {
  check_matrix(name, x);
  auto kernel = static_cast<double>(elements_from(x, 2));
  return {static_cast<double>(x.dim(1)) * kernel, static_cast<double>(x.dim(0)) * kernel};
}

Tensor uniform_of(const Tensor& x, double low, double high) {
  DeviceScope there(x.device());
  return random::uniform(x.shape(), low, high, x.dtype());
}

Tensor normal_of(const Tensor& x, double mean, double std) {
  DeviceScope there(x.device());
  return random::normal(x.shape(), mean, std, x.dtype());
}

Tensor uniform_with(const Tensor& x, double std) {
  double bound = std::numbers::sqrt3 * std;
  return uniform_of(x, -bound, bound);
}

Tensor normal_with(const Tensor& x, double std) { return normal_of(x, 0, std); }

using Draw = Tensor(const Tensor& x, double std);

Initializer glorot(std::string_view name, Draw* draw, double gain) {
  return [=](const Tensor& x) {
    Fans fans = fans_of(name, x);
    return draw(x, gain * std::sqrt(2 / (fans.in + fans.out)));
  };
}

Initializer he(std::string_view name, Draw* draw, std::string_view mode, Maybe<double> gain) {
  if (mode != "fan_in" && mode != "fan_out")
    fail("init.{}: mode must be 'fan_in' or 'fan_out', not '{}'", name, mode);
  bool is_in = mode == "fan_in";
  return [=, factor = gain.value_or(std::numbers::sqrt2)](const Tensor& x) {
    Fans fans = fans_of(name, x);
    return draw(x, factor / std::sqrt(is_in ? fans.in : fans.out));
  };
}

}  // namespace

Initializer constant(double value) {
  return [=](const Tensor& x) { return full_like(x, value); };
}
Initializer uniform(double low, double high) {
  return [=](const Tensor& x) { return uniform_of(x, low, high); };
}
Initializer normal(double mean, double std) {
  return [=](const Tensor& x) { return normal_of(x, mean, std); };
}

Initializer identity() {
  return [](const Tensor& x) {
    if (x.rank() != 2 || x.dim(0) != x.dim(1))
      fail("init.identity: expected a square matrix, given {}", *type_of(x));
    DeviceScope there(x.device());
    return eye(x.dim(0), {}, 0, x.dtype());
  };
}

Initializer glorot_uniform(double gain) { return glorot("glorot_uniform", uniform_with, gain); }
Initializer glorot_normal(double gain) { return glorot("glorot_normal", normal_with, gain); }
Initializer he_uniform(std::string_view mode, Maybe<double> gain) {
  return he("he_uniform", uniform_with, mode, gain);
}
Initializer he_normal(std::string_view mode, Maybe<double> gain) {
  return he("he_normal", normal_with, mode, gain);
}

Initializer orthogonal(double gain) {
  return [=](const Tensor& x) {
    check_matrix("orthogonal", x);
    DeviceScope there(x.device());
    int64_t rows = x.dim(0), columns = elements_from(x, 1);
    auto [q, r] = qr(random::normal({std::max(rows, columns), std::min(rows, columns)}));
    Tensor signs = q * sign(diagonal(r));  // else the signs would not be random
    Tensor made = rows >= columns ? signs : matrix_transpose(signs);
    return astype(reshape(gain * made, x.shape()), x.dtype());
  };
}

Initializer sparse(double sparsity, double mean, double std) {
  if (!(sparsity >= 0 && sparsity <= 1))
    fail("init.sparse: sparsity must be between 0 and 1, not {}", sparsity);
  return [=](const Tensor& x) {
    if (x.rank() != 2) fail("init.sparse: expected a matrix, given {}", *type_of(x));
    auto zeros = static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(x.dim(0))));
    DeviceScope there(x.device());
    Tensor order = argsort(random::uniform(x.shape()), 0);
    return where(order < zeros, 0, random::normal(x.shape(), mean, std, x.dtype()));
  };
}

}  // namespace tn::nn::init
