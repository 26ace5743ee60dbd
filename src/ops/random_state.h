#pragma once
// The random state of the calling thread: among workers, and in loops.
#include <cstdint>
#include <span>

#include "base/function_ref.h"
#include "tenon/tensor.h"

namespace tn::ops {

/// Gives this thread the state of the first worker, unless the user has set one here.
/// `take_of_first` replaces the words of a key by those of the first worker.
void agree_on_state(FunctionRef<void(std::span<uint32_t, 2>)> take_of_first);

/// Replaces the state by `key`, which may be a parameter of a trace, and returns what it was.
Tensor exchange_state(Tensor key);
/// `random::next_key`, also where that is the same in every call of a compiled function.
Tensor take_key();

}  // namespace tn::ops
