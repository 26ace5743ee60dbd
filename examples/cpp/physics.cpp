// Simulates planets with forces that are gradients of an energy, and finds the masses of the bodies
// from their orbits by differentiating the whole simulation.
//
//     physics [STEPS_OF_TIME] [STEPS_OF_SEARCH]
#include <tenon/optim.h>
#include <tenon/tenon.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace optim = tn::optim;

/// Positions and velocities of all bodies: [bodies, 2].
struct Bodies {
  tn::Tensor position, velocity;
  static void fields(auto& b, auto&& f) { f("position", b.position), f("velocity", b.velocity); }
};

/// Minus the mass products over the distances, summed over all pairs.
tn::Tensor potential(const tn::Tensor& position, const tn::Tensor& mass) {
  tn::Tensor apart = tn::expand_dims(position, 0) - tn::expand_dims(position, 1);
  tn::Tensor distance = tn::sqrt(tn::sum(apart * apart, -1) + 1e-4);  // softened
  tn::Tensor pairs = tn::triu(tn::outer(mass, mass) / distance, 1);
  return -tn::sum(pairs);
}

tn::Tensor energy(const Bodies& b, const tn::Tensor& mass) {
  tn::Tensor kinetic = 0.5 * tn::sum(mass * tn::sum(b.velocity * b.velocity, -1));
  return kinetic + potential(b.position, mass);
}

/// The bodies after `steps` of time, and where they were after each. A leapfrog keeps the energy.
std::pair<Bodies, tn::Tensor> simulate(const Bodies& start, const tn::Tensor& mass, int64_t steps) {
  constexpr double kStep = 0.02;
  auto acceleration = [&](const tn::Tensor& position) {
    return -tn::grad(potential)(position, mass) / tn::expand_dims(mass, 1);
  };
  auto advance = [&](Bodies b) {
    b.velocity = b.velocity + 0.5 * kStep * acceleration(b.position);
    b.position = b.position + kStep * b.velocity;
    b.velocity = b.velocity + 0.5 * kStep * acceleration(b.position);
    return std::pair{b, b.position};
  };
  return tn::scan(advance, start, steps);
}

int main(int argc, char** argv) {
  int64_t steps = argc > 1 ? std::atoi(argv[1]) : 150;
  int search = argc > 2 ? std::atoi(argv[2]) : 400;
  tn::set_print_options({.precision = 4});

  // A star and three heavy planets.
  tn::Tensor masses = tn::array({1.F, 0.05F, 0.02F, 0.08F});
  Bodies start{tn::array({{0.F, 0.F}, {1.F, 0.F}, {0.F, 1.6F}, {-2.3F, 0.F}}),
               tn::array({{0.F, 0.F}, {0.F, 1.F}, {-0.8F, 0.F}, {0.F, -0.65F}})};
  auto orbits = tn::compile([&](Bodies b, tn::Tensor mass) { return simulate(b, mass, steps); });
  auto [end, observed] = orbits(start, masses);
  double before = energy(start, masses).item<double>();
  double change = energy(end, masses).item<double>() / before - 1;
  std::printf("%d steps: energy %.4f, changed by %.1e\n", static_cast<int>(steps), before, change);

  // The same orbits, from masses that are wrong. Logarithms keep them positive.
  auto distance = [&](const tn::Tensor& log_mass) {
    auto [last, path] = simulate(start, tn::exp(log_mass), steps);
    return tn::mean(tn::square(path - observed));
  };
  auto slope = tn::compile(tn::value_and_grad(distance));
  tn::Tensor log_mass = tn::log(tn::array({0.8F, 0.04F, 0.04F, 0.04F}));
  optim::Adam optimizer(0.05);
  for (int i = 0; i <= search; ++i) {
    auto [loss, gradient] = slope(log_mass);
    if (i % (search / 4 + 1) == 0 || i == search)
      std::cout << "step " << i << "  loss " << loss.item<float>() << "  masses "
                << tn::exp(log_mass) << '\n';
    log_mass = optimizer.apply_gradients({{"mass", gradient}}, {{"mass", log_mass}}).at("mass");
  }
  tn::Tensor error = tn::max(tn::abs(tn::exp(log_mass) / masses - 1));
  std::printf("largest error of a mass: %.2f %%\n", 100 * error.item<double>());

  // Eigenvalues of the Hessian: a small one belongs to masses that the orbits hardly determine.
  std::cout << "curvature " << tn::eigvalsh(tn::hessian(distance)(log_mass)) << '\n';
}
