// Runs plans on the CPU.
#include <algorithm>
#include <optional>

#include "backend/cpu/kernel_code.h"
#include "backend/cpu/kernels/strided_copy.h"
#include "backend/cpu/run_control.h"
#include "backend/launcher.h"
#include "base/error.h"
#include "base/events.h"
#include "base/interrupt.h"
#include "base/stack_array.h"
#include "ir/named_calls.h"
#include "ir/place.h"
#include "loop/interpreter.h"
#include "ops/index_bounds.h"
#include "plan/run_places.h"
#include "plan/split_form.h"
#include "runtime/device.h"
#include "runtime/memory_blocks.h"
#include "runtime/memory_use.h"
#include "runtime/own_thread.h"
#include "tenon/distributed.h"

namespace tn {
namespace {

/// What a step is run with.
struct StepCall {
  void* const* buffers;       // in the step's order
  const Scalar* scalars;      // in the step's order
  bool bypass_cache = false;  // the pages of what it writes exist: see KernelFrame::bypass_cache
};

const void* attr_data(const LibraryStep& step) { return step.attrs ? step.attrs->data : nullptr; }

void launch(const KernelStep& step, const StepCall& call) {
  if (step.code)
    run(cpu::native_of(*step.code), call.buffers, call.scalars, call.bypass_cache);
  else
    loop::run(*step.program, call.buffers, call.scalars);
}

struct TiledRun {
  const LibraryStep& step;
  void* const* buffers;  // of what is done with the result
  const Scalar* scalars;
};

void work_on_tile(const void* data, const KernelTile& tile) {
  const TiledRun& r = *static_cast<const TiledRun*>(data);
  run_tile(cpu::native_of(*r.step.after.code), r.buffers, r.scalars, tile);
}

void launch_tiled(const LibraryStep& step, const StepCall& call) {
  size_t operands = step.in.size();
  TiledRun self{step, call.buffers + operands + 1, call.scalars};
  TiledCall tiled{attr_data(step),
                  step.in,
                  step.out,
                  step.at,
                  call.buffers,
                  call.buffers[operands],
                  step.packed ? step.packed.data() : nullptr};
  for (size_t i = 0; i < step.room.size(); ++i) {
    const LibraryStep::Room& piece = step.room[i];
    tiled.room.bytes[i] = piece.bytes;
    if (piece.bytes) tiled.room.at[i] = call.buffers[piece.at];
  }
  if (step.after.code) tiled.work = {work_on_tile, &self};
  step.kernel->tiled->run(tiled);
  if (step.after.program) loop::run(*step.after.program, self.buffers, self.scalars);
}

void launch(const LibraryStep& step, const StepCall& call) {
  if (!step.at.empty()) return launch_tiled(step, call);
  size_t own = step.in.size() + step.out.size();
  step.kernel->run(
      {attr_data(step), step.in, step.out, call.buffers, call.buffers + step.in.size()});
  if (step.after.kernel) launch(step.after, {call.buffers + own, call.scalars});
}

void launch(const ControlStep& step, const StepCall& call) { run_control(step, call.buffers); }

void launch(const CopyStep& step, const StepCall& call) {
  copy_strided(step.element_bytes, step.extents, step.strides,
               static_cast<const char*>(call.buffers[0]) + step.offset, call.buffers[1]);
}

void launch(const BundleStep& step, const StepCall& call) {
  NativeCall calls[BundleStep::kMost];
  void* const* buffers = call.buffers;
  const Scalar* scalars = call.scalars;
  for (size_t i = 0; i < step.parts.size(); ++i) {
    const Step& part = step.parts[i];
    calls[i] = {&cpu::native_of(*part.kernel()->code), buffers, scalars};
    buffers += part.buffers.size(), scalars += part.scalars.size();
  }
  run_together({calls, step.parts.size()}, call.bypass_cache);
}

void launch(const Step& step, const StepCall& call) {
  std::visit([&](const auto& what) { launch(what, call); }, step.what);
}

bool may_take(const Bound& given, int64_t bytes) {
  const Buffer& buffer = *given.buffer;
  return given.offset == 0 && given.buffer.unique() && !buffer.read_only &&
         buffer.bytes >= static_cast<size_t>(bytes);
}

[[noreturn, gnu::noinline]] void explain(const Plan& plan, const UserError& error) {
  if (error.fault() != Fault::memory || !plan.explain_memory) throw;
  throw UserError(Fault::memory, format("{}\n{}", error.what(), plan.explain_memory(plan)));
}

/// New pages are cheaper to write through the caches, so every large block must have been used.
bool pages_exist(const Plan& plan, const Step& step, const BufferRef* blocks) {
  return std::ranges::all_of(step.writes, [&](int32_t place) {
    int32_t own = step.buffers[static_cast<size_t>(place)] - plan.first_own();
    const Buffer& block = *blocks[plan.spots[static_cast<size_t>(own)].block];
    return block.recycled || block.bytes < kLargeBytes;
  });
}

struct Run {
  const Plan& plan;
  const BufferRef* blocks;
  const Scalar* scalars;

  void run(const Step& step, void* const* buffers) const {
    if (!has_watcher(EventKind::step)) return run_unwatched(step, buffers);
    Event event(EventKind::step, step.name, event_time());
    event.place = step.loc.place();
    run_unwatched(step, buffers);
    post_span(event);
  }

 private:
  void run_unwatched(const Step& step, void* const* buffers) const {
    StepCall call{buffers, nullptr};
    running_loc = step.loc;
    if (step.bypass_cache) call.bypass_cache = pages_exist(plan, step, blocks);
    if (step.scalars.empty()) return launch(step, call);
    StackArray<Scalar, 8> given(step.scalars.size());
    for (size_t i = 0; i < step.scalars.size(); ++i) {
      int32_t n = step.scalars[i];
      given[i] = n >= 0 ? scalars[n] : Scalar(scalars[~n].imag);
    }
    call.scalars = given.data();
    launch(step, call);
  }
};

/// "dot, softmax, sum": what was run, as far as it fits.
std::string names_of(const Plan& plan) {
  std::string names;
  for (const Step& step : plan.steps) {
    if (names.size() >= sizeof(Event::text)) break;
    names += (names.empty() ? "" : ", ") + step.name;
  }
  return names;
}

char* host_bytes(const Buffer& buffer) { return static_cast<char*>(host_address(buffer)); }

}  // namespace

void RunEvents::end() {
  Event event(EventKind::run, names_of(plan_), began_);
  event.value = plan_.steps.size();
  post_span(event);
  Event memory(EventKind::memory, "", event_time());
  memory.value = active_memory();
  post(memory);
}

void take_blocks(const Plan& plan, Device device, std::span<const Bound> inputs,
                 BufferRef* blocks) try {
  for (size_t i = 0; i < plan.blocks.size(); ++i) {
    const Plan::Block& block = plan.blocks[i];
    const Bound* given = block.input >= 0 ? &inputs[static_cast<size_t>(block.input)] : nullptr;
    // A number of the host may be donated to a plan of a device, which cannot use its memory.
    bool takes = given && given->buffer->device == device && may_take(*given, block.bytes);
    blocks[i] = takes ? given->buffer : allocate(static_cast<size_t>(block.bytes), device);
  }
} catch (const UserError& error) {
  explain(plan, error);
}

static void run_all(const RunMemory& memory, void* const* address, const Scalar* scalars,
                    bool* overwritten, size_t& s, const Step** at) {
  const Plan& plan = memory.plan;
  Run run{plan, memory.blocks, scalars};
  for (; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    if (at) *at = &step;
    if (s > 0 && s <= plan.first_overwrite) stop_if_asked();
    if (s == plan.first_overwrite && overwritten) *overwritten = true;
    StackArray<void*, 32> buffers(step.buffers.size());
    for (size_t i = 0; i < step.buffers.size(); ++i)
      buffers[i] = address[static_cast<size_t>(step.buffers[i])];
    run.run(step, buffers.data());
  }
}

/// Step `failed` has failed, or was not begun. Other workers may read the operands of what has been
/// started, and write its results. A wait that has begun has done away with its ticket.
static void abandon_started(const RunMemory& memory, void* const* address, size_t failed) {
  std::vector<const Step*> open;
  auto ticket = [](const Step* step) { return step->buffers.back(); };
  for (size_t s = 0; s <= failed; ++s) {
    const Step& step = memory.plan.steps[s];
    const LibraryStep* call = step.library();
    const SplitForm* form = call && split_form ? split_form(*call->op) : nullptr;
    if (form && call->kernel == &form->start && s < failed) open.push_back(&step);
    if (form && call->kernel == &form->wait && s < failed)
      std::erase_if(open, [&](const Step* start) { return ticket(start) == ticket(&step); });
  }
  for (const Step* step : open) {
    const LibraryStep& call = *step->library();
    std::vector<void*> at;
    for (int32_t b : step->buffers) at.push_back(address[static_cast<size_t>(b)]);
    split_form(*call.op)->abandon(
        {attr_data(call), call.in, call.out, at.data(), at.data() + call.in.size()});
  }
}

void run_steps(const RunMemory& memory, void* const* address, const Scalar* scalars,
               bool* overwritten, const Step** at) {
  size_t s = 0;
  try {
    run_all(memory, address, scalars, overwritten, s, at);
  } catch (...) {
    abandon_started(memory, address, s);
    throw;
  }
}

void run_step(const Step& step, void* const* buffers, const Scalar* scalars) {
  launch(step, {buffers, scalars});
}

void throw_with_place(const Plan& plan, const Step& step, Loc inside) {
  Loc loc = place_of(plan, step, inside);
  struct At {  // the call that evaluates is not the place of the op
    Loc before;
    ~At() { current_loc = before; }
  } at_op{std::exchange(current_loc, loc)};
  try {
    throw;
  } catch (const ops::OutOfBounds& error) {
    try {
      fail(Fault::index, "{}: {} {}", step.name, error.index, error.fact);
    } catch (const UserError& placed) {
      throw RecordedError(placed.fault(), placed.what());
    }
  } catch (const UserError& error) {
    throw RecordedError(error.fault(), error.what());
  } catch (const WorkerFailed& error) {
    std::string at = to_text(loc);
    throw WorkerFailed(at.empty() ? error.what() : format("{}\n  at {}", error.what(), at));
  }
}

void give_results(const RunMemory& memory, std::span<Bound> outputs) {
  const Plan& plan = memory.plan;
  std::span<const Bound> inputs = memory.inputs;
  auto before = static_cast<size_t>(plan.first_own());  // of the plan's own buffers
  auto own = [&](size_t i) {
    auto b = static_cast<size_t>(plan.outputs[i].buffer);
    return b < before ? nullptr : &plan.spots[b - before];
  };
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const Plan::Output& out = plan.outputs[i];
    Bound& to = outputs[i];
    if (const Spot* spot = own(i)) {
      to = {std::move(memory.blocks[spot->block]), spot->offset + out.offset};
      for (size_t j = 0; !to.buffer; ++j)  // an earlier result lies there too
        if (const Spot* other = own(j); other && other->block == spot->block)
          to.buffer = outputs[j].buffer;
      continue;
    }
    auto b = static_cast<size_t>(out.buffer);
    const Bound& from = b < inputs.size() ? inputs[b] : memory.constants[b - inputs.size()];
    to = {from.buffer, from.offset + out.offset};
  }
}

void run(const Plan& plan, std::span<const Bound> inputs, const Scalar* scalars,
         std::span<Bound> outputs, bool* overwritten) {
  if (plan.parts) return run_parts(plan, inputs, scalars, outputs, overwritten);
  StackArray<BufferRef, 8> blocks(plan.blocks.size());
  take_blocks(plan, {}, inputs, blocks.data());
  RunEvents events(plan);
  std::optional<OnOwnThread> alone;
  if (plan.one_thread) alone.emplace();
  RunMemory memory{plan, inputs, plan.constants, blocks.data()};
  StackArray<void*, 32> address(memory.size());
  memory.find(address.data(), host_bytes);
  run_steps(memory, address.data(), scalars, overwritten);
  give_results(memory, outputs);
}

void run(const std::shared_ptr<const PlacedPlan>& placed, std::span<const Bound> inputs,
         const Scalar* scalars, std::span<Bound> outputs, bool* overwritten) {
  if (placed->device.is_host()) return run(*placed->plan, inputs, scalars, outputs, overwritten);
  usable_runtime(placed->device).run(placed, inputs, scalars, outputs, overwritten);
}

}  // namespace tn
