// Bad texts of graphs: what parses must print, and the print must parse to the same.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/graph.h"
#include "tenon/error.h"

using namespace tn;

namespace {

namespace fs = std::filesystem;

/// The graphs of the goldens: they have every kind of line.
void write_seeds(const fs::path& folder) {
  int count = 0;
  for (const char* part : {"ir", "passes", "fusion"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path("tests/golden") / part)) {
      if (entry.path().extension() != ".tn") continue;
      std::stringstream all;
      all << std::ifstream(entry.path()).rdbuf();
      std::string text = all.str();
      for (size_t at = text.find("func @"); at != text.npos; at = text.find("\nfunc @", at + 1))
        if (size_t end = text.find("\n}", at); end != text.npos)
          std::ofstream(folder / ("graph-" + std::to_string(count++)))
              << text.substr(at, end + 2 - at);
    }
}

}  // namespace

/// The first argument is the folder of files that were interesting so far.
extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  if (*count > 1 && fs::is_directory((*arguments)[1])) write_seeds((*arguments)[1]);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    std::string text = to_text(parse_graph({reinterpret_cast<const char*>(data), size}));
    if (to_text(parse_graph(text)) != text) std::abort();
  } catch (const UserError&) {  // what a bad text should give
  } catch (const Unsupported&) {
  }
  return 0;
}
