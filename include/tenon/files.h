#pragma once
// Tensors in files: safetensors, the format of the model hubs.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/tensor.h"

namespace tn {

/// In the order of the file.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
/// Text metadata of a file.
using Metadata = std::map<std::string, std::string>;

struct TensorFile {
  NamedTensors tensors;
  Metadata metadata;
};

/// Evaluates the tensors and writes them. The file is replaced atomically: `path` is always the
/// complete old or the complete new file, and tensors mapped from the old one stay valid. The
/// format does not support complex128.
void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const Metadata& metadata = {});
/// The same in memory.
std::string safetensors_bytes(const NamedTensors& tensors, const Metadata& metadata = {});

/// The tensors are mapped from the file, read-only. Truncating the file in place ends the processes
/// that use it; saving never does so. Files that this library wrote have a checksum, which is
/// verified unless `verify` is false: then unused tensors are not read. If `verify` is true, a file
/// without a checksum is an error.
TensorFile load_safetensors(const std::string& path, std::optional<bool> verify = {});
/// From a copy of bytes in memory; `name` for messages.
TensorFile parse_safetensors(std::string_view bytes, const std::string& name = "bytes",
                             std::optional<bool> verify = {});

}  // namespace tn
