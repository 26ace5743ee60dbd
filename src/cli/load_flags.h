#pragma once
// How a command loads the executable that it is given.
#include <CLI/CLI.hpp>

#include "tenon/executable.h"

namespace tn {

struct LoadFlags {
  bool trust = false, verify = false, no_verify = false;

  /// --verify and --no-verify, and where code of the file is run, --trust.
  void add_to(CLI::App& command, bool runs_code = true);
  LoadSettings settings() const;
};

}  // namespace tn
