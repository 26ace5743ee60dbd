#include "mesh/mesh_runtime.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "backend/launcher.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "ir/place.h"
#include "mesh/moving.h"
#include "mesh/run_origins.h"
#include "ops/op_decls.h"
#include "ops/random_state.h"
#include "workers/world.h"

namespace tn::mesh {
namespace {

constexpr size_t kMostMeshes = 255;

/// What each worker here is given, and what it makes.
struct WorkerRun {
  std::vector<Bound> in, out;
  bool overwritten = false, failed = false;
  const Step* at = nullptr;  // the step that runs, or has failed
  Loc loc = {};              // of the failure: inside control flow, that of the inner step
};

/// The inputs that a run takes the memory of. Until it writes there they can be given back.
class Taken {
 public:
  explicit Taken(std::vector<WorkerRun>& runs) : runs_(runs) {}
  ~Taken() {
    if (done || values_.empty()) return;
    bool lost = false;
    for (const WorkerRun& run : runs_) lost |= run.overwritten;
    for (auto& [value, input] : values_) {
      value->is_lost = lost;
      for (size_t w = 0; w < runs_.size() && !lost; ++w)
        value->blocks.push_back(runs_[w].in[input]);
    }
  }
  Taken(const Taken&) = delete;
  void add(MeshValue& value, size_t input) {
    values_.emplace_back(&value, input);
    value.blocks.clear();
  }
  bool empty() const { return values_.empty(); }
  bool done = false;

 private:
  std::vector<WorkerRun>& runs_;
  std::vector<std::pair<MeshValue*, size_t>> values_;
};

/// The stop points of a run that has taken values: an interrupt would leave them lost, so the run
/// goes on for a while when the user wants to stop. It is nearly always over by then.
class Patience {
 public:
  explicit Patience(bool wanted) : before_(own_stop_point), outer_(current) {
    if (wanted) own_stop_point = stop_point, current = this;
  }
  ~Patience() { own_stop_point = before_, current = outer_; }
  Patience(const Patience&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kPatience = std::chrono::seconds(3);
  static void stop_point() {
    Patience* own = current;
    if (Clock::now() < own->end_) return;
    own_stop_point = own->before_, current = own->outer_;
    struct Again {
      Patience* patience;
      ~Again() { own_stop_point = stop_point, current = patience; }
    } again{own};
    stop_if_asked();
  }

  void (*before_)();
  Patience* outer_;
  Clock::time_point end_ = Clock::now() + kPatience;
  static thread_local Patience* current;
};
thread_local Patience* Patience::current = nullptr;

/// With the lines of the program, which this thread may look up.
[[noreturn]] void fail_not_met(const workers::NotMet& error, const MeshWorld& world) {
  std::string text = error.text([](uint64_t loc) {
    std::string line = to_text(Loc{loc});
    size_t folder = line.rfind('/', line.find(", in "));
    return folder == line.npos ? line : line.substr(folder + 1);
  });
  if (world.mesh().is_part()) text += format("; they are workers of {}", world.name());
  if (std::string at = to_text(Loc{error.loc()}); !at.empty()) text += format("\n  at {}", at);
  log_error_site(ErrorSite::here());
  throw WorkerFailed(text +
                     "\n  hint: all workers along an axis must make the same collectives: the "
                     "predicate of a cond or while_loop around one must be equal on all of them");
}

char* host_bytes(const Buffer& buffer) { return static_cast<char*>(host_address(buffer)); }

/// The plan of a worker, on this thread. The user's line of an error is for the caller to add: it
/// takes the lock of a host language, which the thread of the caller may hold.
void run_worker(const Plan& plan, const Scalar* scalars, WorkerRun& run) {
  std::vector<BufferRef> blocks(plan.blocks.size());
  try {
    take_blocks(plan, {}, run.in, blocks.data());
    RunMemory memory{plan, run.in, plan.constants, blocks.data()};
    std::vector<void*> address(memory.size());
    memory.find(address.data(), host_bytes);
    run_steps(memory, address.data(), scalars, &run.overwritten, &run.at);
    run.out.resize(plan.outputs.size());
    give_results(memory, run.out);
  } catch (const Stopped&) {
    throw;
  } catch (const Error&) {
    run.failed = true, run.loc = running_loc;
    throw;
  }
}

/// A plan that knows of no mesh, of a file: the host runs it.
void run_whole(const PlacedPlan& placed, std::span<const Bound> inputs, const Scalar* scalars,
               std::span<Bound> outputs) {
  std::vector<Bound> in;
  for (const Bound& given : inputs) in.push_back(copy_to({}, given, given.bytes()));
  tn::run(*placed.plan, in, scalars, outputs);
  for (Bound& made : outputs) made = copy_to(placed.device, made, made.bytes());
}

}  // namespace

MeshRuntime& runtime() {
  static auto& only = []() -> MeshRuntime& {
    auto& made = *new MeshRuntime;
    register_devices(made);
    return made;
  }();
  return only;
}

uint8_t kind_number() {
  static const uint8_t number = [] {
    uint8_t kind = 1;
    while (&runtime_of({kind, 0}) != &runtime()) ++kind;
    return kind;
  }();
  return number;
}

int MeshRuntime::count() const {
  std::lock_guard lock(mutex_);
  return static_cast<int>(worlds_.size());
}

std::string MeshRuntime::name(Device device) const { return world(device).name(); }

bool MeshRuntime::owns(Device device) const {
  return !device.is_host() && &runtime_of(device) == this;
}

Target MeshRuntime::target(Device) const { return host_target(); }

MeshWorld& MeshRuntime::world(Device device) const {
  std::lock_guard lock(mutex_);
  return *worlds_[device.index];
}

/// Random numbers of a mesh are those of the whole tensor, so its processes need one state.
static void agree_on_random_state() {
  ops::agree_on_state([](std::span<uint32_t, 2> words) {
    workers::group(workers::kWorld)
        .run({.kind = workers::Collective::broadcast,
              .element = Element::u32,
              .count = 2,
              .in = words.data(),
              .out = words.data()});
  });
}

int MeshRuntime::number_of(const Mesh& mesh) {
  MeshWorld* whole = nullptr;
  if (mesh.is_part()) {
    auto number = static_cast<uint8_t>(number_of(mesh.whole()));
    whole = &world({kind_number(), number});
  }
  std::unique_lock lock(mutex_);
  for (size_t i = 0; i < worlds_.size(); ++i)
    if (worlds_[i]->mesh() == mesh) return static_cast<int>(i);
  if (worlds_.size() == kMostMeshes) fail("mesh: a program has at most {} meshes", kMostMeshes);
  std::string name = whole ? format("{}.at({})", whole->name(), coordinates_text(mesh))
                           : format("{}:{}", kind(), worlds_.size());
  worlds_.push_back(std::make_unique<MeshWorld>(mesh, std::move(name), rank_of_process(), whole));
  auto number = static_cast<int>(worlds_.size()) - 1;
  lock.unlock();
  if (rank_of_process() >= 0 && !whole) agree_on_random_state();
  return number;
}

BufferRef MeshRuntime::allocate(Device device, size_t bytes) {
  MeshValue value;
  if (bytes == 0)  // nobody will write it
    value.division = world(device).whole(), value.blocks = {Bound{tn::allocate(0), 0}};
  return make_buffer(device, bytes, std::move(value));
}

void MeshRuntime::copy(const Bound& from, const Bound& to, size_t bytes) {
  if (from.buffer->device.is_host()) {  // all workers read the same memory
    MeshValue& value = value_in(*to.buffer);
    MeshWorld& there = world(to.buffer->device);
    value.division = there.whole();
    if (there.here() > 0) value.blocks = {from};
    if (!there.is_threads())
      value.origin = origin_of(host_bytes(*from.buffer) + from.offset, bytes);
    return;
  }
  const MeshValue& value = value_in(*from.buffer);
  MeshWorld& there = world(from.buffer->device);
  if (!to.buffer->device.is_host()) {
    wait(*from.buffer);
    value_in(*to.buffer) = moved(there, value, from.offset, bytes, world(to.buffer->device));
    return;
  }
  if (there.here() == 0) fail_not_here("read", there);
  char* target = host_bytes(*to.buffer) + to.offset;
  if (value.division->layout.is_whole()) {
    const Bound& block = value.block(0);
    if (bytes) std::memcpy(target, host_bytes(*block.buffer) + block.offset + from.offset, bytes);
    return;
  }
  if (!there.is_threads())
    fail(Hint{"x.local is the block of this worker; tn.distributed.gather(x) joins all blocks, if "
              "every worker calls it"},
         "read: the tensor is divided among processes: {}",
         to_text(there.mesh(), value.division->layout, value.shape.rank()));
  invariant(from.offset == 0, "mesh: a view into a divided tensor");
  for (int w = 0; w < there.here(); ++w) {
    bool is_replica = false;  // another worker holds the same
    for (int t = 0; t < there.mesh().count(); ++t)
      is_replica |= !value.division->layout[t] && coordinate(there.mesh(), w, t) > 0;
    if (is_replica) continue;
    const Bound& block = value.block(w);
    const char* source = host_bytes(*block.buffer) + block.offset;
    for_each_run(there.mesh(), value, w, [&](int64_t whole, int64_t own, int64_t count) {
      std::memcpy(target + whole, source + own, static_cast<size_t>(count));
    });
  }
}

void MeshRuntime::wait(const Buffer& buffer) {
  if (value_in(buffer).is_lost)
    fail(Hint{"compute it again; tensors that the program still references are never overwritten"},
         "eval: an evaluation that failed has overwritten an input");
}

bool MeshRuntime::copies_directly(Device from, Device to) const {
  return owns(from) && owns(to) && world(from).mesh().whole() == world(to).mesh().whole();
}

bool MeshRuntime::is_readable(const Buffer& buffer) const {
  const MeshWorld& there = world(buffer.device);
  return there.is_threads() || (there.here() > 0 && value_in(buffer).division->layout.is_whole());
}

bool MeshRuntime::works_beside_others(Device device) const {
  return world(device).mesh().is_part();
}

bool MeshRuntime::claims(const OpDef& op, Types) const {
  return &op != &ops::print && &op != &ops::check;
}

std::shared_ptr<const DevicePart> MeshRuntime::part(Device device, const Graph& graph,
                                                    const CompileOptions& options) {
  return std::make_shared<MeshPart>(world(device), graph, options);
}

/// The plan of a run with these inputs. It fails if the run is refused.
std::shared_ptr<const WorkerPlan> MeshRuntime::plan_of(const PlacedPlan& placed,
                                                       std::span<const Bound> inputs) {
  const auto& part = static_cast<const MeshPart&>(*placed.plan->unplanned);
  std::vector<const Division*> divisions;
  auto see = [&](const Bound& given) {
    if (given.buffer->device.is_host()) return divisions.push_back(part.world().whole());
    wait(*given.buffer);
    divisions.push_back(value_in(*given.buffer).division);
  };
  for (const Bound& given : inputs) see(given);
  for (const Bound& given : placed.constants) see(given);
  return part.plan_to_run(divisions);
}

/// A result without its blocks.
static MeshValue result(const MeshPart& part, const WorkerPlan& plan, size_t i) {
  TypeRef type = part.output(i);
  return {plan.out[i], type->shape, static_cast<int64_t>(size_of(type->dtype)), {}};
}

void MeshRuntime::plan(const PlacedPlan& placed, std::span<const Bound> inputs,
                       std::span<Bound> outputs) {
  if (!placed.plan->unplanned) {  // the host runs it, and results are whole
    for (Bound& out : outputs) out = outline(placed.device, out);
    return;
  }
  const auto& part = static_cast<const MeshPart&>(*placed.plan->unplanned);
  std::shared_ptr<const WorkerPlan> made = plan_of(placed, inputs);
  for (size_t i = 0; i < outputs.size(); ++i)
    outputs[i] = {make_buffer(placed.device, 0, result(part, *made, i)), 0};
}

Bound MeshRuntime::outline(Device device, const Bound& value) const {
  MeshValue made;
  MeshWorld& there = world(device);
  Device from = value.buffer->device;
  bool is_move = copies_directly(from, device);
  made.division = is_move
                      ? moved_division(world(from).mesh(), *value_in(*value.buffer).division, there)
                      : there.whole();
  return {make_buffer(device, 0, std::move(made)), 0};
}

void MeshRuntime::run(const std::shared_ptr<const PlacedPlan>& placed,
                      std::span<const Bound> inputs, const Scalar* scalars,
                      std::span<Bound> outputs, bool*) {
  const Plan& outer = *placed->plan;
  if (!outer.unplanned) return run_whole(*placed, inputs, scalars, outputs);
  const auto& part = static_cast<const MeshPart&>(*outer.unplanned);
  MeshWorld& there = part.world();
  std::shared_ptr<const WorkerPlan> plan = plan_of(*placed, inputs);

  std::vector<WorkerRun> runs(static_cast<size_t>(there.here()));
  Taken taken(runs);
  auto give = [&](const Bound& given, size_t input, bool donated) {
    bool is_host = given.buffer->device.is_host();
    for (size_t w = 0; w < runs.size(); ++w) {
      Bound block = is_host ? given : value_in(*given.buffer).block(static_cast<int>(w));
      if (!is_host) block.offset += given.offset;  // a view of what is whole
      runs[w].in.push_back(std::move(block));
    }
    if (!is_host && donated && given.buffer.unique()) taken.add(value_in(*given.buffer), input);
  };
  for (size_t i = 0; i < inputs.size(); ++i)
    give(inputs[i], i, i < outer.donated.size() && outer.donated[i]);
  for (const Bound& given : placed->constants) give(given, 0, false);
  OriginsOfRun origins(part, *plan, *placed, inputs, scalars);
  Patience patience(!taken.empty());
  totals.runs.fetch_add(1, std::memory_order_relaxed);
  try {
    there.run(origins.of_calls(), [&](int w) {
      auto worker = static_cast<int>(number_in_whole(there.mesh(), there.first() + w));
      WorkerRunEvents events(worker, plan->ops, plan->result_bytes, plan->compiled);
      run_worker(*plan->made.plan, scalars, runs[static_cast<size_t>(w)]);
    });
  } catch (const workers::NotMet& error) {
    fail_not_met(error, there);
  } catch (const Error&) {
    auto failed = std::ranges::find(runs, true, &WorkerRun::failed);
    if (failed != runs.end() && failed->at)
      throw_with_place(*plan->made.plan, *failed->at, failed->loc);
    throw;
  }
  taken.done = true;
  for (size_t i = 0; i < outputs.size(); ++i) {
    MeshValue value = result(part, *plan, i);
    for (WorkerRun& run : runs) value.blocks.push_back(std::move(run.out[i]));
    value.origin = origins.of_result(i);
    auto bytes = static_cast<size_t>(part.output(i)->bytes());
    outputs[i] = {make_buffer(placed->device, bytes, std::move(value)), 0};
  }
}

}  // namespace tn::mesh
