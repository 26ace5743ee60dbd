// Bad files of NumPy, as the command reads them: all that is read of them, and every element once.
#include <filesystem>

#include "files/npy.h"
#include "tenon/error.h"
#include "tenon/tenon.h"

using namespace tn;

/// The first argument is the folder of files that were interesting so far.
extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  if (*count < 2 || !std::filesystem::is_directory((*arguments)[1])) return 0;
  std::filesystem::path folder = (*arguments)[1];
  for (DType type : {DType::f32, DType::b1, DType::bf16, DType::c128})
    save_npy(folder / ("array-" + std::to_string(static_cast<int>(type))), ones({2, 3}, type));
  save_npy(folder / "number", ones({}));
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    Tensor x = parse_npy({reinterpret_cast<const char*>(data), size}, "f");
    volatile uint8_t seen = 0;
    for (int64_t i = 0; i < x.bytes(); ++i) seen = static_cast<const uint8_t*>(x.data())[i];
    (void)seen;
  } catch (const UserError&) {  // what a bad file should give
  }
  return 0;
}
