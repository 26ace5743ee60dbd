#include "runtime/plan.h"

#include <algorithm>

namespace tn {

void Plan::find_lifetimes() {
  std::vector<int> first(bytes.size(), -1), last(bytes.size(), -1);
  for (int i = 0; i < static_cast<int>(steps.size()); ++i)
    for (int32_t b : steps[static_cast<size_t>(i)].buffers) {
      if (b < first_own()) continue;
      size_t own = static_cast<size_t>(b - first_own());
      if (first[own] < 0) first[own] = i;
      last[own] = i;
    }
  std::vector<bool> kept(bytes.size());
  for (const Output& out : outputs)
    if (out.buffer >= first_own()) kept[static_cast<size_t>(out.buffer - first_own())] = true;
  for (size_t own = 0; own < bytes.size(); ++own) {
    if (first[own] < 0) continue;
    int32_t number = first_own() + static_cast<int32_t>(own);
    steps[static_cast<size_t>(first[own])].allocate.push_back(number);
    if (!kept[own]) steps[static_cast<size_t>(last[own])].release.push_back(number);
  }
}

namespace {

/// Scratch for one run: on the stack when small, which it nearly always is.
template <class T, size_t kFew>
struct Scratch {
  T few[kFew];
  std::vector<T> many;
  T* data;
  explicit Scratch(size_t n) : many(n > kFew ? n : 0), data(n > kFew ? many.data() : few) {}
};

void* address_of(const Bound& bound) {
  return static_cast<char*>(bound.buffer->data) + bound.offset;
}

}  // namespace

void run(const Plan& plan, std::span<const Bound> inputs, const Scalar* scalars,
         std::span<Bound> outputs) {
  size_t before = static_cast<size_t>(plan.first_own());  // of the plan's own buffers
  size_t count = before + plan.bytes.size();
  Scratch<void*, 24> address(count);
  Scratch<BufferRef, 8> own(plan.bytes.size());
  for (size_t i = 0; i < inputs.size(); ++i) address.data[i] = address_of(inputs[i]);
  for (size_t i = 0; i < plan.constants.size(); ++i)
    address.data[inputs.size() + i] = address_of(plan.constants[i]);
  for (const Step& step : plan.steps) {
    for (int32_t b : step.allocate) {
      size_t place = static_cast<size_t>(b) - before;
      own.data[place] = allocate(static_cast<size_t>(plan.bytes[place]));
      address.data[b] = own.data[place]->data;
    }
    Scratch<void*, 24> buffers(step.buffers.size());
    for (size_t i = 0; i < step.buffers.size(); ++i)
      buffers.data[i] = address.data[step.buffers[i]];
    Scratch<Scalar, 8> given(step.scalars.size());
    for (size_t i = 0; i < step.scalars.size(); ++i) {
      int32_t n = step.scalars[i];
      given.data[i] = n >= 0 ? scalars[n] : Scalar(scalars[~n].imag);
    }
    step.run(step.data.get(), {buffers.data, given.data});
    for (int32_t b : step.release) own.data[static_cast<size_t>(b) - before].reset();
  }
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const Plan::Output& out = plan.outputs[i];
    size_t b = static_cast<size_t>(out.buffer);
    if (b < inputs.size())
      outputs[i] = {inputs[b].buffer, inputs[b].offset + out.offset};
    else if (b < before)
      outputs[i] = {plan.constants[b - inputs.size()].buffer,
                    plan.constants[b - inputs.size()].offset + out.offset};
    else
      outputs[i] = {own.data[b - before], out.offset};
  }
}

}  // namespace tn
