#pragma once
// What launchers of devices share: the memory of a run, its steps on this thread, its results.
#include "base/events.h"
#include "plan/plan.h"

namespace tn {

/// The user's place of the step that runs on this thread.
inline constinit thread_local Loc running_loc = {};

/// Allocates the blocks of a run on a device, or reuses the memory of donated inputs.
void take_blocks(const Plan& plan, Device device, std::span<const Bound> inputs, BufferRef* blocks);

/// What a run reads and writes.
struct RunMemory {
  const Plan& plan;
  std::span<const Bound> inputs, constants;
  BufferRef* blocks;

  /// How many values there are.
  size_t size() const { return static_cast<size_t>(plan.first_own()) + plan.bytes.size(); }
  /// The address of each, in the order of the plan's table, in memory that `address_of` finds.
  template <class F>
  void find(void** address, F&& address_of) const {
    for (const Bound& value : inputs) *address++ = address_of(*value.buffer) + value.offset;
    for (const Bound& value : constants) *address++ = address_of(*value.buffer) + value.offset;
    for (Spot spot : plan.spots) *address++ = address_of(*blocks[spot.block]) + spot.offset;
  }
};

/// Runs the steps on values at these addresses. `at`: the step that runs.
void run_steps(const RunMemory& memory, void* const* address, const Scalar* scalars,
               bool* overwritten = nullptr, const Step** at = nullptr);

/// Runs a plan with parts, one after the other. A value that a part needs on another device is
/// copied there once. Nothing is donated to parts, except to one that is the whole plan.
void run_parts(const Plan& plan, std::span<const Bound> inputs, const Scalar* scalars,
               std::span<Bound> outputs, bool* overwritten);

/// Throws the error under way of a step that runs later than its call: with the op and the user's
/// line, or the line `inside` it.
[[noreturn]] void throw_with_place(const Plan& plan, const Step& step, Loc inside = {});

/// Tells of a run from construction to destruction, and of the memory then.
class RunEvents {
 public:
  explicit RunEvents(const Plan& plan) : plan_(plan) {
    totals.runs.fetch_add(1, std::memory_order_relaxed);
    if (has_watcher(EventKind::run)) began_ = event_time();
  }
  ~RunEvents() {
    if (began_) end();
  }
  RunEvents(const RunEvents&) = delete;

 private:
  void end();
  const Plan& plan_;
  uint64_t began_ = 0;
};

/// Runs one step, on values at these addresses of the host.
void run_step(const Step& step, void* const* buffers, const Scalar* scalars);

/// Bodies of control flow, which run where their operands are.
class BodyRunner {
 public:
  virtual Device device() const = 0;
  virtual void run(size_t body, std::span<const Bound> in, std::span<Bound> out) = 0;
  virtual void copy(void* to, const Bound& from, size_t bytes) = 0;
  virtual bool is_true(const Bound& flag) = 0;

 protected:
  ~BodyRunner() = default;
};
/// Control flow driven by the host. `buffers` are operands, then results.
void run_control(const ControlStep& step, void* const* buffers, BodyRunner& bodies);

/// Results take the blocks that they lie in.
void give_results(const RunMemory& memory, std::span<Bound> outputs);

}  // namespace tn
