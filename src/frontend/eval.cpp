#include "frontend/eval.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <unordered_map>

#include "base/at_fork.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "compiler/compile.h"
#include "frontend/bad_values.h"
#include "frontend/flush_lock.h"
#include "frontend/flush_parts.h"
#include "frontend/hot_paths.h"
#include "frontend/index_checks.h"
#include "frontend/instruction_log.h"
#include "frontend/key.h"
#include "frontend/modes.h"
#include "frontend/op_events.h"
#include "ir/interned.h"
#include "ir/named_calls.h"
#include "ir/trace.h"
#include "ir/watch.h"
#include "runtime/own_thread.h"

namespace tn {

HostLock host_lock;

namespace {

struct CachedPlan {
  std::vector<uint64_t> words;
  std::shared_ptr<const Plan> plan;
  uint64_t last_used = 0;
  std::shared_ptr<HotPath> hot = nullptr;  // null: hot paths are off
  OpListRef ops = nullptr;                 // null: no watcher
};

/// Plans by key. The hash selects, the words decide: no silent collisions. Bounded in number and in
/// words of key, to which the size of a plan is proportional: the least recently used go.
class PlanCache {
 public:
  static constexpr size_t kMost = 4096, kMostWords = 1 << 21;

  CachedPlan* find(const FlushKey& key) {
    auto [at, end] = plans_.equal_range(key.hash);
    for (; at != end; ++at) {
      if (at->second.words != key.words) continue;
      at->second.last_used = ++clock_;
      return &at->second;
    }
    return nullptr;
  }
  CachedPlan& add(const FlushKey& key, std::shared_ptr<const Plan> plan) {
    words_ += key.words.size();
    while (plans_.size() >= kMost || (words_ > kMostWords && !plans_.empty())) evict();
    return plans_.emplace(key.hash, CachedPlan{key.words, std::move(plan), ++clock_})->second;
  }
  size_t size() const { return plans_.size(); }
  void clear() { plans_.clear(), words_ = 0; }

 private:
  void evict() {
    std::vector<uint64_t> ages;
    for (auto& [hash, plan] : plans_) ages.push_back(plan.last_used);
    std::nth_element(ages.begin(), ages.begin() + static_cast<ptrdiff_t>(ages.size() / 4),
                     ages.end());
    uint64_t newest_gone = ages[ages.size() / 4];
    std::erase_if(plans_, [&](auto& entry) {
      bool gone = entry.second.last_used <= newest_gone;
      if (gone) words_ -= entry.second.words.size();
      return gone;
    });
  }
  std::unordered_multimap<uint64_t, CachedPlan> plans_;
  uint64_t clock_ = 0;
  size_t words_ = 0;
};

class Loan;

/// One flush at a time: what it computes must not be computed by another meanwhile.
struct Flusher {
  std::unique_ptr<FlushLock> lock = std::make_unique<FlushLock>();
  PlanCache cache;
  FlushStats stats;
  // Scratch, kept between flushes.
  Walk walk;
  std::vector<Edge> outputs;  // each holds a reference
  std::vector<Node*> dead;    // operands without a further use
  FlushKey key;
  std::vector<Bound> inputs, results;
  std::vector<Scalar> scalars;
  HotPath* hot = nullptr;                       // of the plan, if anybody asked
  std::vector<bool> dying;                      // by input: see find_dying
  Loan* loan = nullptr;                         // of the plan that runs
  std::optional<HostUnlocked>* host = nullptr;  // of the flush: empty while it keeps the lock

  void flush(std::span<const Tensor> wanted);
  void compute(std::span<const Tensor> wanted, const SignalRegion* region);
  void mark(std::span<const Tensor> wanted);
  void choose_outputs(std::span<const Tensor> wanted);
  CachedPlan& cached_plan(std::span<const Tensor> wanted, const SignalRegion* region);
  HotPath::Choice hot_plan(CachedPlan& cached, const HotPathPolicy& policy,
                           const SignalRegion* region);
  void leave_host();
  void find_dying();
  void run_plan(const HotPath::Choice& chosen);
  void bind();
  Graph captured(std::span<const Tensor> wanted);
  void publish();
  void clean();
};

thread_local bool inside_flush = false;

Flusher* only_flusher = nullptr;
void renew_in_child();

Flusher& flusher() {
  [[maybe_unused]] static const bool guarded = [] {
    only_flusher = new Flusher;
    guard_at_fork({1, nullptr, [](void*) { only_flusher->lock->before_fork(inside_flush); },
                   [](void*) { only_flusher->lock->after_fork(); }});
    in_child_after_fork(renew_in_child);
    return true;
  }();
  return *only_flusher;
}

/// The user's code must not run inside a flush: it may want a value. And the host may be waiting
/// for the flush to end, as when it forks.
void stop_point_of_flush() {
  if (stop_wanted && stop_wanted->load(std::memory_order_relaxed)) throw Stopped();
  bool asks = !stop_wanted && host_signals.is_due && host_signals.is_due();
  FlushLock& lock = *flusher().lock;
  if (!asks && !lock.is_fork_waiting()) return;
  FlushLock::Paused paused(lock);
  if (asks && host_signals.is_stopped()) throw Stopped();
}

/// Parameters of traces have no values; those with memory are what a Loan left behind.
const Node* find_unknown(const Walk& walk) {
  auto at = std::ranges::find(walk.leaves, &param_leaf, &Node::op);
  return at == walk.leaves.end() ? nullptr : *at;
}

[[noreturn]] void fail_unknown(const Node& leaf, Loc loc) {
  if (leaf.slots()[0].data.load(std::memory_order_acquire))
    fail("a computation failed half-way, after it had written over {} that it started from",
         *leaf.slots()[0].type);
  fail_unknown_value(loc);
}

/// Pending chains are bounded: a long one is computed piece by piece. Should that fail, whoever
/// asks for the value meets the error; an interrupt of the user is met here, and the node goes.
void flush_chain(Node* node) {
  if (inside_flush) return;
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

/// Recording reports here from the first use of the library on.
[[maybe_unused]] const bool kInstalled = (flush_deep = flush_chain, start_instruction_log(), true);

}  // namespace

HostWait::HostWait() {
  if (inside_flush) paused_.emplace(*flusher().lock);
}

Bound bound_of(const Slot& slot) {
  Buffer* buffer = slot.data.load(std::memory_order_acquire);
  buffer->refs.fetch_add(1, std::memory_order_relaxed);
  return {BufferRef::adopt_reference(buffer), slot.offset};
}

void Flusher::mark(std::span<const Tensor> wanted) {
  walk.nodes.clear(), walk.leaves.clear();
  tn::walk(wanted, walk);
}

/// What was asked for, and every value in between that the program still holds. Each is
/// retained until the end of the flush, because its holder may let go meanwhile.
void Flusher::choose_outputs(std::span<const Tensor> wanted) {
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
/// threads: their marks may overwrite ours. Whoever needs them afterwards marks again.
struct WalkUnlocked {
  WalkUnlocked() { walk_mutex().unlock(); }
  ~WalkUnlocked() { walk_mutex().lock(); }
};

static int numbers_among(std::span<Node* const> leaves) {
  return static_cast<int>(std::ranges::count_if(leaves, [](Node* n) { return is_scalar(*n); }));
}

/// Regions have plans of their own: what becomes of one says nothing of the others.
CachedPlan& Flusher::cached_plan(std::span<const Tensor> wanted, const SignalRegion* region) {
  make_key(walk, outputs, key);
  if (region && region->settings) {
    key.words.push_back(~region->settings);  // like no other word
    key.hash = combine(key.hash, region->settings);
  }
  if (CachedPlan* cached = cache.find(key)) {
    ++stats.hits;
    return *cached;
  }
  leave_host();
  Captured captured = graph_of(walk, {}, outputs);
  CompileOptions options{.runtime_scalars = numbers_among(walk.leaves)};
  std::shared_ptr<const Plan> plan = [&] {
    WalkUnlocked unlocked;
    return compile(captured.graph, options);
  }();
  mark(wanted);
  return cache.add(key, std::move(plan));
}

/// The plan of a sequence that may be hot, compiled or not.
HotPath::Choice Flusher::hot_plan(CachedPlan& cached, const HotPathPolicy& policy,
                                  const SignalRegion* region) {
  if (!cached.hot)
    cached.hot =
        std::make_shared<HotPath>(shown_hash(walk, outputs), walk, region ? region->name : "");
  hot = cached.hot.get();
  if (hot->is_due(policy)) {
    leave_host();
    find_dying();  // before what is captured holds leaves
    LastingScope lasting;
    Captured captured = graph_of(walk, {}, outputs);
    CompileOptions options{
        .runtime_scalars = numbers_among(walk.leaves), .donated = dying, .checks_indices = true};
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
void Flusher::find_dying() {
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
  Loan(Flusher& f, const Plan& plan) : shown_(f.loan) {
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

/// A child of fork has not the thread of a flush under way: what that computes is pending again.
/// Others may have waited for the lock, which is why it is not used again either.
void renew_in_child() {
  if (inside_flush) return;
  Flusher& parents = flusher();
  if (parents.lock->is_held()) {
    if (parents.loan) parents.loan->lose();
    only_flusher = new Flusher;
  } else {
    (void)parents.lock.release();  // it has waiters that do not exist
    parents.lock = std::make_unique<FlushLock>();
  }
}

}  // namespace

void Flusher::run_plan(const HotPath::Choice& chosen) {
  results.resize(outputs.size());
  const Plan& plan = *chosen.plan;
  std::optional<OnOwnThread> alone;
  if (chosen.alone) alone.emplace();
  std::optional<Loan> loan;
  if (!dying.empty()) loan.emplace(*this, plan);
  using Clock = std::chrono::steady_clock;
  Clock::time_point began = chosen.measured ? Clock::now() : Clock::time_point();
  IndexChecks checked;
  run(plan, inputs, scalars.data(), results, loan ? &loan->overwritten : nullptr);
  if (loan) loan->done = true;
  if (chosen.measured) hot->ran(plan, std::chrono::duration<double>(Clock::now() - began).count());
}

/// What is to be computed, after another thread may have walked.
Graph Flusher::captured(std::span<const Tensor> wanted) {
  std::lock_guard lock(walk_mutex());
  mark(wanted);
  return graph_of(walk, {}, outputs).graph;
}

void Flusher::bind() {
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

void Flusher::publish() {
  for (size_t i = 0; i < outputs.size(); ++i)
    materialise(outputs[i].node->slots()[outputs[i].index], std::move(results[i].buffer),
                results[i].offset);
  std::lock_guard lock(walk_mutex());
  for (const Edge& e : outputs) {
    e.node->depth.store(0, std::memory_order_relaxed);
    bool keeps = e.node->taped || (watch_bits(*e.node) & (kKept | kLeaf)) == kKept;
    if (e.index == 0 && !keeps) take_inputs(*e.node, dead);
  }
}

/// Lets go of operands and outputs, with no lock of ours but the flush's: freeing may call into the
/// host.
void Flusher::clean() {
  inputs.clear();
  dying.clear();
  hot = nullptr;
  for (Node* node : dead) release(node);
  for (const Edge& e : outputs) release(e.node);
  dead.clear();
  outputs.clear();
}

void Flusher::leave_host() {
  if (!*host) host->emplace();
}

void Flusher::flush(std::span<const Tensor> wanted) {
  if (!regions_are_used.load(std::memory_order_relaxed)) return compute(wanted, nullptr);
  for (FlushPart& part : parts_of(wanted)) {
    compute(part.wanted.empty() ? wanted : part.wanted, as_signal(part.region));
    part.wanted.clear();
  }
}

void Flusher::compute(std::span<const Tensor> wanted, const SignalRegion* region) {
  struct Clean {
    Flusher& f;
    ~Clean() { f.clean(); }
  } clean{*this};
  InternScope scope;
  if (!region || !region->has_mode(kReduceOverhead)) leave_host();
  HotPath::Choice chosen{};
  HotPathPolicy policy = policy_in(region);
  std::optional<Captured> looked_at;
  {
    std::unique_lock lock(walk_mutex());
    mark(wanted);
    if (const Node* leaf = find_unknown(walk)) {
      lock.unlock();  // an error takes the host's lock
      fail_unknown(*leaf, wanted[0].node()->loc);
    }
    choose_outputs(wanted);
    if (outputs.empty()) return;
    ++stats.flushes;
    if (is_looking()) looked_at = graph_of(walk, {}, outputs);
    CachedPlan& cached = cached_plan(wanted, region);
    bind();
    if (policy.when == HotPathPolicy::When::never)
      chosen = {cached.plan, false};
    else
      chosen = hot_plan(cached, policy, region);
    tell_ops(cached.ops, walk, chosen.plan != cached.plan);
    if (chosen.plan->donated.empty() || looked_at)
      dying.clear();
    else if (dying.empty())
      find_dying();
  }
  if (!chosen.is_short) leave_host();
  try {
    run_plan(chosen);
  } catch (const ops::OutOfBounds& error) {
    if (find_unknown(walk)) throw;  // a value is lost: it cannot be computed again
    CallNames names;
    for (const Node* node : walk.nodes)
      if (CallName call = call_of(*node); !call.name.empty())
        names.emplace(node->loc.bits, call.name);
    fail_out_of_bounds({captured(wanted), {}, inputs}, error, names);
  } catch (const UserError& error) {
    throw RecordedError(error.fault(), error.what());
  }
  if (looked_at) check_values({looked_at->graph, {}, inputs}, results);
  publish();
}

static void flush_once(std::span<const Tensor> wanted) {
  Flusher& f = flusher();
  // No thread waits for the flusher with the host's lock: its holder may need that. Only some
  // regions keep it; it is taken again after the flusher was let go.
  std::optional<HostUnlocked> unlocked;
  std::unique_lock lock(*f.lock, std::defer_lock);
  if (!regions_are_used.load(std::memory_order_relaxed) || !lock.try_lock()) {
    unlocked.emplace();
    try {
      lock.lock();
    } catch (...) {
      stop_async();  // it may be what the user had to wait for
      throw;
    }
  }
  f.host = &unlocked;
  inside_flush = true;
  struct Leave {
    void (*before)() = std::exchange(own_stop_point, stop_point_of_flush);
    ~Leave() { inside_flush = false, own_stop_point = before; }
  } leave;
  f.flush(wanted);
}

void flush(std::span<const Tensor> wanted) {
  bool pending = std::any_of(wanted.begin(), wanted.end(), [](const Tensor& t) {
    return !slot_of(t).data.load(std::memory_order_acquire);
  });
  if (!pending) return;
  if (inside_flush)
    fail("a value was asked for while ops are running, by what shows the lines of print");
  for (;;) {
    try {
      return flush_once(wanted);
    } catch (const Stopped&) {
      if (stop_wanted) throw;
    }
    host_signals.handle();  // should the user's handlers not throw, it starts again
  }
}

FlushStats flush_stats() {
  Flusher& f = flusher();
  std::lock_guard lock(*f.lock);
  f.stats.plans = f.cache.size();
  return f.stats;
}

void clear_plans() {
  Flusher& f = flusher();
  std::lock_guard lock(*f.lock);
  f.cache.clear();
}

}  // namespace tn
