#pragma once
// What ops are called with when they are asked how they are written in Python, with NumPy, PyTorch
// or JAX. The writer is in backend/source/.
#include <string>
#include <string_view>

#include "ir/opdef.h"

namespace tn::source {

/// The op that is about to be written.
struct PythonCall {
  std::string_view target;  // "numpy", "torch", "jax"
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
  /// The name of a function written for the occasion, which takes the inputs of `graph` and returns
  /// its outputs as a tuple.
  virtual std::string function(const Graph& graph, std::string_view name) = 0;

  bool is(std::string_view name) const { return target == name; }
  std::string_view choose(std::string_view numpy, std::string_view torch,
                          std::string_view jax) const {
    return is("numpy") ? numpy : is("torch") ? torch : jax;
  }
  std::string fill(std::string_view numpy, std::string_view torch, std::string_view jax) {
    return fill(choose(numpy, torch, jax));
  }
};

}  // namespace tn::source
