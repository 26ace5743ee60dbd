#include "backend/cuda/plan_run.h"

#include <algorithm>
#include <cstdlib>

#include "backend/cuda/cuda_runtime.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "plan/run_places.h"
#include "runtime/device.h"

namespace tn::cuda {
namespace {

bool waits_for_steps() {
  static const bool wanted = [] {
    const char* text = std::getenv("TENON_CUDA_SYNC");
    return text && *text && std::string_view(text) != "0";
  }();
  return wanted;
}

/// "softmax (train.py:31, in loss)".
std::string name_of(const Plan& plan, const Step& step) {
  std::string place = to_text(place_of(plan, step));
  return place.empty() ? step.name : format("{} ({})", step.name, place);
}

/// Bodies of control flow, on the GPU.
class GpuBodies final : public BodyRunner {
 public:
  GpuBodies(Gpu& gpu, Device device, PlanState& state, const ControlStep& step)
      : gpu_(gpu), device_(device), state_(state), step_(step) {}

  Device device() const override { return device_; }
  void run(size_t body, std::span<const Bound> in, std::span<Bound> out) override {
    tn::run(state_.body(step_, body), in, nullptr, out);
  }
  void copy(void* to, const Bound& from, size_t bytes) override {
    last = gpu_.copy_within(reinterpret_cast<Address>(to), address(from), bytes);
  }
  bool is_true(const Bound& flag) override {
    bool value = false;
    gpu_.copy_out(&value, address(flag), sizeof value);
    return value;
  }
  uint64_t last = 0;

 private:
  static Address address(const Bound& value) {
    return reinterpret_cast<Address>(value.buffer->address) + static_cast<Address>(value.offset);
  }
  Gpu& gpu_;
  Device device_;
  PlanState& state_;
  const ControlStep& step_;
};

}  // namespace

std::function<std::string()> PlanRun::name_of_plan() const {
  return [plan = placed_->plan, places = run_places] {
    RunPlacesScope recorded(places);
    constexpr size_t kMost = 4;
    std::string names;
    for (size_t i = 0; i < std::min(plan->steps.size(), kMost); ++i)
      names += format("{}{}", i ? ", " : "", name_of(*plan, plan->steps[i]));
    return plan->steps.size() > kMost
               ? format("{} and {} more steps", names, plan->steps.size() - kMost)
               : names;
  };
}

uint64_t PlanRun::run(bool* overwritten) {
  size_t steps = memory_.plan.steps.size(), first = memory_.plan.first_overwrite;
  if (steps == 0) return 0;
  state_.prepare(values_);
  if (has_watcher(EventKind::step)) times_.emplace(gpu_);
  if (state_.is_device_only() && !waits_for_steps() && !times_) {
    auto submit = [&](Stream stream) {
      if (first < steps && overwritten) *overwritten = true;
      state_.submit(values_, stream);
    };
    return gpu_.give(submit, name_of_plan());
  }
  for (size_t i = 0; i < steps; ++i) {
    if (i > 0 && i <= first) stop_if_asked();
    if (i == first && overwritten) *overwritten = true;
    run_step(i);
  }
  if (times_) times_->tell(last_);
  return last_;
}

/// Steps that the host has a part in are reported by its clock, when they are over.
void PlanRun::run_step(size_t number) {
  if (!times_ || state_.is_item(number)) return run_unwatched(number);
  times_->tell(last_);
  const Step& step = memory_.plan.steps[number];
  Event event(EventKind::step, step.name, event_time());
  event.place = step.loc.place();
  run_unwatched(number);
  if (has_watcher(EventKind::step)) post_span(event);
}

void PlanRun::run_unwatched(size_t number) {
  const Step& step = memory_.plan.steps[number];
  try {
    if (state_.is_item(number)) {
      auto submit = [&](Stream stream) {
        if (times_) times_->begin(step, stream);
        state_.submit_step(number, values_, stream);
        if (times_) times_->end(stream);
      };
      last_ = gpu_.give(submit, [name = name_of(memory_.plan, step)] { return name; });
    } else if (const auto* control = std::get_if<ControlStep>(&step.what)) {
      std::vector<void*> buffers;
      for (int32_t b : step.buffers) buffers.push_back(values_.address[static_cast<size_t>(b)]);
      GpuBodies bodies(gpu_, placed_->device, state_, *control);
      run_control(*control, buffers.data(), bodies);
      last_ = std::max(last_, bodies.last);
    } else if (const auto* bundle = std::get_if<BundleStep>(&step.what)) {
      for (const Step& part : bundle->parts) run_on_host(part);
    } else {
      run_on_host(step);
    }
  } catch (const UserError&) {
    throw_with_place(memory_.plan, step);
  }
  if (!waits_for_steps()) return;
  try {
    gpu_.wait(last_);
  } catch (const InternalError& error) {
    throw_internal(
        format("cuda:{}: {} failed: {}", gpu_.index, name_of(memory_.plan, step), error.what()));
  }
}

size_t PlanRun::bytes_of(int32_t buffer) const {
  const Plan& plan = memory_.plan;
  auto b = static_cast<size_t>(buffer);
  if (int32_t own = buffer - plan.first_own(); own >= 0)
    return static_cast<size_t>(plan.bytes[static_cast<size_t>(own)]);
  const Bound& given =
      b < memory_.inputs.size() ? memory_.inputs[b] : memory_.constants[b - memory_.inputs.size()];
  return given.bytes();
}

/// A step that has no code for the GPU: its operands come to the host, and its results go back.
void PlanRun::run_on_host(const Step& step) {
  std::vector<BufferRef> copies;
  std::vector<void*> buffers;
  auto is_written = [&](size_t place) {
    return step.writes.empty() || std::ranges::count(step.writes, static_cast<int32_t>(place)) > 0;
  };
  for (size_t i = 0; i < step.buffers.size(); ++i) {
    size_t bytes = bytes_of(step.buffers[i]);
    copies.push_back(tn::allocate(bytes));
    buffers.push_back(copies.back().data());
    if (bytes && (step.writes.empty() || !is_written(i)))
      gpu_.copy_out(buffers.back(), address_of(step.buffers[i]), bytes);
  }
  std::vector<Scalar> scalars;
  for (int32_t n : step.scalars)
    scalars.push_back(n >= 0 ? values_.scalars[n] : Scalar(values_.scalars[~n].imag));
  tn::run_step(step, buffers.data(), scalars.data());
  for (size_t i = 0; i < step.buffers.size(); ++i)
    if (size_t bytes = bytes_of(step.buffers[i]); bytes && is_written(i))
      last_ = gpu_.copy_in(address_of(step.buffers[i]), buffers[i], bytes);
}

}  // namespace tn::cuda
