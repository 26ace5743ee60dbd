#include "backend/cuda/plan_state.h"

#include <algorithm>
#include <cstring>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cuda_library.h"
#include "backend/cuda/own_kernels.h"
#include "base/error.h"
#include "runtime/device.h"
#include "runtime/scalar_bits.h"

namespace tn::cuda {

PlanState::PlanState(Gpu& gpu, const PlacedPlan& placed)
    : gpu_(gpu), device_(placed.device), plan_(placed.plan) {
  gpu_.enter();
  for (const Step& step : plan_->steps) {
    first_item_.push_back(items_.size());
    bool before = device_only_;
    device_only_ = true;
    for_each_part(std::span(&step, 1), [&](const Step& part) { add(part); });
    is_item_.push_back(device_only_);
    device_only_ = device_only_ && before;
  }
  first_item_.push_back(items_.size());
  now_.resize(slots_);
  if (device_only_) find_order();
}

PlanState::~PlanState() {
  if (!gpu_.is_own_process()) return;
  for (Made& made : made_) destroy(made);
}

/// Where the buffers of the kernel begin: behind the operands and the result of a call.
static size_t first_of_kernel(const Step& step) {
  return step.library() ? step.library()->in.size() + 1 : 0;
}

void PlanState::add(const Step& step) {
  Item item{.step = &step, .first = slots_};
  if (plan_->target.kind != DeviceKind::cuda) {  // of a file without code for GPUs
    device_only_ = false;
    return;
  }
  const KernelStep* kernel = step.kernel();
  item.is_call = step.library();
  if ((!item.is_call && !kernel) || (kernel && !kernel->code)) {  // the host runs it
    device_only_ = false;
    return;
  }
  if (item.is_call) item.count = item.addresses = step.buffers.size();
  if (item.is_call && kernel) item.tail = tail_of(step), item.program = tail_program_of(step);
  if (kernel) {
    item.kernel = &cuda_kernel_of(*kernel->code);
    if (item.kernel->promotion) item.kept = item.kernel->promotion->compiled();
    if (item.kept) item.kernel = item.kept.get();
    item.functions = functions_of(gpu_, *item.kernel);
    for (const Entry& entry : item.kernel->entries) item.count += entry.params.size();
    item.room = room_bytes_;
    room_bytes_ += (item.kernel->room_bytes + 255) / 256 * 256;
  }
  slots_ += item.count;
  items_.push_back(std::move(item));
}

bool PlanState::is_outdated() const {
  return std::ranges::any_of(items_, [](const Item& item) {
    return item.kernel && item.kernel->promotion && item.kernel->promotion->is_ready();
  });
}

void PlanState::count_run() const {
  for (size_t number = 0; number < is_item_.size(); ++number) {
    if (!is_item_[number]) continue;
    for (size_t i = first_item_[number]; i < first_item_[number + 1]; ++i)
      if (const CudaKernel* kernel = items_[i].kernel; kernel && kernel->promotion)
        kernel->promotion->ran();
  }
}

void PlanState::fill(const Item& item, const RunValues& values, uint64_t* slots) const {
  const Step& step = *item.step;
  size_t own = first_of_kernel(step);
  auto address = [&](size_t place) {
    auto at = values.address[static_cast<size_t>(step.buffers[place])];
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(at));
  };
  for (size_t i = 0; i < item.addresses; ++i) *slots++ = address(i);
  if (!item.kernel) return;
  auto number = [&](const Param& param) {
    int32_t n = step.scalars[static_cast<size_t>(param.index)];
    Scalar value = n >= 0 ? values.scalars[n] : Scalar(values.scalars[~n].imag);
    uint64_t bits = 0;
    std::memcpy(&bits, element_bits(value, param.type).data(), sizeof bits);
    return bits;
  };
  for (const Entry& entry : item.kernel->entries)
    for (const Param& param : entry.params) {
      switch (param.kind) {
        case Param::Kind::buffer:
          *slots++ = address(own + static_cast<size_t>(param.index));
          break;
        case Param::Kind::scalar:
          *slots++ = number(param);
          break;
        case Param::Kind::value:
          *slots++ = static_cast<uint64_t>(param.value);
          break;
        case Param::Kind::room:
          *slots++ = values.room + static_cast<uint64_t>(item.room + param.value);
          break;
      }
    }
}

void PlanState::fill(const RunValues& values, std::vector<uint64_t>& slots) const {
  for (const Item& item : items_) fill(item, values, slots.data() + item.first);
}

namespace {

bool is_empty(const Entry& entry) { return entry.blocks == 0; }

/// What the driver takes for one entry; `params` point to the slots.
KernelNode node_of(const Entry& entry, Function function, const uint64_t* slots,
                   std::vector<void*>& params) {
  params.clear();
  size_t count = entry.is_packed ? 1 : entry.params.size();
  for (size_t i = 0; i < count; ++i) params.push_back(const_cast<uint64_t*>(slots + i));
  KernelNode node;
  node.function = function;
  node.grid[0] = static_cast<unsigned>(entry.blocks);
  node.block[0] = static_cast<unsigned>(entry.threads);
  node.shared_bytes = static_cast<unsigned>(entry.shared_bytes);
  node.params = params.data();
  return node;
}

const void* attr_data(const LibraryStep& step) { return step.attrs ? step.attrs->data : nullptr; }

}  // namespace

void PlanState::launch(const Item& item, const uint64_t* slots, Stream stream) const {
  if (item.is_call && call(item, slots, stream)) return;
  slots += item.addresses;
  std::vector<void*> params;
  for (size_t e = 0; e < item.functions.size(); ++e) {
    const Entry& entry = item.kernel->entries[e];
    KernelNode n = node_of(entry, item.functions[e], slots, params);
    slots += entry.params.size();
    if (is_empty(entry)) continue;
    Result result = gpu_.driver.cuLaunchKernel(n.function, n.grid[0], n.grid[1], n.grid[2],
                                               n.block[0], n.block[1], n.block[2], n.shared_bytes,
                                               stream, n.params, nullptr);
    if (result != kSuccess)
      throw_internal(format("cuda:{}: {} ({}) cannot be launched: {}", gpu_.index, item.step->name,
                            entry.name, text_of(gpu_.driver, result)));
  }
}

bool PlanState::call(const Item& item, const uint64_t* slots, Stream stream,
                     std::vector<OwnKernel>* wanted) const {
  const LibraryStep& step = *item.step->library();
  std::vector<void*> buffers;
  for (size_t i = 0; i < item.addresses; ++i) buffers.push_back(reinterpret_cast<void*>(slots[i]));
  struct Place {
    CallPlace before;
    ~Place() { call_place = before; }
  } place{std::exchange(call_place, CallPlace{&gpu_, stream, plan_->products})};
  call_place.wanted = wanted;
  size_t operands = step.in.size();
  if (step.at.empty()) {
    step.kernel->run({attr_data(step), step.in, step.out, buffers.data(), buffers.data() + operands,
                      step.room.empty() ? nullptr : buffers[static_cast<size_t>(step.room[0].at)]});
    return false;
  }
  if (const auto& tail = item.tail) {
    size_t bias = operands + 1 + static_cast<size_t>(std::max(tail->bias, 0));
    call_place.tail = {tail->activation, tail->bias < 0 ? nullptr : buffers[bias]};
  }
  if (item.program) call_place.program = item.program->at(buffers.data());
  step.kernel->tiled->run(
      {attr_data(step), step.in, step.out, step.at, buffers.data(), buffers[operands]});
  return call_place.has_done_tail;
}

void PlanState::prepare(const RunValues& values) {
  if (is_prepared_.load(std::memory_order_acquire)) return;
  gpu_.require_own_process();
  gpu_.enter();
  std::vector<uint64_t> slots(slots_);
  fill(values, slots);
  std::vector<OwnKernel> wanted;
  for (const Item& item : items_)
    if (item.is_call) call(item, slots.data() + item.first, nullptr, &wanted);
  make_own_code(wanted, architecture_of(gpu_.target));
  is_prepared_.store(true, std::memory_order_release);
}

void PlanState::submit_step(size_t number, const RunValues& values, Stream stream) {
  for (size_t i = first_item_[number]; i < first_item_[number + 1]; ++i) {
    const Item& item = items_[i];
    fill(item, values, now_.data() + item.first);
    launch(item, now_.data() + item.first, stream);
  }
}

void PlanState::submit(const RunValues& values, Stream stream) {
  if (items_.empty()) return;
  fill(values, now_);
  // Most plans of immediate evaluation run once. After that even a graph of one node, with new
  // parameters each time, costs the host less than half as much as a launch.
  if (runs_++ == 0) {
    for (const Item& item : items_) launch(item, now_.data() + item.first, stream);
    return;
  }
  Made& made = graph_for_now();
  made.used = runs_;
  ++counts_.launched;
  check(gpu_.driver, gpu_.driver.cuGraphLaunch(made.exec, stream), "cuGraphLaunch");
}

/// One with the parameters of this run: a graph that has them, one that is changed, or a new one.
PlanState::Made& PlanState::graph_for_now() {
  auto known = std::ranges::find(made_, now_, &Made::slots);
  if (known != made_.end() && known->exec) return *known;
  known =
      std::ranges::min_element(made_, {}, [&](const Made& made) { return changed_items(made); });
  bool far = known == made_.end() || changed_items(*known) > 1;
  if (far && made_.size() == kMostGraphs) known = std::ranges::min_element(made_, {}, &Made::used);
  if (far && made_.size() < kMostGraphs) {
    Made made;
    build(made);
    return made_.emplace_back(std::move(made));
  }
  if (!update(*known)) build(*known);
  return *known;
}

/// More than there are where a change has failed half-way.
size_t PlanState::changed_items(const Made& made) const {
  if (made.slots.size() != slots_) return items_.size() + 1;
  return static_cast<size_t>(std::ranges::count_if(items_, [&](const Item& item) {
    auto at = [&](const std::vector<uint64_t>& slots) {
      return std::span(slots).subspan(item.first, item.count);
    };
    return !std::ranges::equal(at(made.slots), at(now_));
  }));
}

/// A library call as a graph of its own.
Graph PlanState::captured(const Item& item, const uint64_t* slots, bool& has_done_tail) const {
  const Driver& d = gpu_.driver;
  check(d, d.cuStreamBeginCapture_v2(gpu_.capturing, kCaptureRelaxed), "cuStreamBeginCapture");
  Graph made = nullptr;
  try {
    has_done_tail = call(item, slots, gpu_.capturing);
  } catch (...) {
    d.cuStreamEndCapture(gpu_.capturing, &made);
    if (made) d.cuGraphDestroy(made);
    throw;
  }
  check(d, d.cuStreamEndCapture(gpu_.capturing, &made), "cuStreamEndCapture");
  return made;
}

/// A new one for the parameters of this run, in place of what there is.
void PlanState::build(Made& made) {
  destroy(made);
  try {
    add_nodes(made);
    const Driver& d = gpu_.driver;
    check(d, d.cuGraphInstantiateWithFlags(&made.exec, made.graph, 0), "cuGraphInstantiate");
  } catch (...) {
    destroy(made);
    throw;
  }
  made.slots = now_;
  ++counts_.built;
}

void PlanState::add_nodes(Made& made) {
  const Driver& d = gpu_.driver;
  check(d, d.cuGraphCreate(&made.graph, 0), "cuGraphCreate");
  size_t roots =
      static_cast<size_t>(std::ranges::count_if(items_, &std::vector<size_t>::empty, &Item::after));
  GraphNode root = nullptr;  // several roots cost the host as much as launches
  if (roots > 1)
    check(d, d.cuGraphAddEmptyNode(&root, made.graph, nullptr, 0), "cuGraphAddEmptyNode");
  std::vector<GraphNode> last(items_.size());  // of each item
  std::vector<void*> params;
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    std::vector<GraphNode> after;
    for (size_t before : item.after)
      if (last[before]) after.push_back(last[before]);
    if (after.empty() && root) after.push_back(root);
    const uint64_t* slots = now_.data() + item.first;
    GraphNode node = nullptr;
    bool has_done_tail = false;
    if (item.is_call) {
      Graph child = captured(item, slots, has_done_tail);
      Result added =
          d.cuGraphAddChildGraphNode(&node, made.graph, after.data(), after.size(), child);
      d.cuGraphDestroy(child);
      check(d, added, "cuGraphAddChildGraphNode");
      made.nodes.push_back(node);
      after = {node};
      slots += item.addresses;
    }
    made.tails.push_back(has_done_tail);
    for (size_t e = 0; e < item.functions.size(); ++e) {
      const Entry& entry = item.kernel->entries[e];
      KernelNode n = node_of(entry, item.functions[e], slots, params);
      slots += entry.params.size();
      GraphNode of_entry = nullptr;
      if (!is_empty(entry) && !has_done_tail) {
        check(d, d.cuGraphAddKernelNode_v2(&of_entry, made.graph, after.data(), after.size(), &n),
              "cuGraphAddKernelNode");
        node = of_entry;
        after = {node};
      }
      made.nodes.push_back(of_entry);
    }
    if (!node) {  // nothing was launched: those after it wait for those before it
      check(d, d.cuGraphAddEmptyNode(&node, made.graph, after.data(), after.size()),
            "cuGraphAddEmptyNode");
    }
    last[i] = node;
  }
}

/// Sets what has changed; false where the graph must be built anew. What a failure leaves has no
/// parameters that are known.
bool PlanState::update(Made& made) {
  std::vector<uint64_t> before = std::exchange(made.slots, {});
  if (!made.exec || before.size() != slots_) return false;
  const Driver& d = gpu_.driver;
  std::vector<void*> params;
  size_t node = 0;
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    const uint64_t *old = before.data() + item.first, *now = now_.data() + item.first;
    if (item.is_call) {
      GraphNode own = made.nodes[node++];
      if (!std::equal(now, now + item.addresses, old)) {
        bool has_done_tail = false;
        Graph child = captured(item, now, has_done_tail);
        Result result = d.cuGraphExecChildGraphNodeSetParams(made.exec, own, child);
        d.cuGraphDestroy(child);
        if (result != kSuccess || has_done_tail != made.tails[i]) return false;
      }
      now += item.addresses, old += item.addresses;
    }
    for (size_t e = 0; e < item.functions.size(); ++e, ++node) {
      const Entry& entry = item.kernel->entries[e];
      size_t count = entry.params.size();
      bool same = std::equal(now, now + count, old);
      if (made.nodes[node] && !same) {
        KernelNode n = node_of(entry, item.functions[e], now, params);
        if (d.cuGraphExecKernelNodeSetParams_v2(made.exec, made.nodes[node], &n) != kSuccess)
          return false;
      }
      now += count, old += count;
    }
  }
  made.slots = now_;
  ++counts_.updated;
  return true;
}

void PlanState::destroy(Made& made) const {
  if (made.exec) gpu_.driver.cuGraphExecDestroy(made.exec);
  if (made.graph) gpu_.driver.cuGraphDestroy(made.graph);
  made = {};
}

std::shared_ptr<const PlacedPlan> PlanState::body(const ControlStep& step, size_t number) {
  const std::shared_ptr<const Plan>& plan = step.bodies[number];
  auto find = [&]() -> std::shared_ptr<const PlacedPlan> {
    for (const auto& [known, placed] : bodies_)
      if (known == plan.get()) return placed;
    return nullptr;
  };
  {
    std::lock_guard lock(bodies_mutex_);
    if (auto known = find()) return known;
  }
  // Without the lock: copies wait, and the user's handlers run meanwhile.
  std::vector<Bound> constants;
  for (const Bound& value : plan->constants)
    constants.push_back(value.is_absent() ? value : copy_to(device_, value, value.bytes()));
  for (const Bound& value : constants)
    if (!value.is_absent()) gpu_.join(value.buffer->ready);
  auto placed = std::make_shared<const PlacedPlan>(PlacedPlan{device_, plan, std::move(constants)});
  std::lock_guard lock(bodies_mutex_);
  if (auto known = find()) return known;
  return bodies_.emplace_back(plan.get(), std::move(placed)).second;
}

}  // namespace tn::cuda
