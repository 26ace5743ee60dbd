#pragma once
// One thread for work that no caller waits for.
#include <functional>

namespace tn {

/// Runs `job` later, after those given before. It should not throw, and should call stop_if_asked()
/// now and then (base/interrupt.h): the end of the process waits for it.
void in_background(std::function<void()> job);
/// What the code generator keeps for the whole process is made before the background thread is, so
/// that it outlives it: called before the first job that compiles.
void warm_up_compiler();
/// Waits for the job under way and drops the others. The end of the process calls it, and a host
/// language that ends before.
void stop_background();

}  // namespace tn
