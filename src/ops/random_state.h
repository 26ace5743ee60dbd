#pragma once
// The random state of the calling thread, among workers.
#include <cstdint>
#include <span>

#include "base/function_ref.h"

namespace tn::ops {

/// Gives this thread the state of the first worker, unless the user has set one here.
/// `take_of_first` replaces the words of a key by those of the first worker.
void agree_on_state(FunctionRef<void(std::span<uint32_t, 2>)> take_of_first);

}  // namespace tn::ops
