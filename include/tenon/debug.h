#pragma once
// Looking at values, and checking them, from inside functions: traced ones too, where a value is
// known only when the function runs.
#include "tenon/tensor.h"

namespace tn {

/// Prints `text`, with a value in place of every `{}`. Inside vmap it prints once for every
/// example, inside a loop once for every step.
void print(std::string_view text, const Tensors& values = {});

/// Fails with `text`, in which values stand as in print, unless all of `condition` is true. Inside
/// a traced function it fails when that runs.
void check(const Operand& condition, std::string_view text, const Tensors& values = {});

/// What computed values are looked through for.
enum class BadValues : uint8_t { none, nan, nan_and_inf };

/// From now on, in the whole process, computing a value that has what is `sought` fails, with an
/// error that names the op which made it first and the user's line. TENON_DEBUG_NANS=1 (or inf) in
/// the environment does so from the start. Returns what was sought before.
BadValues debug_nans(BadValues sought = BadValues::nan);

/// From now on, in the whole process, compiled functions fail for an index out of bounds, with an
/// error that names the op, the index and the user's line; they are interpreted meanwhile. Without
/// it compiled code clamps indices where it reads and drops what it would write there. What is
/// computed at once is always checked. TENON_DEBUG_INDICES=1 in the environment does so from the
/// start. Returns whether it was so before.
bool debug_indices(bool checked = true);

/// Where printed lines go instead of the standard output. An empty function restores that.
void set_print_sink(std::function<void(std::string_view line)> sink);

}  // namespace tn
