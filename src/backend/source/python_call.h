#pragma once
// What is asked how an op is written in Python, with NumPy, PyTorch or JAX.
#include "backend/source/spelling.h"

namespace tn::source {

/// The op that is about to be written.
struct PythonCall {
  std::string_view target;  // "numpy", "torch", "jax"
  const OpDef* called = nullptr;
  Types in, out;

  virtual ~PythonCall() = default;
  /// `text` with what stands in braces filled in:
  ///
  ///     {0} {1} {*}       operands, in parentheses where they need them; all of them
  ///     {axis}            an attribute by its name, as a literal
  ///     {xp}              np, torch or jnp
  ///     {0.shape} {0.dtype} {0.rank} {out.shape} {out.dtype}
  ///     {{ }}             braces
  ///
  /// A name that begins with an underscore, `_conv(`, is a function of the prelude.
  virtual std::string fill(std::string_view text) = 0;
  /// A size as an expression.
  virtual std::string size(Dim size) = 0;
  virtual std::string size(Offset offset) = 0;

  bool is(std::string_view name) const { return target == name; }
  std::string fill(std::string_view numpy, std::string_view torch, std::string_view jax) {
    return fill(is("numpy") ? numpy : is("torch") ? torch : jax);
  }
};

/// Its text is "" where the library has no form of the op.
using PythonSpelling = Spelling<PythonCall>;
/// Null for an op whose text follows from its family, or that has none.
const PythonSpelling* python_spelling(const OpDef& op);

}  // namespace tn::source
