#include "eval/eval.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <optional>

#include "base/at_fork.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "compiler/set_maker.h"
#include "eval/bad_values.h"
#include "eval/flush_parts.h"
#include "eval/hot_paths.h"
#include "eval/index_checks.h"
#include "eval/key.h"
#include "eval/modes.h"
#include "eval/plan_cache.h"
#include "eval/region_layout.h"
#include "ir/interned.h"
#include "ir/named_calls.h"
#include "ir/op_table.h"
#include "ir/trace.h"
#include "ir/watch.h"
#include "mesh/mesh_defaults.h"
#include "observe/instruction_log.h"
#include "observe/op_events.h"
#include "plan/run_places.h"
#include "runtime/device.h"
#include "runtime/own_thread.h"

namespace tn {

HostLock host_lock;

namespace {

class Loan;

/// One evaluation. Its nodes are `running` until it ends, so that no other thread computes them
/// too.
struct Flush {
  // Scratch memory, reused by the next flush.
  Walk walk;
  std::vector<Edge> outputs;  // each holds a reference
  std::vector<Node*> dead;    // operands without a further use
  FlushKey key;
  std::vector<Bound> inputs, results;
  std::vector<Scalar> scalars;
  std::shared_ptr<HotPath> hot;                 // of the plan, if hot paths are on
  PlacesRef marked;                             // of the plan: see CachedPlan
  std::vector<bool> dying;                      // by input: see find_dying
  Loan* loan = nullptr;                         // of the plan that runs
  std::optional<HostUnlocked>* host = nullptr;  // empty while it keeps the host's lock

  void flush(std::span<const Tensor> wanted);
  void compute(std::span<const Tensor> wanted, const SignalRegion* region);
  void mark(std::span<const Tensor> wanted);
  void mark_idle(std::span<const Tensor> wanted, std::unique_lock<std::mutex>& lock);
  void choose_outputs(std::span<const Tensor> wanted);
  const CachedPlanRef& cached_plan(std::span<const Tensor> wanted, const SignalRegion* region);
  HotPath::Choice hot_plan(CachedPlan& cached, const HotPathPolicy& policy,
                           const SignalRegion* region);
  void leave_host();
  void find_dying();
  void run_plan(const HotPath::Choice& chosen);
  void run_with_places(const Plan& plan, bool* overwritten);
  void bind();
  Graph captured(std::span<const Tensor> wanted);
  void begin();
  void end();
  void publish();
  void clean();
};

/// State shared by all flushes, guarded by walk_mutex(). The lock is held to collect nodes and to
/// publish values; plans are compiled and run without it, concurrently.
struct Flushes {
  PlanCache cache;
  FlushStats stats;
  std::vector<Flush*> running;
  // Threads that need values of other flushes wait here until one ends.
  PerProcess<std::condition_variable> ended;
  std::atomic<int> waiting = 0;
};

thread_local Flush* own_flush = nullptr;  // of this thread, while it runs
std::atomic<Flush*> spare_flush = nullptr;

void end_in_child();

Flushes& flushes() {
  static auto& only = *new Flushes;
  return only;
}

/// User code must not run inside a flush, because it may read a value.
void stop_point_of_flush() {
  if (stop_wanted && stop_wanted->load(std::memory_order_relaxed)) throw Stopped();
  bool asks = !stop_wanted && host_signals.is_due && host_signals.is_due();
  if (asks && host_signals.is_stopped()) throw Stopped();
}

/// Parameters of traces have no values; those with memory are what a Loan left behind.
const Node* find_unknown(const Walk& walk) {
  auto at = std::ranges::find(walk.leaves, &param_leaf, &Node::op);
  return at == walk.leaves.end() ? nullptr : *at;
}

[[noreturn]] void fail_unknown(const Node& leaf, Loc loc) {
  if (leaf.slots()[0].data.load(std::memory_order_acquire))
    fail(Hint{"compute it again; tensors that the program still references are never overwritten"},
         "eval: an evaluation that failed or was interrupted has overwritten an input: {}",
         *leaf.slots()[0].type);
  fail_unknown_value(loc);
}

/// Pending chains are bounded: a long one is evaluated piece by piece. If that fails, the
/// evaluation of the value reports it; an interrupt of the user is handled here, and drops the
/// node.
void flush_chain(Node* node) {
  if (own_flush) return;
  retain(node);
  Tensor newest(node, 0);
  try {
    flush({&newest, 1});
  } catch (const Error&) {
    node->depth = 0;  // not tried again at every further op
  } catch (const std::bad_alloc&) {
    node->depth = 0;
  } catch (...) {
    release(node);
    throw;
  }
}

/// Before anything else at load may compute.
[[gnu::constructor(101)]] void install_compiler() {
  compiler = &whole_compiler;
  further_ops = named_ops;
  install_rules();
}

/// Recording reports here from the first use of the library on. What flushes share is made at load:
/// a fork while another thread makes it would leave it half-made in the child.
[[maybe_unused]] const bool kFlushInstalled =
    (flush_deep = flush_chain, flushes(), in_child_after_fork(end_in_child),
     start_instruction_log(), mesh::install(), true);

}  // namespace

Bound bound_of(const Slot& slot) {
  Buffer* buffer = slot.data.load(std::memory_order_acquire);
  buffer->refs.fetch_add(1, std::memory_order_relaxed);
  return {BufferRef::adopt_reference(buffer), slot.offset};
}

void Flush::mark(std::span<const Tensor> wanted) {
  walk.nodes.clear(), walk.leaves.clear();
  tn::walk(wanted, walk);
}

/// The same, once no other thread computes any of these nodes.
void Flush::mark_idle(std::span<const Tensor> wanted, std::unique_lock<std::mutex>& lock) {
  Flushes& all = flushes();
  auto is_idle = [&] {
    mark(wanted);
    return all.running.empty() || std::ranges::none_of(walk.nodes, &Node::running);
  };
  if (is_idle()) return;
  leave_host();  // which the other may need
  struct Waiting {
    std::atomic<int>& count;
    explicit Waiting(std::atomic<int>& all) : count(all) { ++count; }
    ~Waiting() { --count; }
  } waiting(all.waiting);
  try {
    wait_or_stop(*all.ended, lock, is_idle);
  } catch (...) {
    stop_async();  // it may be what the user had to wait for
    throw;
  }
}

/// What was asked for, and every value in between that the program still holds. Each is
/// retained until the end of the flush, because its holder may let go meanwhile.
void Flush::choose_outputs(std::span<const Tensor> wanted) {
  auto add = [&](Node* node, uint32_t i) {
    retain(node);
    outputs.push_back({node, i});
  };
  for (const Tensor& t : wanted)
    if (is_scalar(*t.node()) && !slot_of(t).data.load(std::memory_order_acquire)) add(t.node(), 0);
  for (Node* node : walk.nodes) {
    bool held = node->refs.load(std::memory_order_acquire) > node->uses;
    for (uint32_t i = 0; held && i < node->outs; ++i) add(node, i);
  }
}

/// Composite bodies are captured in turn when something is compiled, which walks, and so may other
/// threads: their marks may overwrite ours. Callers that need them afterwards mark again.
struct WalkUnlocked {
  WalkUnlocked() { walk_mutex().unlock(); }
  ~WalkUnlocked() { walk_mutex().lock(); }
};

static int numbers_among(std::span<Node* const> leaves) {
  return static_cast<int>(std::ranges::count_if(leaves, [](Node* n) { return is_scalar(*n); }));
}

/// Regions have plans of their own: what becomes of one says nothing of the others. Valid while the
/// lock of walks is held.
const CachedPlanRef& Flush::cached_plan(std::span<const Tensor> wanted,
                                        const SignalRegion* region) {
  make_key(walk, outputs, key);
  if (region && region->settings) add_word(key, ~region->settings);
  Products products = wanted_products();
  if (products != Products::highest)
    add_word(key, ~(uint64_t{1} << 62) ^ static_cast<uint64_t>(products));
  add_layouts(key, walk, region);
  Flushes& all = flushes();
  if (const CachedPlanRef* cached = all.cache.find(key)) {
    ++all.stats.hits;
    return *cached;
  }
  leave_host();
  Captured captured = capture(walk, {}, outputs);
  captured.graph = with_layouts(std::move(captured.graph), walk, region);
  CompileOptions options{.runtime_scalars = numbers_among(walk.leaves)};
  options.products = products;
  std::shared_ptr<const Plan> plan = [&] {
    WalkUnlocked unlocked;
    return compile(captured.graph, options);
  }();
  mark(wanted);
  const CachedPlanRef* cached = all.cache.find(key);  // another thread may have been first
  if (cached) return *cached;
  const CachedPlanRef& made = all.cache.add(key, std::move(plan));
  if (std::ranges::any_of(captured.graph.ops, [](const GraphOp& op) { return op.loc.mark() > 0; }))
    made->marked = std::make_shared<const std::vector<Loc>>(places_in(captured.graph));
  return made;
}

/// The plan of a sequence that may be hot, compiled or not.
HotPath::Choice Flush::hot_plan(CachedPlan& cached, const HotPathPolicy& policy,
                                const SignalRegion* region) {
  if (!cached.hot)
    cached.hot =
        std::make_shared<HotPath>(shown_hash(walk, outputs), walk, region ? region->name : "");
  hot = cached.hot;
  if (hot->is_due(policy)) {
    leave_host();
    find_dying();  // before what is captured holds leaves
    LastingScope lasting;
    Captured captured = capture(walk, {}, outputs);
    captured.graph = with_layouts(std::move(captured.graph), walk, region);
    CompileOptions options{
        .runtime_scalars = numbers_among(walk.leaves), .donated = dying, .checks_indices = true};
    options.products = cached.plan->products;
    std::optional<HotPath::Values> values;
    if (region && region->has_mode(kMaxAutotune)) values = {inputs, scalars};
    WalkUnlocked unlocked;
    hot->compile(std::move(captured.graph), std::move(options), policy, std::move(values));
  }
  return hot->choose(cached.plan, policy);
}

/// Whether backward() may yet ask for the operands of a node.
static bool leads_back(const Node& node) {
  uint8_t bits = watch_bits(node);
  return node.taped || ((bits & kOnPath) && !(bits & (kSpent | kLeaf)));
}

/// Leaves that only the nodes of this flush hold, which release them when it is over: what
/// a parameter was before an optimizer's step. Their memory may be taken for results.
void Flush::find_dying() {
  dying.clear();
  bool may_die = std::ranges::none_of(walk.nodes, [](Node* node) { return leads_back(*node); });
  for (Node* leaf : walk.leaves)
    if (!is_scalar(*leaf))
      dying.insert(dying.end(), leaf->outs,
                   may_die && leaf->refs.load(std::memory_order_acquire) == leaf->uses);
}

namespace {

/// While a plan runs, the memory of dying leaves is its own: their slots hold no references.
class Loan {
 public:
  Loan(Flush& f, const Plan& plan) : shown_(f.loan) {
    std::lock_guard lock(walk_mutex());  // a fork finds all of it or nothing
    shown_ = this;
    size_t input = 0;
    for (Node* leaf : f.walk.leaves) {
      if (is_scalar(*leaf)) continue;
      for (int i = 0; i < leaf->outs; ++i, ++input) {
        if (!f.dying[input] || !plan.donated[input]) continue;
        Buffer* buffer = f.inputs[input].buffer.get();
        buffer->refs.fetch_sub(1, std::memory_order_relaxed);
        lent_.push_back({leaf, buffer});
      }
    }
  }
  ~Loan() {
    std::lock_guard lock(walk_mutex());
    shown_ = nullptr;
    for (auto [leaf, buffer] : lent_) {
      bool taken = buffer->refs.fetch_add(1, std::memory_order_relaxed) == 1;
      if (overwritten && !done && taken) leaf->op = &param_leaf;  // its value is lost
    }
  }
  /// In a child of fork, where the rest of the plan does not run.
  void lose() {
    for (auto [leaf, buffer] : lent_)
      if (overwritten) leaf->op = &param_leaf;
  }
  bool done = false, overwritten = false;

 private:
  Loan*& shown_;
  std::vector<std::pair<Node*, Buffer*>> lent_;
};

/// A forked child lacks the threads of other flushes: their nodes become pending again.
void end_in_child() {
  Flushes& all = flushes();
  for (Flush* flush : all.running) {
    if (flush == own_flush) continue;
    for (Node* node : flush->walk.nodes) node->running = false;
    if (flush->loan) flush->loan->lose();
  }
  std::erase_if(all.running, [](Flush* flush) { return flush != own_flush; });
}

}  // namespace

void Flush::run_plan(const HotPath::Choice& chosen) {
  results.resize(outputs.size());
  const Plan& plan = *chosen.plan;
  std::optional<OnOwnThread> alone;
  if (chosen.alone) alone.emplace();
  std::optional<Loan> loan;
  if (!dying.empty()) loan.emplace(*this, plan);
  using Clock = std::chrono::steady_clock;
  Clock::time_point began = chosen.measured ? Clock::now() : Clock::time_point();
  IndexChecks checked;
  bool* overwritten = loan ? &loan->overwritten : nullptr;
  if (plan.parts || marked)
    run_with_places(plan, overwritten);
  else
    run(plan, inputs, scalars.data(), results, overwritten);
  if (loan) loan->done = true;
  if (chosen.measured) std::ranges::for_each(results, wait_for);
  if (chosen.measured) hot->ran(plan, std::chrono::duration<double>(Clock::now() - began).count());
}

/// Errors arrive later, and name places of this flush.
[[gnu::noinline]] void Flush::run_with_places(const Plan& plan, bool* overwritten) {
  RunPlacesScope places(places_of_run(plan.parts ? planned_places(plan) : marked, walk.nodes.size(),
                                      [&](size_t i) { return walk.nodes[i]->loc; }));
  run(plan, inputs, scalars.data(), results, overwritten);
}

/// What is to be computed, after another thread may have walked.
Graph Flush::captured(std::span<const Tensor> wanted) {
  std::lock_guard lock(walk_mutex());
  mark(wanted);
  return capture(walk, {}, outputs).graph;
}

void Flush::bind() {
  inputs.clear();
  scalars.clear();
  for (Node* leaf : walk.leaves) {
    if (is_scalar(*leaf)) {
      scalars.push_back(scalar_value(*leaf));
      continue;
    }
    for (int i = 0; i < leaf->outs; ++i) inputs.push_back(bound_of(leaf->slots()[i]));
  }
}

/// Under the lock of walks, as is the end.
void Flush::begin() {
  flushes().running.push_back(this);
  for (Node* node : walk.nodes) node->running = true;
}

void Flush::end() {
  for (Node* node : walk.nodes) node->running = false;
  Flushes& all = flushes();
  std::erase(all.running, this);
  if (all.waiting.load(std::memory_order_relaxed)) all.ended->notify_all();
}

void Flush::publish() {
  for (size_t i = 0; i < outputs.size(); ++i)
    materialise(outputs[i].node->slots()[outputs[i].index], std::move(results[i].buffer),
                results[i].offset);
  for (const Edge& e : outputs) {
    e.node->depth.store(0, std::memory_order_relaxed);
    bool keeps = e.node->taped || (watch_bits(*e.node) & (kKept | kLeaf)) == kKept;
    if (e.index == 0 && !keeps) take_inputs(*e.node, dead);
  }
}

/// Releases operands and outputs without holding our locks: freeing may call into the host.
void Flush::clean() {
  inputs.clear();
  dying.clear();
  hot = nullptr;
  for (Node* node : dead) release(node);
  for (const Edge& e : outputs) release(e.node);
  dead.clear();
  outputs.clear();
}

void Flush::leave_host() {
  if (!*host) host->emplace();
}

void Flush::flush(std::span<const Tensor> wanted) {
  if (!regions_are_used.load(std::memory_order_relaxed)) return compute(wanted, nullptr);
  for (FlushPart& part : parts_of(wanted)) {
    compute(part.wanted.empty() ? wanted : part.wanted, as_signal(part.region));
    part.wanted.clear();
  }
}

void Flush::compute(std::span<const Tensor> wanted, const SignalRegion* region) {
  struct Clean {
    Flush& f;
    bool runs = false;
    ~Clean() {
      if (runs) {
        std::lock_guard lock(walk_mutex());
        f.end();
      }
      f.clean();
    }
  } clean{*this};
  InternScope scope;
  if (!region || !region->has_mode(kReduceOverhead)) leave_host();
  HotPath::Choice chosen{};
  HotPathPolicy policy = policy_in(region);
  std::optional<Captured> looked_at;
  {
    std::unique_lock lock(walk_mutex());
    mark_idle(wanted, lock);
    if (const Node* leaf = find_unknown(walk)) {
      lock.unlock();  // an error takes the host's lock
      fail_unknown(*leaf, wanted[0].node()->loc);
    }
    choose_outputs(wanted);
    if (outputs.empty()) return;
    begin();
    clean.runs = true;
    ++flushes().stats.flushes;
    if (is_looking()) looked_at = capture(walk, {}, outputs);
    const CachedPlanRef& found = cached_plan(wanted, region);
    marked = found->marked;
    bind();
    if (policy.when == HotPathPolicy::When::never) {
      chosen = {found->plan, false};
      report_ops(found->ops, walk, false);
    } else {
      CachedPlanRef cached = found;  // compiling lets go of the lock
      chosen = hot_plan(*cached, policy, region);
      report_ops(cached->ops, walk, chosen.plan != cached->plan);
    }
    if (chosen.plan->donated.empty() || looked_at)
      dying.clear();
    else if (dying.empty())
      find_dying();
  }
  if (!chosen.is_short) leave_host();
  try {
    run_plan(chosen);
  } catch (const ops::OutOfBounds& error) {
    if (find_unknown(walk)) throw;  // a value is lost: it cannot be recomputed
    CallNames names;
    for (const Node* node : walk.nodes)
      if (CallName call = call_of(*node); !call.name.empty())
        names.emplace(node->loc.bits, call.name);
    fail_out_of_bounds({captured(wanted), {}, inputs}, error, names);
  } catch (const UserError& error) {
    throw RecordedError(error.fault(), error.what());
  }
  if (looked_at) check_values({looked_at->graph, {}, inputs}, results);
  std::lock_guard lock(walk_mutex());
  publish();
  end();
  clean.runs = false;
}

static void flush_once(std::span<const Tensor> wanted) {
  Flush* spare = spare_flush.exchange(nullptr, std::memory_order_acquire);
  own_flush = spare ? spare : new Flush;
  struct Leave {
    void (*before)() = std::exchange(own_stop_point, stop_point_of_flush);
    ~Leave() {
      own_stop_point = before;
      delete spare_flush.exchange(std::exchange(own_flush, nullptr), std::memory_order_acq_rel);
    }
  } leave;
  // Only some regions keep the host's lock; it is taken again when the flush is over.
  std::optional<HostUnlocked> unlocked;
  if (!regions_are_used.load(std::memory_order_relaxed)) unlocked.emplace();
  own_flush->host = &unlocked;
  own_flush->flush(wanted);
}

void flush(std::span<const Tensor> wanted) {
  bool pending = std::any_of(wanted.begin(), wanted.end(), [](const Tensor& t) {
    return !slot_of(t).data.load(std::memory_order_acquire);
  });
  if (!pending) return;
  if (own_flush) fail("print: its output callback evaluated a tensor while a plan was running");
  for (;;) {
    try {
      return flush_once(wanted);
    } catch (const Stopped&) {
      if (stop_wanted) throw;
    }
    stop_async();           // it may be about to compute the same
    host_signals.handle();  // should the user's handlers not throw, it starts again
  }
}

FlushStats flush_stats() {
  std::lock_guard lock(walk_mutex());
  Flushes& all = flushes();
  all.stats.plans = all.cache.size();
  return all.stats;
}

void clear_plans() {
  std::lock_guard lock(walk_mutex());
  flushes().cache.clear();
}

}  // namespace tn
