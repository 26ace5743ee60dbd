#pragma once
// Explanation: what the compiler made of a function, as facts and as text.
#include "compiler/compile_graph.h"
#include "compiler/memory_report.h"
#include "sharding/traffic.h"

namespace tn {

/// An op of the optimised graph.
struct ExplainedOp {
  std::string name, type;
  Loc loc;
};

/// What a kernel or a call of the library does.
struct ExplainedStep {
  enum class Kind : uint8_t { code, interpreted, library };

  std::string name;
  Kind kind = Kind::library;
  int32_t step = 0;  // of the plan; kernels that run together share one
  std::vector<ExplainedOp> ops = {};
  std::vector<int32_t> reads = {}, writes = {};  // buffers
  int64_t bytes_read = 0, bytes_written = 0;
  Loc loc = {};
  std::string loops = {}, assembly = {};  // empty: a call of the library alone
};
std::string_view to_text(ExplainedStep::Kind kind);

/// Memory that steps read and write.
struct ExplainedBuffer {
  enum class Role : uint8_t { argument, constant, temporary, result };

  std::string name;
  Role role;
  int64_t bytes;
};
std::string_view to_text(ExplainedBuffer::Role role);

/// A size that varies.
struct ExplainedSize {
  std::string symbol, path;  // "s0", "x.shape[0]"
  int64_t value;             // in the call that is explained
};

struct Explanation {
  std::string function = "function";
  std::vector<std::string> traces = {};  // why each was made
  std::vector<ExplainedSize> sizes = {};
  std::vector<std::string> guards = {};  // assumptions about them
  std::string graph;                     // optimised
  Decisions decisions;
  std::string sharding = {};                        // of what lies on meshes; else empty
  std::vector<sharding::Traffic> collectives = {};  // of a worker
  std::vector<ExplainedBuffer> buffers;
  std::vector<ExplainedStep> steps;
  MemoryReport memory;
  CompileCounts counts = {};  // of all that was compiled for this trace
};

/// Describes a compilation.
Explanation explain(const Compilation& made);
std::string to_text(const Explanation& explanation);

}  // namespace tn
