#pragma once
// profile: the time of each step of a function.
//
//     tn::Profile timing = tn::profile([&] { f(x).eval(); });
//     std::cout << timing.to_string();
#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include "tenon/callback.h"
#include "tenon/tensor.h"

namespace tn {

/// A kernel or a call of the library that has run.
struct TimedStep {
  std::string name;
  std::string place;   // the user's line: "main.cpp:12, in loss"
  double began = 0;    // seconds since the function was called
  double seconds = 0;  // that it took
};

struct Profile {
  std::vector<TimedStep> steps;  // in order
  double seconds = 0;            // of the whole call
  /// The lines of the program by the time that their steps took.
  std::string to_string() const;
};

/// Calls `f`, which computes its results (`eval` or `item`), and measures the steps that run on
/// this thread. With several calls, the one with the median time is reported. The first call of a
/// compiled function compiles it, so call it before.
Profile profile(const Callback<void()>& f, int calls = 1,
                std::source_location at = std::source_location::current());

/// What a worker of a mesh did. Times are seconds.
struct WorkerStats {
  int worker = 0;                       // its number
  uint64_t runs = 0;                    // of plans
  uint64_t collectives = 0, bytes = 0;  // that it took part in, and in them
  double running = 0;
  double communicating = 0;  // of the time it ran
  double waiting = 0;        // for other workers, of the time it communicated
};
/// Of the workers of this process, since the first call.
std::vector<WorkerStats> worker_stats();

}  // namespace tn
