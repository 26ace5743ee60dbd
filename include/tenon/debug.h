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

/// Where printed lines go instead of the standard output. An empty function restores that.
void set_print_sink(std::function<void(std::string_view line)> sink);

}  // namespace tn
