#include "functions/retrace.h"

#include <algorithm>

#include "base/debug_log.h"
#include "ir/dtype.h"
#include "ir/precision.h"
#include "observe/explain.h"
#include "runtime/device.h"
#include "tenon/matmul_precision.h"

namespace tn {

std::string_view to_text(TraceReason reason) {
  constexpr std::string_view kNames[kTraceReasons] = {
      "first", "size", "number", "constant", "dtype", "device", "rank", "structure", "guard"};
  return kNames[static_cast<size_t>(reason)];
}

std::string to_text(const Difference& d) {
  if (d.reason == TraceReason::guard) return format("{} held, now {}", d.path, d.to);
  return format("{} was {}, now {}", d.path, d.from, d.to);
}

std::string to_text(const Retrace& retrace) {
  std::string text = retrace.differences.empty() ? "first call" : "";
  for (const Difference& d : retrace.differences) {
    if (!text.empty()) text += ", ";
    text += to_text(d);
  }
  if (retrace.call) text += format(" ({})", to_text(retrace.call));
  for (const SymbolPlace& s : retrace.symbols) text += format("\n  {} is {}", s.symbol, s.path);
  for (const SizeGuard& g : retrace.assumed)
    text += format("\n  serves {}{}", to_text(g), g.loc ? format(" ({})", to_text(g.loc)) : "");
  for (const std::string& note : retrace.notes) text += format("\n  {}", note);
  return text;
}

std::string to_text(const CallStats& s) {
  auto count = [](int64_t n, std::string_view what) {
    return format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  std::string text = count(s.traces, "trace");
  const char* before = " (";
  for (const auto& [reason, times] : s.traces_by_reason)
    text += format("{}{} {}", std::exchange(before, ", "), times, reason);
  if (!s.traces_by_reason.empty()) text += ")";
  return text + format(", {} compiled, {} compiled, {}, {}", count(s.graph_compiles, "graph"),
                       count(s.kernel_compiles, "kernel"), count(s.replans, "replan"),
                       count(s.hits, "hit"));
}

void add_traces(Explanation& explanation, std::span<const Retrace> log) {
  for (const Retrace& retrace : log) {
    explanation.traces.push_back(to_text(retrace));
    for (ExplainedSize& size : explanation.sizes)
      for (const SymbolPlace& known : retrace.symbols)
        if (to_text(known.symbol) == size.symbol) size.path = known.path;
  }
}

void debug_trace(std::string_view function, const Retrace& retrace) {
  bool first = retrace.differences.empty();
  std::string open;
  for (const SymbolPlace& s : retrace.symbols) open += format("; {} becomes symbolic", s.path);
  std::string why = to_text(retrace);
  debug_compile("{} {}: {}{}", first ? "Tracing" : "Recompiling", function,
                why.substr(0, why.find('\n')), open);
}

void RetraceLog::add(Retrace retrace) {
  ++by_reason_[static_cast<size_t>(retrace.reason)];
  if (kept_.size() == kMost) kept_.erase(kept_.begin());
  kept_.push_back(std::move(retrace));
}

void RetraceLog::count(CallStats& stats) const {
  for (size_t i = 0; i < kTraceReasons; ++i) {
    if (by_reason_[i] == 0) continue;
    stats.traces += by_reason_[i];
    stats.traces_by_reason.emplace(to_text(static_cast<TraceReason>(i)), by_reason_[i]);
  }
}

void add_symbols(const Pattern& pattern, const Callback<std::string(size_t)>& name,
                 std::vector<SymbolPlace>& out) {
  for (size_t i = 0; i < pattern.types.size(); ++i) {
    for (int k = 0; k < pattern.types[i]->rank(); ++k) {
      Dim size = pattern.types[i]->shape[k];
      if (contains(pattern.symbols, size) && !find_symbol(out, size))
        out.push_back({size, format("{}.shape[{}]", name(i), k)});
    }
  }
}

void add_differences(const std::string& path, TypeRef from, TypeRef to,
                     std::vector<Difference>& out) {
  if (from == to) return;
  if (from->dtype != to->dtype)
    out.push_back({TraceReason::dtype, path + ".dtype", std::string(info(from->dtype).name),
                   std::string(info(to->dtype).name)});
  if (from->device != to->device)
    out.push_back(
        {TraceReason::device, path + ".device", to_text(from->device), to_text(to->device)});
  if (from->rank() != to->rank())
    return out.push_back(
        {TraceReason::rank, path + ".ndim", format("{}", from->rank()), format("{}", to->rank())});
  for (int k = 0; k < from->rank(); ++k)
    if (from->shape[k].is_const() && !identical(from->shape[k], to->shape[k]))
      out.push_back({TraceReason::size, format("{}.shape[{}]", path, k), to_text(from->shape[k]),
                     to_text(to->shape[k])});
}

std::optional<Difference> other_policy(DType known) {
  if (known == narrow_type) return {};
  auto text = [](DType t) { return t == DType::f32 ? "off" : std::string(name_of(t)); };
  return Difference{TraceReason::constant, "autocast", text(known), text(narrow_type)};
}

std::optional<Difference> other_products(Products known) {
  if (known == wanted_products()) return {};
  return Difference{TraceReason::constant, "matmul_precision", std::string(name_of(known)),
                    std::string(matmul_precision())};
}

std::optional<Difference> other_device(Device known) {
  if (known == current_device()) return {};
  return Difference{TraceReason::device, "the default device", to_text(known),
                    to_text(current_device())};
}

Difference inside_another_trace() {
  return {TraceReason::size, "the trace around", "one with other sizes", "another"};
}

std::optional<Difference> broken_guard(std::span<const SizeGuard> guards,
                                       std::span<const Binding> sizes,
                                       std::span<const SymbolPlace> places) {
  auto broken = std::ranges::find_if(guards, [&](const SizeGuard& g) { return !holds(g, sizes); });
  if (broken == guards.end()) return {};
  std::string now;
  for (Dim symbol : symbols_of(broken->a - broken->b)) {
    const Binding* value = find_symbol(sizes, symbol);
    if (!value) continue;
    const SymbolPlace* place = find_symbol(places, symbol);
    now += format("{}{} is {}", now.empty() ? "" : ", ", place ? place->path : to_text(symbol),
                  value->value);
  }
  std::string where = broken->loc ? format(" ({})", to_text(broken->loc)) : "";
  return Difference{TraceReason::guard, to_text(*broken) + where, "", now};
}

}  // namespace tn
