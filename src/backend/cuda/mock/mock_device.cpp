// The mock as the driver of this process, where the environment asks for it.
#include <cstdlib>

#include "backend/cuda/mock/mock_driver.h"

namespace tn::cuda {

[[maybe_unused]] static const bool kReplaced = [] {
  const char* wanted = std::getenv("TENON_CUDA_MOCK");
  if (!wanted || std::string(wanted) != "1") return false;
  replace_driver(&mock_driver());
  return true;
}();

}  // namespace tn::cuda
