#include "compiler/plan_text.h"

#include <algorithm>

#include "base/text.h"
#include "compiler/device_part.h"
#include "ir/place.h"
#include "runtime/memory_use.h"

namespace tn {
namespace {

struct PlanText {
  const Plan& plan;
  std::string text = {};

  std::string name(int32_t buffer) const {
    if (buffer < plan.inputs) return format("in{}", buffer);
    if (buffer < plan.first_own()) return format("const{}", buffer - plan.inputs);
    return format("t{}", buffer - plan.first_own());
  }
  /// With where it lies, for what the plan makes.
  std::string placed(int32_t buffer) const {
    int32_t own = buffer - plan.first_own();
    if (own < 0 || plan.spots.empty()) return name(buffer);
    const Spot& spot = plan.spots[static_cast<size_t>(own)];
    return format("{} at block {} + {}", name(buffer), spot.block, spot.offset);
  }
  bool holds_output(int32_t block) const {
    return std::ranges::any_of(plan.outputs, [&](const Plan::Output& out) {
      int32_t own = out.buffer - plan.first_own();
      return own >= 0 && plan.spots[static_cast<size_t>(own)].block == block;
    });
  }

  void add_block(int32_t number) {
    const Plan::Block& block = plan.blocks[static_cast<size_t>(number)];
    text += format("block {}: {}", number, bytes_text(static_cast<size_t>(block.bytes)));
    if (block.input >= 0) text += format(", memory of in{}", block.input);
    text += holds_output(number) ? ", output\n" : "\n";
  }
  void add_step(size_t number) {
    const Step& step = plan.steps[number];
    std::vector<int32_t> written;
    for (int32_t place : step.writes) written.push_back(step.buffers[static_cast<size_t>(place)]);
    std::ranges::sort(written);
    written.erase(std::ranges::unique(written).begin(), written.end());
    std::vector<std::string> in, out;
    for (int32_t b : step.buffers)
      if (!std::ranges::count(written, b)) in.push_back(name(b));
    for (int32_t b : written) out.push_back(placed(b));
    text += format("step {}: {} {}", number, step.name, join(in, ", "));
    if (!out.empty()) text += format(" -> {}", join(out, ", "));
    if (std::string place = to_text(step.loc); !place.empty()) text += format("  ({})", place);
    text += '\n';
  }
};

/// Parts, and the copies between their devices.
std::string text_of_parts(const Plan& plan) {
  const Plan::Parts& parts = *plan.parts;
  PlanText made{plan};
  std::vector<std::pair<int32_t, Device>> copied;
  auto add_copy = [&](int32_t value, Device to, int64_t bytes) {
    Device from = parts.devices[static_cast<size_t>(value)];
    if (parts.is_whole || from == to || std::ranges::count(copied, std::pair(value, to))) return;
    copied.emplace_back(value, to);
    std::string name = value < plan.first_own() ? made.name(value) : format("v{}", value);
    made.text +=
        format("copy {} from {} to {}, {} bytes\n", name, to_text(from), to_text(to), bytes);
  };
  for (const Plan::Part& part : parts.list) {
    for (const Plan::Wanted& wanted : part.fetched)
      add_copy(wanted.value, wanted.device, wanted.bytes);
    for (size_t i = 0; i < part.in.size(); ++i)
      add_copy(part.in[i], part.plan->device, part.in_bytes[i]);
    made.text +=
        format("on {}:\n{}", to_text(part.plan->device), to_text(*plan_that_runs(part.plan->plan)));
  }
  for (const Plan::Wanted& wanted : parts.outputs)
    add_copy(wanted.value, wanted.device, wanted.bytes);
  return made.text;
}

}  // namespace

std::string to_text(const Plan& plan) {
  if (plan.parts) return text_of_parts(plan);
  PlanText made{plan};
  if (plan.one_thread) made.text += "on the thread that calls\n";
  for (size_t i = 0; i < plan.blocks.size(); ++i) made.add_block(static_cast<int32_t>(i));
  for (size_t i = 0; i < plan.steps.size(); ++i) made.add_step(i);
  std::vector<std::string> out;
  for (const Plan::Output& o : plan.outputs) out.push_back(made.name(o.buffer));
  return made.text + format("return {}\n", join(out, ", "));
}

}  // namespace tn
