#pragma once
// Target: what plans and code are made for.
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tn {

enum class DeviceKind : uint8_t { cpu, cuda, count };

/// A kind of device and its architecture: part of keys, options and files. Only the backend of the
/// kind knows what an architecture is.
struct Target {
  DeviceKind kind = {};
  int16_t arch = 0;  // a higher one of the same kind can do more
  friend auto operator<=>(const Target&, const Target&) = default;
};

/// Approximate costs of work on a target: the input of the compiler's cost model.
struct TargetCosts {
  double scalars_per_ns, multiply_adds_per_ns;  // with operands in fast memory
  double memory_bytes_per_ns,
      library_bytes_per_ns;  // read and written by kernels, and by library calls
  // Scalar operations that are worth repeating rather than storing and reading one tensor; and
  // those of ops that read at other coordinates, as `pad`.
  int repeat_cost, nest_cost;
  int64_t few_evaluations;            // below which repeated work does not matter
  int64_t longest_row;                // elements of a row that stay in fast memory
  int64_t fewest_rows, small_domain;  // fewer rows leave threads idle, unless all is this small
  // Results are written past the caches from the first number of bytes on when nothing reads them
  // soon, and from the second on in any case: they would not stay there.
  int64_t bypass_bytes, bypass_always_bytes;
  int most_bundled;          // kernels that run as one step
  bool channels_last;        // convolutions want the channels of a place side by side
  int64_t waiting_elements;  // so many are read in less time than a chain of kernels waits for one
};
const TargetCosts& costs_of(const Target& target);

/// The CPU target of this process: the default target of plans.
Target host_target();

/// Whether the host runs code for targets of its kind. Other code runs on devices.
bool is_for_host(const Target& target);

/// "x86-64-v4", as in files and messages; "" for a target that does not exist.
std::string_view name_of(const Target& target);

/// Whether this machine runs code for it.
bool runs_here(const Target& target);

/// The target of a name: its own ("x86-64-v3"), "native", or a product's ("haswell", "zen4"). Fails
/// for another, as `who`.
Target target_named(std::string_view name, std::string_view who);
/// Of several names: each target once, the lowest first.
std::vector<Target> targets_named(const std::vector<std::string>& names, std::string_view who);

}  // namespace tn
