// Weights by their names: into files, out of files, and from those of other libraries.
#include <ranges>
#include <vector>

#include "base/error.h"
#include "ir/node.h"
#include "ir/place.h"
#include "tenon/files.h"
#include "tenon/mesh.h"
#include "tenon/nn/visit.h"
#include "tenon/ops.h"

namespace tn::nn {
namespace {

/// " (like b?)" if one of `names` is near.
std::string like(const std::string& name, const TensorMap& names) {
  std::string_view near = nearest_name(name, names | std::views::keys);
  return near.empty() ? "" : format(" (like {}?)", near);
}

std::string difference(const std::string& name, const Type& wanted, const Type& given) {
  if (!identical(wanted.shape, given.shape))
    return format("shape: {} is {}, given {}", name, wanted, given);
  if (wanted.dtype != given.dtype) return format("dtype: {} is {}, given {}", name, wanted, given);
  return "";
}

/// Takes what `mine` has too out of `given`; the names that are left, on both sides, and what
/// differs are `problems`.
TensorMap matched(const TensorMap& mine, TensorMap given, bool strict, bool any_dtype,
                  std::vector<std::string>& problems) {
  TensorMap fitting, missing;
  for (const auto& [name, tensor] : mine) {
    auto found = given.extract(name);
    if (found.empty()) {
      missing.emplace(name, tensor);
      continue;
    }
    const Type &wanted = *type_of(tensor), &have = *type_of(found.mapped());
    bool same_kind = any_dtype && identical(wanted.shape, have.shape);
    std::string fault = same_kind ? "" : difference(name, wanted, have);
    if (!fault.empty()) problems.push_back(std::move(fault));
    fitting.insert(std::move(found));
  }
  if (!strict) return fitting;
  for (const auto& [name, tensor] : missing)
    problems.push_back(format("missing: {}, {}{}", name, *type_of(tensor), like(name, given)));
  for (const auto& [name, tensor] : given)
    problems.push_back(format("extra: {}, {}{}", name, *type_of(tensor), like(name, missing)));
  return fitting;
}

/// Under other names, and in another type.
TensorMap prepared(const std::string& what, TensorMap given, const LoadWeights& how) {
  TensorMap made;
  for (auto& [name, tensor] : given) {
    if (!tensor.defined()) fail(Fault::type, "{}: {} is a null tensor", what, name);
    std::string new_name = how.rename ? how.rename(name) : name;
    if (new_name.empty()) continue;
    bool converted = how.dtype && info(tensor.dtype()).kind == Kind::floating;
    Tensor value = converted ? astype(tensor, *how.dtype) : std::move(tensor);
    if (!made.emplace(new_name, std::move(value)).second)
      fail("{}: rename: two weights become {}", what, new_name);
  }
  return made;
}

}  // namespace

void put_all(const Visit& model, const std::string& what, TensorMap tensors, const LoadWeights& how,
             std::source_location at) {
  LocScope scope(at);
  TensorMap given = prepared(what, std::move(tensors), how);
  std::vector<std::string> problems;
  TensorMap mine = tensors_in(model);
  TensorMap fitting = matched(mine, std::move(given), how.strict, bool(how.dtype), problems);
  if (problems.size() == 1) fail("{}: a problem with the weights:\n    {}", what, problems[0]);
  if (!problems.empty())
    fail("{}: {} problems with the weights:\n    {}", what, problems.size(),
         join(problems, "\n    "));
  for (auto& [name, tensor] : fitting)  // what is divided stays divided
    if (auto now = mine.find(name); now != mine.end() && is_mesh(now->second.device()))
      tensor = shard_like(tensor, now->second);
  update(model, fitting, at);
}

void save_weights(const Visit& model, const std::string& path, std::source_location at) {
  save_safetensors(path, tensors_in(model, at), {}, at);
}

void load_weights(const Visit& model, const std::string& path, const LoadWeights& how,
                  std::source_location at) {
  LocScope scope(at);
  TensorMap tensors = load_safetensors(path, how.verify).tensors;
  put_all(model, format("load_weights: {}", path), std::move(tensors), how);
}

}  // namespace tn::nn
