#pragma once
// Traces: the context in which a function is traced or transformed, and its side effects.
#include <memory>
#include <string_view>

#include "ir/node.h"

namespace tn {

/// In force on this thread from construction to destruction; traces nest.
class Trace {
 public:
  enum class Values : uint8_t { known, unknown };

  /// `by` names the transform for errors: "vmap". With known values the function's nodes are taped.
  Trace(std::string_view by, Values values);
  ~Trace();
  Trace(const Trace&) = delete;
  /// From here on nodes are recorded on behalf of the surrounding traces only.
  void end();

  const std::string_view by;
  const Values values;
  Trace* const outer;
  uint64_t start = 0;                             // nodes with lower numbers are from before
  Tensors leaves;                                 // of backward(), reached or changed inside
  Tensors effects;                                // results of ops run for what they do
  Tensor anchor;                                  // in loops: changes with every step of them all
  std::vector<std::shared_ptr<const void>> kept;  // alive for as long as the trace

  static Trace* current();
  /// The number for a copy of an argument, made from a node that is taped as `operand`, of the
  /// innermost trace with known values.
  static uint32_t tape_of_argument(uint32_t operand);
  /// Effects are tied to `param` of a loop, and to the loops around it.
  void hold_by(const Tensor& param);
  /// The innermost one in which values are not known, or null.
  static Trace* tracing();
  /// The innermost one that compiles a function, or null. What is made before its `start`, and is
  /// none of its parameters, is a constant of that function.
  static const Trace* compiling();
  /// Ensures that `done`, the result of an effect, is evaluated: eagerly where values are known,
  /// otherwise when the traced function runs.
  static void perform(const Tensor& done);

 private:
  bool ended_ = false;
  uint32_t tape_ = 0,
           tape_around_ = 0;  // its number, and that of the trace it takes arguments from
};

/// `results`, computed when the effects are done.
Tensors tied(Tensors results, const Tensors& effects);

/// Fails because a value that depends on a parameter was needed; `made`: where it was recorded.
[[noreturn]] void fail_unknown_value(Loc made = {});

/// How often that happened on this thread: functions may catch the error and go on.
inline constinit thread_local uint64_t unknown_values_asked = 0;

}  // namespace tn
