#include "frontend/hot_paths.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "base/at_fork.h"
#include "base/debug_log.h"
#include "base/error.h"
#include "base/hash.h"
#include "compiler/graph_cache.h"
#include "compiler/stopwatch.h"
#include "frontend/background.h"

namespace tn {

namespace {

constexpr int kTrials = 5;          // compiled runs that are measured before it is judged
constexpr int kMostOfFamily = 8;    // compiled that differ in types only
constexpr size_t kNamesShown = 12;  // of the ops of a sequence

int64_t number_of(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  char* end = nullptr;
  long long value = text ? std::strtoll(text, &end, 10) : 0;
  return text && end != text && *end == 0 && value > 0 ? value : otherwise;
}

HotPathPolicy policy_of_environment() {
  HotPathPolicy policy;
  if (number_of("TENON_AUTO_COMPILE", 0)) policy.when = HotPathPolicy::When::hot;
  if (number_of("TENON_COMPILE", 0)) policy.when = HotPathPolicy::When::always;
  policy.threshold = number_of("TENON_HOTPATH_THRESHOLD", policy.threshold);
  return policy;
}

/// So that those who do not want it pay for one load.
std::atomic<bool> is_off = policy_of_environment().when == HotPathPolicy::When::never;

/// Sequences of the same ops, whatever their types.
struct Kin {
  int compiled = 0;
  std::string types;  // of the one that was compiled last
};

struct Registry {
  std::mutex mutex;
  HotPathPolicy policy = policy_of_environment();
  std::vector<std::weak_ptr<const HotPath>> paths;
  std::unordered_map<uint64_t, Kin> families;
};

Registry& registry() {
  static auto& only = *[] {
    auto* made = new Registry;
    guarded_at_fork(made->mutex, 11);
    if (made->policy.when != HotPathPolicy::When::never) warm_up_compiler();
    return made;
  }();
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

/// "matmul -> relu -> sum", without what only moves data about.
std::string sequence_of(const Walk& walk) {
  std::vector<std::string_view> names;
  for (Node* node : walk.nodes)
    if (node->op->family != Family::movement) names.push_back(node->op->name);
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

}  // namespace

HotPathPolicy hot_path_policy() {
  if (is_off.load(std::memory_order_relaxed)) return {};
  std::lock_guard lock(registry().mutex);
  return registry().policy;
}

void set_hot_path_policy(const HotPathPolicy& policy) {
  if (policy.threshold < 1)
    fail("set_auto_compile: the threshold is a number of runs, not {}", policy.threshold);
  if (policy.when != HotPathPolicy::When::never) warm_up_compiler();
  std::lock_guard lock(registry().mutex);
  registry().policy = policy;
  is_off = policy.when == HotPathPolicy::When::never;
}

HotPath::HotPath(uint64_t hash, const Walk& walk)
    : hash_(hash), family_(family_of(walk)), sequence_(sequence_of(walk)), types_(types_of(walk)) {}

bool HotPath::is_due(const HotPathPolicy& policy) {
  std::lock_guard lock(registry().mutex);
  if (++count_ == 1) {
    std::erase_if(registry().paths, [](auto& path) { return path.expired(); });
    registry().paths.push_back(weak_from_this());
  }
  bool forced = policy.when == HotPathPolicy::When::always;
  if (status_ != HotPathStatus::cold || count_ < (forced ? 1 : policy.threshold)) return false;
  Kin& family = registry().families[family_];
  if (family.compiled >= kMostOfFamily) {
    status_ = HotPathStatus::capped;
    reason_ = format("{} with other types are compiled already", family.compiled);
    return false;
  }
  if (!forced) debug_compile("Detected hot sequence: {} (executed {} times)", sequence_, count_);
  if (family.compiled++)
    debug_compile("Recompiling: its operands were {}, now {}", family.types, types_);
  family.types = types_;
  status_ = HotPathStatus::queued;
  return true;
}

void HotPath::compile(Graph graph, int runtime_scalars, const HotPathPolicy& policy) {
  if (policy.when == HotPathPolicy::When::always) return make_plan(graph, runtime_scalars);
  in_background([self = shared_from_this(), graph = std::move(graph), runtime_scalars] {
    self->make_plan(graph, runtime_scalars);
  });
}

void HotPath::make_plan(const Graph& graph, int runtime_scalars) {
  {
    std::lock_guard lock(registry().mutex);
    status_ = HotPathStatus::compiling;
  }
  debug_compile("Compiling sequence {:012x}...", hash_ >> 16);
  double ms = 0;
  PlanRef plan;
  std::string reason;
  try {
    Stopwatch watch(ms);
    CompileOptions options{.effort = Effort::e2, .runtime_scalars = runtime_scalars};
    plan = compiled_graph(graph, options)->plan();
  } catch (const std::exception& error) {
    reason = error.what();
  }
  std::lock_guard lock(registry().mutex);
  compile_ = ms / 1e3;
  if (!plan) {
    status_ = HotPathStatus::failed, reason_ = reason;
    debug_compile("Compilation failed, the interpreter goes on: {}", reason);
    return;
  }
  plan_ = std::move(plan);
  status_ = HotPathStatus::trial;
  debug_compile("Compilation complete ({:.1f} ms)", ms);
}

HotPath::PlanRef HotPath::choose(const PlanRef& interpreted) const {
  std::lock_guard lock(registry().mutex);
  return plan_ ? plan_ : interpreted;
}

bool HotPath::measures() const {
  std::lock_guard lock(registry().mutex);
  return status_ < HotPathStatus::kept;
}

void HotPath::ran(const Plan& plan, double seconds) {
  std::lock_guard lock(registry().mutex);
  bool compiled = &plan == plan_.get();
  double& least = compiled ? compiled_ : interpreted_;
  least = least == 0 ? seconds : std::min(least, seconds);
  if (compiled && ++trials_ == kTrials && status_ == HotPathStatus::trial) judge();
}

/// Keeps the compiled plan, unless the interpreted one was measured and is faster.
void HotPath::judge() {
  double ratio = interpreted_ > 0 ? interpreted_ / compiled_ : 0;
  bool slower = interpreted_ > 0 && ratio < 1;
  status_ = slower ? HotPathStatus::dropped : HotPathStatus::kept;
  if (slower) {
    plan_ = nullptr;
    reason_ = format("{:.2f}x of the interpreter's speed", ratio);
    debug_compile("Dropped: compiled code has {}", reason_);
  } else if (ratio > 0) {
    debug_compile("Speedup: {:.1f}x on subsequent executions", ratio);
  }
}

HotPathInfo HotPath::info() const {
  return {hash_,           sequence_,      count_, status_, 1e3 * interpreted_,
          1e3 * compiled_, 1e3 * compile_, reason_};
}

std::string_view name_of(HotPathStatus status) {
  constexpr std::string_view kNames[] = {"cold", "queued",  "compiling", "trial",
                                         "kept", "dropped", "failed",    "capped"};
  return kNames[static_cast<size_t>(status)];
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
