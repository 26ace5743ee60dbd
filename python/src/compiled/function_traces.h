#pragma once
// The traces of one compiled Python function: found by the arguments of a call, or made.
#include "compiled/captured_variables.h"
#include "compiled/object_guards.h"
#include "functions/trace_table.h"
#include "tensors/given_away.h"

namespace tn::python {

using Places = std::vector<size_t>;

/// A tree that a trace made, and which of its tensors are numbers.
struct ResultTree {
  TensorTree tree;
  Places numbers = {};
  std::vector<nb::object> removed = {};  // of outputs: keys that the function takes away

  explicit ResultTree(TensorTree made);
  /// The leaves with other tensors in place of those.
  Leaves with(std::span<Tensor> others) const;
};

/// One trace and what it made.
struct TraceEntry {
  CallKey key;
  Places given = {};     // numbers among the arguments that may have any value
  Places constant = {};  // numbers whose value the function needs at trace time
  std::vector<std::string> constant_reads = {};  // attributes likewise
  std::shared_ptr<const Compiled> compiled = {};
  std::optional<ResultTree> out = {}, state = {};  // what it returns, and leaves behind in outputs
  std::vector<VariableChange> variables = {};      // of the state
  ObjectGuards objects = {};                       // what it has read of plain ones
  std::vector<Donated> donated = {};
  bool returns_shared = false;  // a container that others hold, with what the trace put there
  bool asked = false;           // needed an unknown value, and caught the error

  bool is_dead() const { return key.is_dead(); }
  /// Then `args.sizes` has the values of the symbols.
  bool serves(CallArguments& args) const;
  nb::object run(CallArguments& args, const StateTrees& trees) const;
};

/// How a function is compiled.
struct FunctionSettings {
  StaticArguments constants = {};
  StateTrees state = {};
  std::vector<size_t> donated = {};  // arguments whose memory results may take
  bool shapeless = false;
  CompileOptions options = {};
  RunDemands demands = {};
};

/// Names of the first `count` arguments of `f`, as far as its signature has them.
CallKey::Names names_of_arguments(nb::handle f, size_t count);

/// Python's lock guards it. It holds no function, so that one can hold it.
class FunctionTraces {
 public:
  using Table = TraceTable<TraceEntry, GuardedByHost>;
  using Entry = Table::Ref;
  explicit FunctionTraces(FunctionSettings given) : settings(std::move(given)) {}

  /// The trace that serves a call: one that is there, or a new one.
  Entry entry(CallArguments& args);
  const Table& table() const { return table_; }

  int traverse(visitproc visit, void* arg) const;
  void clear();

  FunctionSettings settings;
  std::unique_ptr<CallArguments> spare;  // keeps its memory between calls

 private:
  /// What a new trace leaves open.
  struct Open {
    Places given = {}, constant = {};
    std::vector<OpenRead> reads = {};
    std::vector<std::string> constant_reads = {};
    Pattern pattern = {};
    bool has_values() const { return !given.empty() || !reads.empty(); }
    bool has_numbers() const;
    void fix_numbers();
    void fix_values();
  };

  void forget_other_code(nb::handle f);
  Entry nearest(const CallArguments& args) const;
  Open open_for(const CallArguments& args, const TraceEntry* like) const;
  Retrace reason_for(CallArguments& args, const CallKey::Names& names) const;
  Entry trace(CallArguments& args);
  Entry trace(const CallArguments& args, const Open& open) const;
  Tensors run_python(const CallArguments& args, const Tensors& params,
                     std::span<const OpenRead> open, TraceEntry& entry) const;

  Table table_;
  nb::object code_;  // of the function that they are traces of, if it has one
};

}  // namespace tn::python
