#pragma once
// Index checks: an index out of bounds is an error in eager code, and in compiled functions while
// `debug_indices` is on.
#include <atomic>
#include <string_view>
#include <unordered_map>

#include "observe/check.h"
#include "ops/index_bounds.h"

namespace tn {

/// Whether compiled functions check indices, in the whole process.
extern std::atomic<bool> compiled_indices_are_checked;

/// Gathers and scatters that this thread runs check their indices.
class IndexChecks {
 public:
  IndexChecks() { ops::indices_are_checked = true; }
  ~IndexChecks() { ops::indices_are_checked = before_; }
  IndexChecks(const IndexChecks&) = delete;

 private:
  bool before_ = ops::indices_are_checked;
};

/// Names of what users called, by the place of the call (`Loc::bits`).
using CallNames = std::unordered_map<uint64_t, std::string_view>;

/// Fails for an index that a run found out of bounds, with the op that was given it and its place,
/// found by evaluating the graph op by op. `names` has calls that are names for other ops.
[[noreturn]] void fail_out_of_bounds(const CheckedRun& run, const ops::OutOfBounds& error,
                                     const CallNames& names = {});

}  // namespace tn
