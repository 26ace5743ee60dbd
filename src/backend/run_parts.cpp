// Runs plans that have parts on several devices.
#include <map>

#include "backend/launcher.h"
#include "runtime/device.h"

namespace tn {

void run_parts(const Plan& plan, std::span<const Bound> inputs, const Scalar* scalars,
               std::span<Bound> outputs, bool* overwritten) {
  const Plan::Parts& parts = *plan.parts;
  if (parts.is_whole) return run(parts.list[0].plan, inputs, scalars, outputs, overwritten);
  std::vector<Bound> values(parts.devices.size());
  std::ranges::copy(inputs, values.begin());
  std::ranges::copy(plan.constants, values.begin() + plan.inputs);
  std::map<std::pair<int32_t, uint16_t>, Bound> copies;
  auto at = [&](int32_t value, Device device, int64_t bytes) {
    const Bound& own = values[static_cast<size_t>(value)];
    if (own.buffer->device == device) return own;
    auto number = static_cast<uint16_t>(device.kind << 8 | device.index);
    Bound& copy = copies[{value, number}];
    if (!copy.buffer) copy = copy_to(device, own, static_cast<size_t>(bytes));
    return copy;
  };
  for (const Plan::Part& part : parts.list) {
    std::vector<Bound> in, out(part.out.size());
    for (size_t i = 0; i < part.in.size(); ++i)
      in.push_back(at(part.in[i], part.plan->device, part.in_bytes[i]));
    std::vector<Scalar> numbers;
    for (int32_t number : part.scalars) numbers.push_back(scalars[number]);
    run(part.plan, in, numbers.data(), out);
    for (size_t i = 0; i < out.size(); ++i)
      values[static_cast<size_t>(part.out[i])] = std::move(out[i]);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Plan::Wanted& wanted = parts.outputs[i];
    outputs[i] = at(wanted.value, wanted.device, wanted.bytes);
  }
}

}  // namespace tn
