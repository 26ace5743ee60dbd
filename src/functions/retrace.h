#pragma once
// Why a compiled function was traced, and counters of its calls.
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "functions/pattern.h"
#include "plan/product_setting.h"
#include "tenon/callback.h"
#include "tenon/compile.h"

namespace tn {

struct Explanation;

/// How a call differs from every earlier trace.
enum class TraceReason : uint8_t {
  first,      // there was no trace
  size,       // of a tensor
  number,     // another value of a Python number
  constant,   // another value of anything else that is no tensor
  dtype,      // of a tensor
  device,     // of a tensor, or the default
  rank,       // of a tensor
  structure,  // of a tree, or the number of arguments
  guard,      // an assumption about sizes
};
inline constexpr size_t kTraceReasons = 9;
/// "size"
std::string_view to_text(TraceReason reason);

/// One thing that differs from the trace that came nearest.
struct Difference {
  TraceReason reason;
  std::string path;      // "x.shape[0]", "params['w'].dtype"
  std::string from, to;  // "8", "16"
};
/// "x.shape[0] was 8, now 16"
std::string to_text(const Difference& difference);

/// Where a symbol is the size: "x.shape[0]".
struct SymbolPlace {
  Dim symbol;
  std::string path;
};

/// A trace, and why it was made.
struct Retrace {
  TraceReason reason = TraceReason::first;  // of the first difference
  std::vector<Difference> differences = {};
  Loc call = {};                          // the user's call
  std::vector<SymbolPlace> symbols = {};  // sizes it was traced with as symbols
  std::vector<SizeGuard> assumed = {};    // its assumptions about them, and where it made each
  std::vector<std::string> notes = {};    // such as why a number stayed a constant
};
/// "x.shape[0] was 8, now 16 (train.py:31, in step)"
std::string to_text(const Retrace& retrace);

/// Explains why the function was traced, and what its symbols stand for.
void add_traces(Explanation& explanation, std::span<const Retrace> log);

/// Writes it to the debug log.
void debug_trace(std::string_view function, const Retrace& retrace);

std::string to_text(const CallStats& stats);

/// Why a function was traced, each time; the oldest reasons are dropped, the counts are kept.
class RetraceLog {
 public:
  void add(Retrace retrace);
  const std::vector<Retrace>& kept() const { return kept_; }
  /// Puts the numbers of traces into `stats`.
  void count(CallStats& stats) const;

 private:
  static constexpr size_t kMost = 64;
  std::vector<Retrace> kept_;
  std::array<int64_t, kTraceReasons> by_reason_ = {};
};

/// Where the symbols of a pattern are sizes first; `name(i)` is what argument i is called.
void add_symbols(const Pattern& pattern, const Callback<std::string(size_t)>& name,
                 std::vector<SymbolPlace>& out);
/// How tensors of two types differ: "x.shape[0]" where `path` is "x".
void add_differences(const std::string& path, TypeRef from, TypeRef to,
                     std::vector<Difference>& out);
/// Where the policy of mixed precision (tenon/amp.h) is another, or nothing.
std::optional<Difference> other_policy(DType known);
/// The same of tn.set_matmul_precision, and of the default device.
std::optional<Difference> other_products(Products known);
std::optional<Difference> other_device(Device known);
/// Where nothing else differs: one of the calls had the sizes of a trace around.
Difference inside_another_trace();
/// The first of these that does not hold, as a difference: "s0 < 5 (f.py:3) held, now x.shape[0] is
/// 7".
std::optional<Difference> broken_guard(std::span<const SizeGuard> guards,
                                       std::span<const Binding> sizes,
                                       std::span<const SymbolPlace> places);

}  // namespace tn
