#pragma once
// Printing and checking values from inside functions. In a traced function this happens when the
// function runs.
#include "tenon/callback.h"
#include "tenon/tensor.h"

namespace tn {

/// Prints `text`, with a value in place of every `{}`. Inside vmap it prints once for every
/// example, inside a loop once for every step.
void print(std::string_view text, const Tensors& values = {});

/// Fails with `text`, formatted as by print, unless all of `condition` is true. Inside a traced
/// function it fails when that runs.
void check(const Operand& condition, std::string_view text, const Tensors& values = {});

/// What debug_nans searches computed values for.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // a name of an enumerator is no name of its own
enum class BadValues : uint8_t { none, nan, nan_and_inf };
#pragma GCC diagnostic pop

/// From now on, in the whole process, a computed value that contains what is `sought` is an error.
/// It names the op that produced the value first and the user's line. TENON_DEBUG_NANS=1 (or inf)
/// in the environment enables the check at start. Returns the former setting.
BadValues debug_nans(BadValues sought = BadValues::nan);

/// From now on, in the whole process, an index out of bounds in a compiled function is an error
/// that names the op, the index and the user's line. While enabled, compiled functions are
/// interpreted. While disabled, compiled code clamps indices of reads and drops writes. Code
/// outside of compiled functions always checks. TENON_DEBUG_INDICES=1 in the environment enables it
/// at start. Returns the former setting.
bool debug_indices(bool checked = true);

/// Where printed lines go instead of the standard output. An empty function restores that.
void set_print_sink(Callback<void(std::string_view line)> sink);

}  // namespace tn
