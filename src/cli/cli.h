#pragma once
// The `tenon` command, for the program of that name and for `python -m tenon`.
#include <string>
#include <vector>

#include "tenon/callback.h"
#include "tenon/executable.h"

namespace CLI {
class App;
}

namespace tn {

/// Exit codes.
enum Exit : int {
  kDone = 0,
  kUserFault = 1,  // of a program or file of the user's
  kUsage = 2,
  kDefect = 3,             // of ours
  kBrokenPipe = 128 + 13,  // as a shell says it
};

/// The options of `tenon compile`.
struct CompileRequest {
  std::string source;  // "model.py:function", "graph.tn"
  std::vector<InputInfo> inputs;
  std::vector<std::string> values;  // constants, as they are written in Python: "axis=1"
  std::string output;
  std::vector<std::string> targets = {"native"};
  int level = 3;
  bool debug = true;
};

/// What only the program around the commands can do.
struct Host {
  /// Compiles a function in Python and saves it. Without it, that is left to another process.
  Callback<void(const CompileRequest& request)> compile_python = {};
  std::vector<void (*)(CLI::App& app)> more_commands = {};
  std::string python = {};  // the interpreter that runs programs; "": see python_of
};
/// The host's, else what TENON_PYTHON names, else the first in the path.
std::string python_of(const Host& host);

/// Runs a command; `args` without the name of the program. Returns the exit code. Throws what the
/// host throws.
int run_command_line(std::vector<std::string> args, const Host& host);

}  // namespace tn
