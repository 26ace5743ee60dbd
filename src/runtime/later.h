#pragma once
// Jobs in the background, for layers below the one that owns the threads.
#include "tenon/callback.h"

namespace tn {

/// Puts a job in the queue of the thread that compiles. False: it has ended, and the job is
/// dropped. Null where the library has no such thread. Jobs do not throw, and the end of the
/// process waits for the one under way. Those with `compiles` may use a code generator that the
/// first caller has warmed up before. With `compiles` not under a lock: it may compile.
inline bool (*run_later)(Callback<void()> job, bool compiles) = nullptr;

}  // namespace tn
