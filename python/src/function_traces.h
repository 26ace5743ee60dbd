#pragma once
// The traces of one compiled Python function: found by the arguments of a call, or made.
#include <mutex>

#include "call_arguments.h"
#include "frontend/compiled.h"
#include "tensor_tree.h"

namespace tn::python {

using Places = std::vector<size_t>;

/// One trace and the tree of results it made.
struct TraceEntry {
  CallKey key;
  Places given = {};     // numbers among the arguments that may have any value
  Places constant = {};  // numbers whose value the function asks for
  std::shared_ptr<const Compiled> compiled = {};
  std::optional<TensorTree> out = {};
  Places numbers = {};  // among the results

  /// Then `args.sizes` has the values of the symbols.
  bool serves(CallArguments& args) const;
  nb::object run(const CallArguments& args) const;
  /// Notes which results are numbers, and lets go of the tensors of the trace.
  void forget_tensors();
};

/// Python's lock guards it.
class FunctionTraces {
 public:
  using Entry = std::shared_ptr<const TraceEntry>;
  FunctionTraces(nb::object f, CompileOptions options, bool shapeless)
      : f(std::move(f)), options(std::move(options)), shapeless(shapeless) {}

  /// The trace that serves a call: one that is there, or a new one.
  Entry entry(CallArguments& args);
  /// The one used last, or null.
  Entry latest() const { return entries_.empty() ? nullptr : entries_.back(); }
  CallStats stats() const;
  const TraceLog& log() const { return log_; }

  int traverse(visitproc visit, void* arg) const;
  void clear();

  nb::object f;
  const CompileOptions options;
  const bool shapeless;

 private:
  /// What a new trace leaves open.
  struct Open {
    Places given = {}, constant = {};
    Pattern pattern = {};
  };

  Entry find(CallArguments& args);
  Entry at(size_t i) const { return i < entries_.size() ? entries_[i] : nullptr; }
  Entry nearest(const CallArguments& args) const;
  Open open_for(const CallArguments& args, const TraceEntry* like) const;
  Retrace reason_for(CallArguments& args, const CallKey::Names& names) const;
  Entry trace(CallArguments& args);
  Entry trace(const CallArguments& args, const Open& open) const;
  Entry add(Entry made);

  static constexpr size_t kMost = 256;  // the least recently used go first
  std::vector<Entry> entries_;          // the last used at the end
  TraceLog log_;
  int64_t hits_ = 0;
  std::timed_mutex tracing_;  // one trace at a time: others may find what it makes
};

}  // namespace tn::python
