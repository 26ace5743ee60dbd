// tn::compile: traces of a C++ function by the types of its arguments.
#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "base/at_fork.h"
#include "base/error.h"
#include "frontend/compiled.h"
#include "frontend/modes.h"
#include "frontend/plan_settings.h"
#include "frontend/retrace.h"
#include "ir/trace.h"
#include "ir/watch.h"
#include "tenon/compile.h"
#include "transforms/tape.h"

namespace tn {

using Entry = std::shared_ptr<const Compiled>;
using ArgumentTypes = std::vector<TypeRef>;

struct CompiledFunction::State {
  static constexpr size_t kMost = 256;  // the least recently used go first

  Function f;
  CompileOptions options;
  RunDemands demands;
  bool shapeless;
  int donated;
  std::mutex mutex = {};
  std::vector<Entry> entries = {};  // the last used at the end
  RetraceLog log = {};
  CallStats stats = {};

  Entry find(const Tensors& args, const ArgumentTypes& types, std::vector<Binding>& sizes) {
    std::vector<uint8_t> watched = watching(args);
    auto found = std::find_if(entries.rbegin(), entries.rend(), [&](const Entry& e) {
      return e->watched() == watched && e->takes(types, sizes);
    });
    if (found == entries.rend()) return nullptr;
    std::rotate(found.base() - 1, found.base(), entries.end());
    ++stats.hits;
    return entries.back();
  }
  Entry known(const Tensors& args, const ArgumentTypes& types, std::vector<Binding>& sizes) {
    std::lock_guard lock(mutex);
    return find(args, types, sizes);
  }

  /// Sizes are constants of a trace until they vary.
  Pattern pattern_for(const ArgumentTypes& types) {
    if (shapeless) return shapeless_pattern(types);
    std::lock_guard lock(mutex);
    for (size_t i = entries.size(); i-- > 0;)
      if (auto wider = generalised(entries[i]->pattern(), types)) return *wider;
    return exact_pattern(types);
  }

  /// Why no entry takes these.
  Retrace reason_for(const ArgumentTypes& types) {
    std::lock_guard lock(mutex);
    Retrace why{.call = current_loc};
    if (entries.empty()) return why;
    const Entry& nearest = entries.back();
    why.differences = differences(nearest->pattern().types, types);
    std::vector<Binding> sizes;
    std::vector<SymbolPlace> places;
    add_symbols(nearest->pattern(), name_of, places);
    if (why.differences.empty() && nearest->pattern().matches(types, sizes))
      if (auto broken = broken_guard(nearest->guards(), sizes, places)) why.differences = {*broken};
    if (auto policy = other_policy(nearest->narrow())) why.differences.push_back(*policy);
    if (why.differences.empty()) why.differences = {inside_another_trace()};
    why.reason = why.differences[0].reason;
    return why;
  }
  static std::string name_of(size_t argument) { return format("argument {}", argument); }
  static std::vector<Difference> differences(const ArgumentTypes& from, const ArgumentTypes& to) {
    if (from.size() != to.size())
      return {{TraceReason::structure, "the number of arguments", format("{}", from.size()),
               format("{}", to.size())}};
    std::vector<Difference> out;
    for (size_t i = 0; i < to.size(); ++i) add_differences(name_of(i), from[i], to[i], out);
    return out;
  }

  Entry traced(const Tensors& args, const ArgumentTypes& types, std::vector<Binding>& sizes) {
    Retrace why = reason_for(types);
    Pattern pattern = pattern_for(types);
    add_symbols(pattern, name_of, why.symbols);
    auto made = std::make_shared<Compiled>(f, args, std::move(pattern), options, demands);
    if (donated > 0) made->donate(std::vector<bool>(static_cast<size_t>(donated), true));
    why.assumed = made->assumed();
    made->takes(types, sizes);
    std::lock_guard lock(mutex);
    debug_trace("function", why);
    log.add(std::move(why));
    if (made->is_bound()) return made;
    if (entries.size() == kMost) {
      entries[0]->count(stats);
      entries.erase(entries.begin());
    }
    return entries.emplace_back(std::move(made));
  }

  Entry entry(const Tensors& args, std::vector<Binding>& sizes) {
    check_given(args, "compile", "argument");
    ArgumentTypes types;
    types.reserve(args.size());
    for (const Tensor& t : args) types.push_back(type_of(t));
    if (Entry found = known(args, types, sizes)) return found;
    // A trace inside a trace does not wait: two threads could wait for each other.
    std::unique_lock alone(*tracing, std::defer_lock);
    if (!Trace::current()) alone.lock();
    if (Entry found = alone ? known(args, types, sizes) : nullptr) return found;
    return traced(args, types, sizes);
  }
  PerProcess<std::mutex> tracing = {};  // a child of fork has not the thread that traces
};

static RunDemands demands_of(const CompileSettings& settings) {
  if (!(settings.timeout >= 0)) fail("compile: a timeout is seconds, not {}", settings.timeout);
  check_runs_here(settings.plan);
  if (!std::ranges::count(kModes, settings.mode))
    fail("compile: mode is one of {}, not '{}'", join(kModes, ", "), settings.mode);
  return {.memory_limit = settings.memory_limit,
          .check = settings.check,
          .timeout = settings.timeout,
          .timeout_fails = settings.timeout_fails,
          .keeps_lock = settings.mode == kReduceOverhead,
          .tunes = settings.mode == kMaxAutotune};
}

CompiledFunction::CompiledFunction(Function f, CompileSettings settings)
    : state_(new State{
          .f = std::move(f),
          .options = options_of(settings.optimization_level, settings.plan),
          .demands = demands_of(settings),
          .shapeless = settings.shapeless,
          .donated = settings.donated,
      }) {}

static std::atomic<bool>& disabled_flag() {
  static std::atomic<bool> flag = [] {
    const char* text = std::getenv("TENON_DISABLE_COMPILE");
    constexpr std::string_view kNot[] = {"", "0", "false", "no", "off"};
    return text && !std::ranges::count(kNot, std::string_view(text));
  }();
  return flag;
}

bool disable_compile(bool disabled) { return disabled_flag().exchange(disabled); }
bool is_compile_disabled() { return disabled_flag().load(std::memory_order_relaxed); }

Tensors CompiledFunction::operator()(const Tensors& args) const { return (*this)(Tensors(args)); }

Tensors CompiledFunction::operator()(Tensors&& args) const {
  if (is_compile_disabled()) return state_->f(args);
  std::vector<Binding> sizes;
  Entry entry = state_->entry(args, sizes);
  bool blocked = entry->loses_leaves(args);
  Tensors results = (*entry)(args, sizes);
  if (blocked) mark_blocked(results);
  return results;
}

std::string CompiledFunction::show(std::string_view stage, const Tensors& args) const {
  std::vector<Binding> sizes;
  return state_->entry(args, sizes)->show(stage);
}

std::string CompiledFunction::explain(const Tensors& args) const {
  std::vector<Binding> sizes;
  Explanation made = state_->entry(args, sizes)->explain(sizes);
  std::lock_guard lock(state_->mutex);
  add_traces(made, state_->log.kept());
  return to_text(made);
}

CallStats CompiledFunction::stats() const {
  std::lock_guard lock(state_->mutex);
  CallStats stats = state_->stats;
  for (const Entry& entry : state_->entries) entry->count(stats);
  state_->log.count(stats);
  return stats;
}

std::vector<std::string> CompiledFunction::why_recompiled() const {
  std::lock_guard lock(state_->mutex);
  std::vector<std::string> lines;
  for (const Retrace& r : state_->log.kept()) lines.push_back(to_text(r));
  return lines;
}

CompiledFunction compile(Function f, CompileSettings settings) {
  return {std::move(f), std::move(settings)};
}

CompiledFunction compile(Function f, int optimization_level) {
  return {std::move(f), {.optimization_level = optimization_level}};
}

}  // namespace tn
