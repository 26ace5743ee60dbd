// Fits a line to noisy points by gradient descent, with explicit gradients.
#include <tenon/tenon.h>

#include <cstdio>

int main() {
  // Points on y = 3x - 1, with a wave on top that a line cannot follow.
  tn::Tensor x = tn::linspace(-1, 1, 200);
  tn::Tensor y = x * 3 - 1 + 0.1 * tn::sin(x * 40);

  tn::Tensor slope(0.0), offset(0.0);
  for (int step = 0; step <= 300; ++step) {
    tn::Tensor error = slope * x + offset - y;
    tn::Tensor loss = tn::mean(error * error);
    slope = slope - 0.1 * tn::mean(2 * error * x);
    offset = offset - 0.1 * tn::mean(2 * error);
    tn::eval({loss, slope, offset});  // one run; the next step finds its plan in the cache
    if (step % 100 == 0)
      std::printf("step %3d  loss %.5f  y = %.3f x %+.3f\n", step, loss.item<double>(),
                  slope.item<double>(), offset.item<double>());
  }

  try {
    tn::matmul(x, tn::ones({3, 4}));
  } catch (const tn::UserError& problem) {
    std::printf("\n%s\n", problem.what());
  }
}
