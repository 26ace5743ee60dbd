#pragma once
// The modes of compilation, as users write them.
#include <array>
#include <string_view>

namespace tn {

inline constexpr std::string_view kReduceOverhead = "reduce-overhead",
                                  kMaxAutotune = "max-autotune";
inline constexpr std::array<std::string_view, 3> kModes = {"default", kReduceOverhead,
                                                           kMaxAutotune};

/// In mode reduce-overhead, plans that run no longer than this keep the host's lock: its other
/// threads hardly notice, and calls cost less.
inline constexpr double kShortSeconds = 50e-6;

}  // namespace tn
