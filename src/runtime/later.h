#pragma once
// Jobs in the background, for layers below the one that owns the threads.
#include "tenon/callback.h"

namespace tn {

/// Puts a job in a queue that a thread works off; those that compile have one of their own. False:
/// there is none any more, and the job is dropped. Null where the library has no such threads. Jobs
/// do not throw, and the end of the process waits for the one under way. Those that compile may use
/// a code generator that the first caller has warmed up before. Not under a lock: it may compile.
inline bool (*run_later)(Callback<void()> job, bool compiles) = nullptr;

}  // namespace tn
