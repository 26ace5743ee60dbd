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
/// Texts that a file holds beside the tensors.
using Metadata = std::map<std::string, std::string>;

struct TensorFile {
  NamedTensors tensors;
  Metadata metadata;
};

/// Evaluates the tensors and writes them atomically: `path` is the whole old file or the whole new
/// one. Tensors that map the old file stay valid. The format has no complex128.
void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const Metadata& metadata = {});
/// The same in memory.
std::string safetensors_bytes(const NamedTensors& tensors, const Metadata& metadata = {});

/// The tensors share the file, mapped read-only. A program that truncates it in place ends the
/// processes that use it; saving never does. Files that this library wrote have a checksum, which
/// is compared unless `verify` is false: then what is not used is not read. If `verify` is true, a
/// file without a checksum is an error.
TensorFile load_safetensors(const std::string& path, std::optional<bool> verify = {});
/// From a copy of bytes in memory; `name` for messages.
TensorFile parse_safetensors(std::string_view bytes, const std::string& name = "bytes",
                             std::optional<bool> verify = {});

}  // namespace tn
