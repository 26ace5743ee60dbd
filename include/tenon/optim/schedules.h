#pragma once
// Learning rates as functions of the number of steps before.
//
//     auto warmup = tn::optim::linear_schedule(0.0, 0.1, 100);
//     auto decay = tn::optim::cosine_decay(0.1, 1000);
//     tn::optim::AdamW optimizer(tn::optim::join_schedules({warmup, decay}, {100}));
//
// The step is a tensor and so is the rate: a compiled training step is not traced again for them.
#include "tenon/optim/optimizer.h"

namespace tn::optim {

/// `value` at every step.
Schedule constant(double value);
/// `init`, times `decay_rate` after every `step_size` steps.
Schedule step_decay(double init, double decay_rate, int64_t step_size);
/// `init * decay_rate**step`.
Schedule exponential_decay(double init, double decay_rate);
/// From `init` to `end` in `decay_steps` steps, along half a cosine, and then `end`.
Schedule cosine_decay(double init, int64_t decay_steps, double end = 0);
/// From `init` to `end` in `steps` equal steps, and then `end`.
Schedule linear_schedule(double init, double end, int64_t steps);
/// One schedule after the other: at each boundary the next begins, with its step 0.
Schedule join_schedules(std::vector<Schedule> schedules, std::vector<int64_t> boundaries);

}  // namespace tn::optim
