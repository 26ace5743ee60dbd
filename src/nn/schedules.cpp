#include "tenon/optim/schedules.h"

#include <algorithm>
#include <numbers>

#include "base/error.h"
#include "tenon/operators.h"

namespace tn::optim {

static Tensor number(const Tensor& step) { return astype(step, DType::f32); }

static void check_steps(std::string_view name, std::string_view argument, int64_t value) {
  if (value <= 0) fail("{}: {} must be above 0, not {}", name, argument, value);
}

Schedule constant(double value) {
  return [=](const Tensor&) { return full({}, value, DType::f32); };
}

Schedule step_decay(double init, double decay_rate, int64_t step_size) {
  check_steps("step_decay", "step_size", step_size);
  return [=](const Tensor& step) {
    return init * pow(decay_rate, number(floor_divide(step, step_size)));
  };
}

Schedule exponential_decay(double init, double decay_rate) {
  return [=](const Tensor& step) { return init * pow(decay_rate, number(step)); };
}

Schedule cosine_decay(double init, int64_t decay_steps, double end) {
  check_steps("cosine_decay", "decay_steps", decay_steps);
  return [=](const Tensor& step) {
    Tensor angle = minimum(number(step) / decay_steps, 1) * std::numbers::pi;
    return end + 0.5 * (init - end) * (1 + cos(angle));
  };
}

Schedule linear_schedule(double init, double end, int64_t steps) {
  check_steps("linear_schedule", "steps", steps);
  return [=](const Tensor& step) { return init + (end - init) * minimum(number(step) / steps, 1); };
}

Schedule join_schedules(std::vector<Schedule> schedules, std::vector<int64_t> boundaries) {
  if (schedules.size() != boundaries.size() + 1)
    fail("join_schedules: there must be one schedule more than boundaries: {} and {}",
         schedules.size(), boundaries.size());
  if (!std::ranges::is_sorted(boundaries))
    fail("join_schedules: the boundaries do not increase: {}", join(boundaries, ", "));
  return
      [schedules = std::move(schedules), boundaries = std::move(boundaries)](const Tensor& step) {
        Tensor rate = schedules[0](step);
        for (size_t i = 0; i < boundaries.size(); ++i) {
          Tensor next = schedules[i + 1](maximum(step - boundaries[i], 0));
          rate = where(step < boundaries[i], rate, next);
        }
        return rate;
      };
}

}  // namespace tn::optim
