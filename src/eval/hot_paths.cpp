#include "eval/hot_paths.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/at_fork.h"
#include "base/debug_log.h"
#include "base/environment_number.h"
#include "base/error.h"
#include "base/events.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "compiler/graph_cache.h"
#include "compiler/stopwatch.h"
#include "eval/autotune.h"
#include "eval/background.h"
#include "eval/modes.h"
#include "eval/run_together.h"
#include "ir/named_calls.h"
#include "observe/op_events.h"
#include "passes/passes.h"
#include "runtime/own_thread.h"

namespace tn {

namespace {

using When = HotPathPolicy::When;

constexpr int kTrials = 5;               // compiled runs that are measured before it is judged
constexpr int kTurns = 10;               // and, where it seemed slower, of both kinds
constexpr int kBaselines = 2 * kTrials;  // interpreted runs that are measured, the last ones
constexpr int kMostOfFamily = 8;         // compiled that differ in types only
constexpr int kMostQueued = 16;          // others stay cold, and ask again when they are run again
constexpr int kMostUnproven = 64;        // compiled and not run often enough to be judged
constexpr int64_t kPatience = 100;  // thresholds after which one of too many is compiled after all
constexpr size_t kMostFamilies = 4096;
constexpr size_t kNamesShown = 8;  // of the ops of a sequence

HotPathPolicy policy_of_environment() {
  HotPathPolicy policy;
  if (environment_number("TENON_AUTO_COMPILE", 0, 0)) policy.when = When::hot;
  if (environment_number("TENON_COMPILE", 0, 0)) policy.when = When::always;
  policy.threshold = environment_number("TENON_HOTPATH_THRESHOLD", 1, policy.threshold);
  return policy;
}

/// A policy as one word: every flush asks for it.
constexpr int64_t kMostRuns = int64_t{1} << 60;
int64_t word_of(const HotPathPolicy& policy) {
  return std::min(policy.threshold, kMostRuns) << 2 | static_cast<int64_t>(policy.when);
}
std::atomic<int64_t> policy_word = word_of(policy_of_environment());

/// Sequences of the same ops, whatever their types.
struct Kin {
  int compiled = 0;
  std::string types;  // of the one that was compiled last
};

struct Registry {
  std::mutex mutex;
  std::vector<std::weak_ptr<HotPath>> paths;
  std::unordered_map<uint64_t, Kin> families;
  int queued = 0;
  // A program that always computes something else is not compiled again and again.
  std::atomic<int> unproven = 0;
};

Registry& registry() {
  static auto& only = guarded_for_process<Registry>(11);
  static const bool registered = (in_child_after_fork([] {
                                    for (const auto& held : only.paths)
                                      if (auto path = held.lock()) path->forget_thread();
                                    only.queued = 0;
                                  }),
                                  true);
  (void)registered;
  return only;
}

uint64_t family_of(const Walk& walk) {
  uint64_t family = walk.nodes.size();
  for (Node* node : walk.nodes) {
    family = combine(family, reinterpret_cast<uint64_t>(node->op));
    for (int i = 0; i < node->ins; ++i) family = combine(family, node->inputs()[i].node->index);
  }
  return family;
}

/// "matmul -> relu -> sum", as the user called them, without what only moves data about.
std::string sequence_of(const Walk& walk) {
  std::vector<std::string_view> names;
  std::unordered_set<uint64_t> calls;
  for (Node* node : walk.nodes) {
    if (node->op->family == Family::movement) continue;
    CallName call = call_of(*node);
    if (call.name.empty() || calls.insert(call.first).second)
      names.push_back(call.name.empty() ? called_name(*node->op) : call.name);
  }
  size_t more = names.size() > kNamesShown ? names.size() - kNamesShown : 0;
  names.resize(names.size() - more);
  return format("{}{}", join(names, " -> "), more ? format(" -> ... ({} more)", more) : "");
}

std::string types_of(const Walk& walk) {
  std::vector<std::string> types;
  for (Node* leaf : walk.leaves)
    if (!is_scalar(*leaf)) types.push_back(to_text(*leaf->slots()[0].type));
  return format("{}", join(types, ", "));
}

std::string time_text(double ms) {
  return ms < 1000 ? format("{:.1f}ms", ms) : format("{:.1f}s", ms / 1000);
}

}  // namespace

void prepare_hot_paths() {
  static const bool ready = (warm_up_compiler(), registry(), true);
  (void)ready;
}

HotPathPolicy hot_path_policy() {
  int64_t word = policy_word.load(std::memory_order_relaxed);
  HotPathPolicy policy{static_cast<When>(word & 3), word >> 2};
  if (policy.when != When::never) prepare_hot_paths();
  return policy;
}

HotPathPolicy set_hot_path_policy(const HotPathPolicy& policy) {
  if (policy.threshold < 1)
    fail("set_auto_compile: threshold is a number of runs, 1 or more: {}", policy.threshold);
  if (policy.when != When::never) prepare_hot_paths();
  int64_t before = policy_word.exchange(word_of(policy));
  return {static_cast<When>(before & 3), before >> 2};
}

HotPathPolicy set_auto_compile(bool enabled, int64_t threshold) {
  return set_hot_path_policy({enabled ? When::hot : When::never, threshold});
}

HotPath::HotPath(uint64_t hash, const Walk& walk, std::string region)
    : hash_(region.empty() ? hash : hash_text(region, hash)),
      family_(combine(family_of(walk), std::hash<std::string>()(region))),
      sequence_(sequence_of(walk)),
      types_(types_of(walk)),
      region_(std::move(region)) {}

HotPath::~HotPath() { set_unproven(false); }

void HotPath::set_unproven(bool unproven) {
  if (std::exchange(unproven_, unproven) != unproven) registry().unproven += unproven ? 1 : -1;
}

/// Whether nothing is to be decided at this run, which is so for nearly all.
bool HotPath::stays_cold(int64_t count, const HotPathPolicy& policy) const {
  HotPathStatus status = status_.load(std::memory_order_relaxed);
  bool capped = status == HotPathStatus::capped;
  if (status != HotPathStatus::cold && !capped) return true;
  return policy.when != When::always && count / (capped ? kPatience : 1) < policy.threshold;
}

bool HotPath::is_due(const HotPathPolicy& policy) {
  std::string again;
  int64_t count = count_.load(std::memory_order_relaxed) + 1;
  count_.store(count, std::memory_order_relaxed);  // the only writer
  if (count > 1 && stays_cold(count, policy)) return false;
  {
    std::lock_guard lock(registry().mutex);
    if (count == 1) {
      std::erase_if(registry().paths, [](auto& path) { return path.expired(); });
      registry().paths.push_back(weak_from_this());
    }
    if (stays_cold(count, policy)) return false;
    bool forced = policy.when == When::always;
    bool capped = status_ == HotPathStatus::capped;
    if (!forced && (registry().queued >= kMostQueued || !(capped || may_compile()))) return false;
    reason_.clear();
    Kin& family = registry().families[family_];
    if (family.compiled++)
      again = family.types == types_  // randn(64, 784), then randn(128, 784)
                  ? format("operands are {} as before, sizes or settings of its ops differ", types_)
                  : format("operands were {}, now {}", family.types, types_);
    family.types = types_;
    status_ = HotPathStatus::queued;
    ++registry().queued;
    set_unproven(region_.empty());
    if (forced) count = 0;
  }
  if (count) debug_compile("Detected hot sequence: {} (executed {} times)", sequence_, count);
  if (!again.empty()) debug_compile("Recompiling {}: {}", sequence_, again);
  return true;
}

/// Under the lock. Programs that never repeat themselves, or not with the same types, do not keep
/// the compiler busy permanently. What is run very often pays all the same: see kPatience.
bool HotPath::may_compile() {
  Registry& all = registry();
  if (all.families.size() > kMostFamilies) all.families.clear();
  int alike = all.families[family_].compiled;
  if (alike >= kMostOfFamily) reason_ = format("compiled for {} other types already", alike);
  if (all.unproven >= kMostUnproven && region_.empty())  // regions are asked for
    reason_ = format("{} sequences were compiled and hardly run again", all.unproven.load());
  if (!reason_.empty()) status_ = HotPathStatus::capped;
  return reason_.empty();
}

void HotPath::compile(Graph graph, CompileOptions options, const HotPathPolicy& policy,
                      std::optional<Values> values) {
  options.effort = Effort::e2;
  if (std::ranges::any_of(graph.ops, has_effects)) values = {};  // they happen once
  bool together = is_run_together(graph);
  if (together) values = {};  // measuring would run collectives that the others do not
  if (policy.when == When::always) return make_plan(graph, options, values);
  if (together) return refuse("other processes run its collectives at the same time");
  compiling_worker().add(
      [self = shared_from_this(), graph = std::move(graph), options, values = std::move(values)] {
        std::optional<OnOwnThread> alone;
        if (!values) alone.emplace();  // who measures needs the others
        self->make_plan(graph, options, values);
      });
}

void HotPath::refuse(std::string reason) {
  std::lock_guard lock(registry().mutex);
  status_ = HotPathStatus::failed, reason_ = std::move(reason);
  --registry().queued;
  set_unproven(false);
}

void HotPath::make_plan(const Graph& graph, const CompileOptions& wanted,
                        const std::optional<Values>& values) {
  {
    std::lock_guard lock(registry().mutex);
    status_ = HotPathStatus::compiling;
    --registry().queued;
  }
  debug_compile("Compiling sequence... {}{}", short_hash(hash_),
                region_.empty() ? "" : format(" of signal '{}'", region_));
  double ms = 0;
  PlanRef plan;
  bool alone = false;
  std::string reason;
  try {
    CompileEvents events(hash_, sequence_);
    Stopwatch watch(ms);
    CompileOptions options = wanted;
    Tuned choice{};
    if (values) choice = tuned(graph, options, {}, {values->inputs, values->scalars.data()});
    options.off = choice.off;
    plan = compiled_graph(graph, options)->plan();
    alone = choice.alone;
  } catch (const Stopped&) {  // the process ends, or the user interrupts a flush
    std::lock_guard lock(registry().mutex);
    status_ = HotPathStatus::cold;
    set_unproven(false);
    if (stop_wanted) return;
    throw;
  } catch (const std::exception& error) {
    reason = error.what();
  }
  {
    std::lock_guard lock(registry().mutex);
    compile_ = ms / 1e3;
    if (!plan) reason_ = reason, set_unproven(false);
    plan_ = plan, alone_ = alone;
    status_ = plan ? HotPathStatus::trial : HotPathStatus::failed;
  }
  if (plan)
    debug_compile("Compilation complete ({})", time_text(ms));
  else
    debug_compile("Compilation failed, the interpreter goes on: {}: {}", sequence_, reason);
}

/// Of interpreted runs only the last before the threshold are measured: reading the clock is not
/// for nothing, and most sequences stay cold.
HotPath::Choice HotPath::choose(const PlanRef& interpreted, const HotPathPolicy& policy) {
  using enum HotPathStatus;
  HotPathStatus status = status_.load(std::memory_order_acquire);
  if (status == kept) return {plan_, false, alone_, compiled_ > 0 && compiled_ < kShortSeconds};
  int64_t first = policy.threshold - kBaselines;
  bool waits = status < trial && count_.load(std::memory_order_relaxed) > first;
  if (!waits && status != trial) return {interpreted, false};
  std::lock_guard lock(registry().mutex);
  if (status_ != trial) return {interpreted, status_ < trial && baselines_ < kBaselines};
  if (in_turns_) compiled_last_ = !compiled_last_;
  return {compiled_last_ ? plan_ : interpreted, true, compiled_last_ && alone_};
}

void HotPath::ran(const Plan& plan, double seconds) {
  std::string line;
  {
    std::lock_guard lock(registry().mutex);
    if (status_ > HotPathStatus::trial) return;  // judged while it ran
    bool compiled = &plan == plan_.get();
    double& least = compiled ? compiled_ : interpreted_;
    least = least == 0 ? seconds : std::min(least, seconds);
    ++(compiled ? trials_ : baselines_);
    if (status_ == HotPathStatus::trial && trials_ >= (in_turns_ ? kTurns : kTrials)) judge(line);
  }
  if (!line.empty()) debug_compile("{}", line);
}

/// Keeps the compiled plan unless the interpreted one is faster. If that seems so, or is
/// unclear, both are measured again in turns, so that a disturbance affects both.
void HotPath::judge(std::string& line) {
  bool forced = baselines_ == 0;
  bool faster = forced || (compiled_ <= interpreted_ && baselines_ >= kTrials);
  if (!faster && !in_turns_) {
    in_turns_ = true;
    trials_ = baselines_ = 0;
    interpreted_ = compiled_ = 0;
    return;
  }
  faster = forced || compiled_ <= interpreted_;
  in_turns_ = false, compiled_last_ = true;
  status_ = faster ? HotPathStatus::kept : HotPathStatus::dropped;
  set_unproven(false);
  double ratio = interpreted_ / compiled_;
  if (!faster) {
    plan_ = nullptr;
    reason_ = format("{:.2f}x the speed of the interpreter", ratio);
    line = format("Dropped {}: compiled code has {}", sequence_, reason_);
  } else if (!forced) {
    line = format("Speedup: {:.1f}x on subsequent executions", ratio);
  }
}

/// Under no lock: a child has one thread.
void HotPath::forget_thread() {
  if (status_ != HotPathStatus::queued && status_ != HotPathStatus::compiling) return;
  status_ = HotPathStatus::cold;
  set_unproven(false);
}

HotPathInfo HotPath::info() const {
  return {hash_,           sequence_,      count_,  status_, 1e3 * interpreted_,
          1e3 * compiled_, 1e3 * compile_, reason_, region_};
}

std::string_view name_of(HotPathStatus status) {
  constexpr std::string_view kNames[] = {"cold", "queued",  "compiling", "trial",
                                         "kept", "dropped", "failed",    "capped"};
  return kNames[static_cast<size_t>(status)];
}

std::string short_hash(uint64_t hash) { return format("{:012x}", hash >> 16); }

std::string to_text(const HotPathInfo& path) {
  bool hot = path.status == HotPathStatus::trial || path.status == HotPathStatus::kept;
  return format("Sequence hash: {}\nExecution count: {}\nStatus: {}{}", short_hash(path.hash),
                path.count, hot ? "HOT PATH \u2713" : name_of(path.status),
                path.reason.empty() ? "" : format(" ({})", path.reason));
}

std::vector<HotPathInfo> hot_paths() {
  std::vector<HotPathInfo> all;
  std::lock_guard lock(registry().mutex);
  for (const auto& held : registry().paths)
    if (auto path = held.lock()) all.push_back(path->info());
  std::ranges::stable_sort(all, std::greater{}, &HotPathInfo::count);
  return all;
}

}  // namespace tn
