// Bad configurations of signals.
#include <filesystem>
#include <fstream>

#include "eval/signal_settings.h"
#include "tenon/error.h"

using namespace tn;

/// The first argument is the folder of files that were interesting so far.
extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  if (*count > 1 && std::filesystem::is_directory((*arguments)[1]))
    std::ofstream(std::filesystem::path((*arguments)[1]) / "signals.yaml")
        << "forward: &all\n  compile: {mode: max-autotune, threshold: 3}\n"
           "  shard: {axis: 0, workers: [0, 1]}\n  backward: \"b\"\nother: *all\n"
           "weights:\n  shard:\n    replicated: true\n";
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    parse_signals({reinterpret_cast<const char*>(data), size}, "f");
  } catch (const UserError&) {  // what a bad file should give
  }
  return 0;
}
