// tn::compile: traces of a C++ function by the types of its arguments.
#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "base/error.h"
#include "eval/modes.h"
#include "functions/plan_settings.h"
#include "functions/trace_table.h"
#include "ir/watch.h"
#include "tenon/compile.h"
#include "transforms/tape.h"

namespace tn {

struct CompiledFunction::State {
  struct Entry {
    std::shared_ptr<const Compiled> compiled;
    bool is_dead() const { return false; }
  };
  using Table = TraceTable<Entry, std::mutex>;
  class Call;

  Function f;
  CompileOptions options;
  RunDemands demands;
  bool shapeless;
  int donated;
  Table table = {};

  Table::Ref entry(const Tensors& args, std::vector<Binding>& sizes);
};

class CompiledFunction::State::Call {
 public:
  Call(State& state, const Tensors& args, std::vector<Binding>& sizes)
      : state_(state), args_(args), watched_(watching(args)), sizes_(sizes) {
    types_.reserve(args.size());
    for (const Tensor& t : args) types_.push_back(type_of(t));
  }
  bool is_served_by(const Entry& known) {
    return known.compiled->watched() == watched_ && known.compiled->takes(types_, sizes_);
  }
  Table::Ref trace() {
    Table::Ref nearest = state_.table.latest();
    Retrace why = nearest ? reason_beside(*nearest->compiled, differences(*nearest), types_,
                                          name_of, [] { return std::optional<Difference>(); })
                          : Retrace{.call = current_loc};
    Pattern pattern = this->pattern();
    add_symbols(pattern, name_of, why.symbols);
    auto made = std::make_shared<Compiled>(state_.f, args_, std::move(pattern), state_.options,
                                           state_.demands);
    if (state_.donated > 0)
      made->donate(std::vector<bool>(static_cast<size_t>(state_.donated), true));
    made->takes(types_, sizes_);
    return state_.table.add(std::make_shared<Entry>(std::move(made)), std::move(why), "function");
  }

 private:
  /// Sizes are constants of a trace until they vary.
  Pattern pattern() const {
    if (state_.shapeless) return shapeless_pattern(types_);
    std::optional<Pattern> wider;
    state_.table.latest([&](const Entry& known) {
      return (wider = generalised(known.compiled->pattern(), types_)).has_value();
    });
    return wider ? *wider : exact_pattern(types_);
  }
  std::vector<Difference> differences(const Entry& from) const {
    const std::vector<TypeRef>& known = from.compiled->pattern().types;
    if (known.size() != types_.size())
      return {{TraceReason::structure, "the number of arguments", format("{}", known.size()),
               format("{}", types_.size())}};
    std::vector<Difference> out;
    for (size_t i = 0; i < known.size(); ++i) add_differences(name_of(i), known[i], types_[i], out);
    return out;
  }

  static std::string name_of(size_t argument) { return format("argument {}", argument); }

  State& state_;
  const Tensors& args_;
  std::vector<TypeRef> types_;
  std::vector<uint8_t> watched_;
  std::vector<Binding>& sizes_;  // of the trace that serves
};

CompiledFunction::State::Table::Ref CompiledFunction::State::entry(const Tensors& args,
                                                                   std::vector<Binding>& sizes) {
  check_given(args, "compile", "argument");
  return table.find_or_trace(Call(*this, args, sizes));
}

static RunDemands demands_of(const CompileSettings& settings) {
  if (!(settings.timeout >= 0))
    fail("compile: timeout must be a number of seconds above 0, not {}", settings.timeout);
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
  State::Table::Ref entry = state_->entry(args, sizes);
  const Compiled& compiled = *entry->compiled;
  bool blocked = compiled.loses_leaves(args);
  Tensors results = compiled(args, sizes);
  if (blocked) mark_blocked(results);
  return results;
}

std::string CompiledFunction::show(std::string_view stage, const Tensors& args) const {
  std::vector<Binding> sizes;
  return state_->entry(args, sizes)->compiled->show(stage);
}

std::string CompiledFunction::explain(const Tensors& args) const {
  std::vector<Binding> sizes;
  Explanation made = state_->entry(args, sizes)->compiled->explain(sizes);
  add_traces(made, state_->table.log());
  return to_text(made);
}

CallStats CompiledFunction::stats() const { return state_->table.stats(); }

std::vector<std::string> CompiledFunction::why_recompiled() const {
  return state_->table.why_recompiled();
}

CompiledFunction compile(Function f, CompileSettings settings) {
  return {std::move(f), std::move(settings)};
}

CompiledFunction compile(Function f, int optimization_level) {
  return {std::move(f), {.optimization_level = optimization_level}};
}

}  // namespace tn
