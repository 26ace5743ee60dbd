// Runs plans that have parts on several devices.
#include <algorithm>
#include <atomic>
#include <map>

#include "backend/launcher.h"
#include "base/function_ref.h"
#include "runtime/device.h"

namespace tn {

namespace {

/// Inputs that a part may overwrite, for as long as it runs. Memory is reused where a Bound holds
/// the only reference to it, so the caller's is moved, and comes back.
class Lent {
 public:
  explicit Lent(std::vector<Bound>& in) : in_(in) {}
  ~Lent() {
    for (auto [owner, place] : list_) *owner = std::move(in_[place]);
  }
  Lent(const Lent&) = delete;
  void add(const Bound& of_caller) {
    auto* owner = const_cast<Bound*>(&of_caller);
    list_.emplace_back(owner, in_.size());
    in_.push_back(std::move(*owner));
  }
  bool empty() const { return list_.empty(); }

 private:
  std::vector<Bound>& in_;
  std::vector<std::pair<Bound*, size_t>> list_;
};

/// Numbers a run for as long as it lasts.
class NumberedRun {
 public:
  explicit NumberedRun(const Plan::Parts& parts) : before_(run_of_parts) {
    static std::atomic<uint64_t> runs = 0;
    auto is_beside = [](const Plan::Part& part) { return works_beside_others(part.plan->device); };
    if (std::ranges::any_of(parts.list, is_beside)) run_of_parts = ++runs;
  }
  ~NumberedRun() { run_of_parts = before_; }
  NumberedRun(const NumberedRun&) = delete;

 private:
  uint64_t before_;
};

/// The values of a run, and their copies on other devices.
class Values {
 public:
  using Copy = FunctionRef<Bound(Device device, const Bound& value, int64_t bytes)>;
  Values(const Plan& plan, std::span<const Bound> inputs, Copy copy)
      : inputs_(inputs), made_(plan.parts->devices.size()), copy_(copy) {
    std::ranges::copy(plan.constants, made_.begin() + plan.inputs);
  }
  Bound at(int32_t value, Device device, int64_t bytes) {
    const Bound& own = static_cast<size_t>(value) < inputs_.size()
                           ? inputs_[static_cast<size_t>(value)]
                           : made_[static_cast<size_t>(value)];
    if (own.buffer->device == device) return own;
    auto number = static_cast<uint16_t>(device.kind << 8 | device.index);
    Bound& copy = copies_[{value, number}];
    if (!copy.buffer) copy = copy_(device, own, bytes);
    return copy;
  }
  void put(const std::vector<int32_t>& numbers, std::vector<Bound>& values) {
    for (size_t i = 0; i < values.size(); ++i)
      made_[static_cast<size_t>(numbers[i])] = std::move(values[i]);
  }
  void drop(int32_t value) {
    made_[static_cast<size_t>(value)] = {};
    copies_.erase(copies_.lower_bound({value, 0}), copies_.upper_bound({value, UINT16_MAX}));
  }

 private:
  std::span<const Bound> inputs_;
  std::vector<Bound> made_;  // but not inputs, which stay where they are
  std::map<std::pair<int32_t, uint16_t>, Bound> copies_;
  Copy copy_;
};

/// Where devices plan their parts: makes the plans of all parts before one runs, because a part
/// may overwrite a donated input, and a later one may be refused.
void plan_parts(const Plan& plan, std::span<const Bound> inputs) {
  const Plan::Parts& parts = *plan.parts;
  auto plans = [](const Plan::Part& part) { return plans_itself(part.plan->device); };
  if (std::ranges::none_of(parts.list, plans)) return;
  const Bound of_host{allocate(0), 0};
  auto outline = [&](Device device, const Bound& value, int64_t) {
    return plans_itself(device) ? runtime_of(device).outline(device, value) : of_host;
  };
  Values values(plan, inputs, outline);
  for (const Plan::Part& part : parts.list) {
    std::vector<Bound> in, out(part.out.size(), of_host);
    for (size_t i = 0; i < part.in.size(); ++i)
      in.push_back(values.at(part.in[i], part.plan->device, part.in_bytes[i]));
    if (plans(part)) runtime_of(part.plan->device).plan(*part.plan, in, out);
    values.put(part.out, out);
  }
}

}  // namespace

thread_local uint64_t run_of_parts = 0;

void run_parts(const Plan& plan, std::span<const Bound> inputs, const Scalar* scalars,
               std::span<Bound> outputs, bool* overwritten) {
  const Plan::Parts& parts = *plan.parts;
  if (parts.is_whole) return run(parts.list[0].plan, inputs, scalars, outputs, overwritten);
  NumberedRun numbered(parts);
  plan_parts(plan, inputs);
  auto copy = [](Device device, const Bound& value, int64_t bytes) {
    return copy_to(device, value, static_cast<size_t>(bytes));
  };
  Values values(plan, inputs, copy);
  for (const Plan::Part& part : parts.list) {
    for (const Plan::Wanted& wanted : part.fetched)
      values.at(wanted.value, wanted.device, wanted.bytes);
    std::vector<Bound> in, out(part.out.size());
    in.reserve(part.in.size());
    const auto& donated = part.plan->plan->donated;
    Lent lent(in);
    for (size_t i = 0; i < part.in.size(); ++i)
      if (i < donated.size() && donated[i] > 0)
        lent.add(inputs[static_cast<size_t>(part.in[i])]);
      else
        in.push_back(values.at(part.in[i], part.plan->device, part.in_bytes[i]));
    std::vector<Scalar> numbers;
    for (int32_t number : part.scalars) numbers.push_back(scalars[number]);
    run(part.plan, in, numbers.data(), out, overwritten);
    if (!lent.empty() && overwritten) *overwritten = true;  // whatever a later part does
    values.put(part.out, out);
    for (int32_t value : part.dropped) values.drop(value);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Plan::Wanted& wanted = parts.outputs[i];
    outputs[i] = values.at(wanted.value, wanted.device, wanted.bytes);
  }
}

}  // namespace tn
