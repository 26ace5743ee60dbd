#pragma once
// What an Executable holds.
#include <atomic>

#include "executable/program.h"
#include "tenon/executable.h"

namespace tn {

struct Executable::State {
  explicit State(std::shared_ptr<const Program> made);

  const std::shared_ptr<const Program> program;
  std::vector<InputInfo> inputs;
  std::vector<OutputInfo> outputs;
  CompileCounts before;  // of what made it
  std::atomic<int64_t> calls = 0;
};

namespace source {
struct CSource;
}

struct NamedExecutable {
  std::string name;
  Executable f;
};
/// Executables as functions of one C file. Fails where sizes are open.
source::CSource c_source(std::span<const NamedExecutable> functions);

struct PythonFiles {
  std::string text, constants;
};
/// Executables as functions of one Python file, and their constants as a safetensors file `file`
/// that is read from beside it. Without a name, constants are the last arguments.
PythonFiles python_files(std::span<const NamedExecutable> functions, std::string_view target,
                         std::string_view file);

}  // namespace tn
