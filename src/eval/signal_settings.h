#pragma once
// The configuration of signals: what a YAML file says of each name.
#include <memory>

#include "tenon/signal.h"

namespace tn {

/// Of the names of signals, in bytes.
constexpr size_t kLongestName = 200;

/// Errors begin with `where` and name the line and the key.
std::vector<signal::Settings> parse_signals(std::string_view yaml, std::string_view where);
/// Of a file, with the same bounds.
std::vector<signal::Settings> read_signals(const std::string& path);

}  // namespace tn
