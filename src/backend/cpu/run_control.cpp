#include "backend/cpu/run_control.h"

#include <cstring>

#include "backend/launcher.h"
#include "base/interrupt.h"
#include "ops/control_flow.h"

namespace tn {
namespace {

/// The operands of a step as inputs of plans: nothing is copied, and nothing may outlive this.
class BorrowedInputs {
 public:
  BorrowedInputs(const ControlStep& step, void* const* buffers, Device device)
      : headers_(step.in.size()) {
    for (size_t i = 0; i < headers_.size(); ++i) {
      headers_[i].read_only = true;
      headers_[i].address = buffers[i];
      headers_[i].device = device;
      headers_[i].bytes = static_cast<size_t>(step.in[i]->bytes());
      headers_[i].release = [](Buffer*) {};
    }
  }
  std::vector<Bound> all() {
    std::vector<Bound> bounds;
    for (size_t i = 0; i < headers_.size(); ++i) {
      headers_[i].refs.fetch_add(1, std::memory_order_relaxed);
      bounds.push_back({BufferRef::adopt_reference(&headers_[i]), 0});
    }
    return bounds;
  }

 private:
  std::vector<Buffer> headers_;
};

struct ControlRun {
  const ControlStep& step;
  void* const* buffers;
  BodyRunner& bodies;
  BorrowedInputs in{step, buffers, bodies.device()};
  std::vector<Bound> results = std::vector<Bound>(step.out.size());

  void* result(size_t i) const { return buffers[step.in.size() + i]; }

  void copy_results(std::span<const Bound> from) const {
    for (size_t i = 0; i < from.size(); ++i)
      bodies.copy(result(i), from[i], static_cast<size_t>(step.out[i]->bytes()));
  }

  void cond() {
    std::vector<Bound> inputs = in.all();
    bool taken = bodies.is_true(inputs[0]);
    bodies.run(taken ? 0 : 1, std::span<const Bound>(inputs).subspan(1), results);
    copy_results(results);
  }

  void while_loop() {
    std::vector<Bound> values = in.all();
    for (;;) {
      stop_if_asked();
      Bound go_on;
      bodies.run(0, values, {&go_on, 1});
      if (!bodies.is_true(go_on)) break;
      bodies.run(1, values, results);
      std::move(results.begin(), results.end(), values.begin());
    }
    copy_results({values.data(), results.size()});
  }

  void scan() {
    const auto& a = *reinterpret_cast<const ops::ScanAttrs*>(step.attrs->data);
    size_t carries = static_cast<size_t>(a.carries), xs = static_cast<size_t>(a.xs);
    std::vector<Bound> inputs = in.all();
    int64_t length = a.length.value();
    for (int64_t number = 0; number < length; ++number) {
      stop_if_asked();
      int64_t at = a.reverse ? length - 1 - number : number;
      for (size_t i = carries; i < carries + xs; ++i)
        inputs[i].offset = step.in[i]->bytes() / length * at;
      bodies.run(0, inputs, results);
      for (size_t i = carries; i < results.size(); ++i) {
        int64_t bytes = step.out[i]->bytes() / length;
        bodies.copy(static_cast<char*>(result(i)) + bytes * at, results[i],
                    static_cast<size_t>(bytes));
      }
      for (size_t i = 0; i < carries; ++i) inputs[i] = std::move(results[i]);
    }
    copy_results({inputs.data(), carries});
  }
};

/// Bodies in memory of the host.
struct HostBodies final : BodyRunner {
  explicit HostBodies(const ControlStep& owner) : step(owner) {}
  Device device() const override { return {}; }
  void run(size_t body, std::span<const Bound> in, std::span<Bound> out) override {
    tn::run(*step.bodies[body], in, nullptr, out);
  }
  static const char* data_of(const Bound& bound) {
    return static_cast<const char*>(bound.buffer->address) + bound.offset;
  }
  void copy(void* to, const Bound& from, size_t bytes) override {
    std::memcpy(to, data_of(from), bytes);
  }
  bool is_true(const Bound& flag) override { return *reinterpret_cast<const bool*>(data_of(flag)); }
  const ControlStep& step;
};

}  // namespace

void run_control(const ControlStep& step, void* const* buffers) {
  HostBodies bodies(step);
  run_control(step, buffers, bodies);
}

void run_control(const ControlStep& step, void* const* buffers, BodyRunner& bodies) {
  ControlRun run{step, buffers, bodies};
  switch (step.kind) {
    case ControlStep::Kind::cond:
      return run.cond();
    case ControlStep::Kind::while_loop:
      return run.while_loop();
    case ControlStep::Kind::scan:
      return run.scan();
  }
}

}  // namespace tn
