// Bad files of safetensors: all that is read of them, and every element once.
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "tenon/files.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

void write_seeds(const std::filesystem::path& folder) {
  NamedTensors all;
  for (int t = 0; t < kDTypes; ++t)
    if (auto type = static_cast<DType>(t); type != DType::c128)
      all.emplace_back(std::string(name_of(type)), ones({2, 3}, type));
  for (size_t count : {size_t{0}, size_t{1}, all.size()}) {
    NamedTensors some(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
    save_safetensors(folder / format("tensors-{}", count), some, {{"format", "pt"}});
  }
}

}  // namespace

/// The first argument is the folder of files that were interesting so far.
extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  if (*count > 1 && std::filesystem::is_directory((*arguments)[1])) write_seeds((*arguments)[1]);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    parse_safetensors(bytes, "f", true);
    TensorFile file = parse_safetensors(bytes, "f");
    volatile uint8_t seen = 0;
    for (const auto& [name, x] : file.tensors)
      for (int64_t i = 0; i < x.bytes(); ++i) seen = static_cast<const uint8_t*>(x.data())[i];
    (void)seen;
  } catch (const UserError&) {  // what a bad file should give
  }
  return 0;
}
