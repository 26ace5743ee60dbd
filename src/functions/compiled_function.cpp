// tn::compile: traces of a C++ function by the types of its arguments.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <optional>
#include <span>

#include "base/error.h"
#include "eval/modes.h"
#include "eval/run_together.h"
#include "functions/plan_settings.h"
#include "functions/trace_table.h"
#include "ir/watch.h"
#include "tenon/compile.h"
#include "transforms/tape.h"

namespace tn {

flat::CompiledCall::~CompiledCall() = default;

std::string flat::CompiledCall::name(size_t tensor) {
  tree::Finding finding(tensor);
  visit_arguments(finding);
  return finding.found;
}

std::vector<tree::Setting> flat::CompiledCall::settings() {
  tree::SettingList list;
  visit_arguments(list);
  return std::move(list.all);
}

struct flat::CompiledFunction::State {
  struct Entry {
    std::shared_ptr<const Compiled> compiled;
    std::vector<uint64_t> structure;      // of the arguments
    SharedPtr<const void> kept;           // of the call that was traced
    std::vector<tree::Setting> settings;  // what the structure consists of
    bool is_dead() const { return false; }
    bool has_structure(const tree::Words& words) const {
      return std::equal(structure.begin(), structure.end(), words.begin(), words.end());
    }
  };
  using Table = TraceTable<Entry, std::mutex>;
  class Search;

  CompileOptions options;
  RunDemands demands;
  bool shapeless;
  Table table = {};

  Table::Ref entry(CompiledCall& call, std::vector<Binding>& sizes);
};

namespace {

/// A word of the structure as text for users: a count or a number.
std::string setting_text(uint64_t bits) {
  auto whole = static_cast<int64_t>(bits);
  if (whole > -(int64_t{1} << 32) && whole < int64_t{1} << 32) return format("{}", whole);
  return format("{}", std::bit_cast<double>(bits));
}

/// A setting at the front of words of a structure, which it removes. No value: there is none.
std::optional<std::string> taken_setting(std::span<const uint64_t>& words,
                                         const tree::Setting& setting) {
  if (words.empty()) return {};
  uint64_t first = words.front();
  words = words.subspan(1);
  if (!setting.is_text) return setting.told ? setting.told(first) : setting_text(first);
  if (first > words.size_bytes()) return {};
  std::string text(reinterpret_cast<const char*>(words.data()), first);
  words = words.subspan((first + 7) / 8);
  return format("\"{}\"", text);
}

/// Words of a structure, and what they are.
struct SettingWords {
  std::span<const uint64_t> words;
  const std::vector<tree::Setting>& settings;
};

/// Compares up to where another structure begins: what follows is not the same setting.
void add_setting_differences(SettingWords from, SettingWords to, std::vector<Difference>& out) {
  size_t before = out.size(), i = 0;
  for (; i < std::min(from.settings.size(), to.settings.size()); ++i) {
    const tree::Setting &old = from.settings[i], &setting = to.settings[i];
    if (old.path != setting.path || old.is_text != setting.is_text) break;
    auto was = taken_setting(from.words, old), now = taken_setting(to.words, setting);
    if (!was || !now) break;
    if (*was != *now) out.push_back({TraceReason::constant, setting.path, *was, *now});
  }
  if (out.size() == before && from.words.size() != to.words.size())
    out.push_back({TraceReason::structure, "the structure of the arguments", "another",
                   format("of {} words", to.words.size())});
}

}  // namespace

/// Finds the trace that serves a call, or makes it.
class flat::CompiledFunction::State::Search {
 public:
  Search(State& state, CompiledCall& call, std::vector<Binding>& sizes)
      : state_(state), call_(call), watched_(watching(call.in.tensors)), sizes_(sizes) {
    types_.reserve(call.in.tensors.size());
    for (const Tensor& t : call.in.tensors) types_.push_back(type_of(t));
  }
  bool is_served_by(const Entry& known) {
    return known.has_structure(call_.in.structure) && known.compiled->watched() == watched_ &&
           known.compiled->takes(types_, sizes_);
  }
  Table::Ref trace() {
    auto name = [this](size_t i) { return call_.name(i); };
    Table::Ref nearest = state_.table.latest();
    Retrace why = nearest ? reason_beside(*nearest->compiled, differences(*nearest), types_, name,
                                          [] { return std::optional<Difference>(); })
                          : Retrace{.call = current_loc};
    Pattern pattern = this->pattern();
    add_symbols(pattern, name, why.symbols);
    auto traced = [this](const Tensors& params) { return call_.trace(params); };
    auto made = std::make_shared<Compiled>(traced, call_.in.tensors, std::move(pattern),
                                           state_.options, state_.demands);
    if (call_.donated > 0) made->donate(std::vector<bool>(call_.donated, true));
    made->takes(types_, sizes_);
    const tree::Words& words = call_.in.structure;
    auto entry = std::make_shared<Entry>(std::move(made), std::vector(words.begin(), words.end()),
                                         call_.kept(), call_.settings());
    return state_.table.add(std::move(entry), std::move(why), "function");
  }

 private:
  /// Sizes are constants of a trace until they vary.
  Pattern pattern() const {
    if (state_.shapeless) return shapeless_pattern(types_);
    std::optional<Pattern> wider;
    state_.table.latest([&](const Entry& known) {
      return known.has_structure(call_.in.structure) &&
             (wider = generalised(known.compiled->pattern(), types_)).has_value();
    });
    return wider ? *wider : exact_pattern(types_);
  }
  std::vector<Difference> differences(const Entry& from) const {
    const std::vector<TypeRef>& known = from.compiled->pattern().types;
    std::vector<Difference> out;
    const tree::Words& words = call_.in.structure;
    if (!from.has_structure(words))
      add_setting_differences({from.structure, from.settings},
                              {{words.begin(), words.end()}, call_.settings()}, out);
    if (known.size() != types_.size()) {
      if (out.empty())
        out.push_back({TraceReason::structure, "the number of tensors in the arguments",
                       format("{}", known.size()), format("{}", types_.size())});
      return out;
    }
    for (size_t i = 0; i < known.size(); ++i)
      add_differences(call_.name(i), known[i], types_[i], out);
    return out;
  }

  State& state_;
  CompiledCall& call_;
  std::vector<TypeRef> types_;
  std::vector<uint8_t> watched_;
  std::vector<Binding>& sizes_;  // of the trace that serves
};

auto flat::CompiledFunction::State::entry(CompiledCall& call, std::vector<Binding>& sizes)
    -> Table::Ref {
  return table.find_or_trace(Search(*this, call, sizes));
}

static RunDemands demands_of(const CompileSettings& settings) {
  if (!(settings.timeout >= 0))
    fail("compile: timeout must be 0 seconds or more, not {}", settings.timeout);
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

flat::CompiledFunction::CompiledFunction()
    : CompiledFunction(CompileSettings(), std::source_location::current()) {}
flat::CompiledFunction::CompiledFunction(const CompileSettings& settings,
                                         const std::source_location& at) {
  Place here(at);
  state_ = SharedPtr<State>::make(options_of(settings.optimization_level, settings.plan),
                                  demands_of(settings), settings.shapeless);
}

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

void flat::CompiledFunction::operator()(CompiledCall& call) const {
  LocScope scope(call.place);
  if (is_compile_disabled()) {
    Tensors results = call.trace(call.in.tensors);
    evaluate_together(results);
    return call.finish(std::move(results), call.kept().get());
  }
  std::vector<Binding> sizes;
  State::Table::Ref entry = state_->entry(call, sizes);
  const Compiled& compiled = *entry->compiled;
  bool blocked = compiled.loses_leaves(call.in.tensors);
  Tensors results = compiled(call.in.tensors, sizes);
  if (blocked) mark_blocked(results);
  call.finish(std::move(results), entry->kept.get());
}

std::string flat::CompiledFunction::show(std::string_view stage, CompiledCall& call) const {
  std::vector<Binding> sizes;
  return state_->entry(call, sizes)->compiled->show(stage);
}

std::string flat::CompiledFunction::explain(CompiledCall& call) const {
  std::vector<Binding> sizes;
  Explanation made = state_->entry(call, sizes)->compiled->explain(sizes);
  add_traces(made, state_->table.log());
  return to_text(made);
}

CallStats flat::CompiledFunction::stats() const { return state_->table.stats(); }

std::vector<std::string> flat::CompiledFunction::why_recompiled() const {
  return state_->table.why_recompiled();
}

}  // namespace tn
