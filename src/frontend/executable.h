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

/// An executable as C, of files and functions called `name`. Fails where sizes are open.
source::CSource c_source(const Executable& f, std::string_view name);

}  // namespace tn
