#pragma once
// Tensors in files: safetensors, the format of the model hubs, and NumPy's npy and npz.
#include <map>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/tensor.h"

namespace tn {

/// Tensors with their names, in the order of the file. What a model calls its `state_dict` converts
/// to it and from it.
struct NamedTensors : std::vector<std::pair<std::string, Tensor>> {
  using std::vector<std::pair<std::string, Tensor>>::vector;
  NamedTensors(const std::map<std::string, Tensor>& tensors)
      : NamedTensors(tensors.begin(), tensors.end()) {}
  operator std::map<std::string, Tensor>() const { return {begin(), end()}; }
};
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
                      const Metadata& metadata = {},
                      std::source_location at = std::source_location::current());
/// The same in memory.
std::string safetensors_bytes(const NamedTensors& tensors, const Metadata& metadata = {});

/// The tensors are mapped from the file, read-only. Truncating the file in place ends the processes
/// that use it; saving never does so. Files that this library wrote have a checksum, which is
/// verified unless `verify` is false: then unused tensors are not read. If `verify` is true, a file
/// without a checksum is an error.
TensorFile load_safetensors(const std::string& path, std::optional<bool> verify = {},
                            std::source_location at = std::source_location::current());
/// From a copy of bytes in memory; `name` for messages.
TensorFile parse_safetensors(std::string_view bytes, const std::string& name = "bytes",
                             std::optional<bool> verify = {});

/// The array of a NumPy file. Elements of two bytes without a type are bfloat16.
Tensor load_npy(const std::string& path, std::source_location at = std::source_location::current());
/// Writes one array as a NumPy file, which is replaced atomically.
void save_npy(const std::string& path, const Tensor& x,
              std::source_location at = std::source_location::current());

/// The arrays of a file that `numpy.savez` wrote, without compression.
NamedTensors load_npz(const std::string& path,
                      std::source_location at = std::source_location::current());
/// Writes arrays as `numpy.savez` does.
void save_npz(const std::string& path, const NamedTensors& tensors,
              std::source_location at = std::source_location::current());

}  // namespace tn
