#include "backend/cpu/run_control.h"

#include <cstring>

#include "base/interrupt.h"
#include "ops/control_flow.h"

namespace tn {
namespace {

/// The operands of a step as inputs of plans: nothing is copied, and nothing may outlive this.
class BorrowedInputs {
 public:
  BorrowedInputs(const ControlStep& step, void* const* buffers) : headers_(step.in.size()) {
    for (size_t i = 0; i < headers_.size(); ++i) {
      headers_[i].read_only = true;
      headers_[i].address = buffers[i];
      headers_[i].bytes = static_cast<size_t>(step.in[i]->bytes());
      headers_[i].release = [](Buffer*) {};
    }
  }
  /// From number `first` on.
  std::vector<Bound> all(size_t first = 0) {
    std::vector<Bound> bounds;
    for (size_t i = first; i < headers_.size(); ++i) {
      headers_[i].refs.fetch_add(1, std::memory_order_relaxed);
      bounds.push_back({BufferRef::adopt_reference(&headers_[i]), 0});
    }
    return bounds;
  }

 private:
  std::vector<Buffer> headers_;
};

const char* data_of(const Bound& bound) {
  return static_cast<const char*>(bound.buffer->address) + bound.offset;
}

struct ControlRun {
  const ControlStep& step;
  void* const* buffers;
  BorrowedInputs in{step, buffers};
  std::vector<Bound> results = std::vector<Bound>(step.out.size());

  void* result(size_t i) const { return buffers[step.in.size() + i]; }

  void copy_results(std::span<const Bound> from) const {
    for (size_t i = 0; i < from.size(); ++i)
      std::memcpy(result(i), data_of(from[i]), static_cast<size_t>(step.out[i]->bytes()));
  }

  void cond() {
    bool taken = *static_cast<const bool*>(buffers[0]);
    run(*step.bodies[taken ? 0 : 1], in.all(1), nullptr, results);
    copy_results(results);
  }

  void while_loop() {
    std::vector<Bound> values = in.all();
    for (;;) {
      stop_if_asked();
      Bound go_on;
      run(*step.bodies[0], values, nullptr, {&go_on, 1});
      if (!*reinterpret_cast<const bool*>(data_of(go_on))) break;
      run(*step.bodies[1], values, nullptr, results);
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
      run(*step.bodies[0], inputs, nullptr, results);
      for (size_t i = carries; i < results.size(); ++i) {
        int64_t bytes = step.out[i]->bytes() / length;
        std::memcpy(static_cast<char*>(result(i)) + bytes * at, data_of(results[i]),
                    static_cast<size_t>(bytes));
      }
      for (size_t i = 0; i < carries; ++i) inputs[i] = std::move(results[i]);
    }
    copy_results({inputs.data(), carries});
  }
};

}  // namespace

void run_control(const ControlStep& step, void* const* buffers) {
  ControlRun run{step, buffers};
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
