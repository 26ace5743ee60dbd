#include "tenon/checkpoints.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "ir/place.h"
#include "tenon/files.h"
#include "tenon/random.h"

namespace tn {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kKey = "tenon.checkpoint";  // of the metadata
constexpr std::string_view kRandom = "random.state";

Json tensor_json(const std::string& path) { return {{"tensor", path}}; }

/// A part in the metadata, nested as in Python: "moments" has a dict per parameter.
Json state_json(const CheckpointPart& part, const nn::TensorMap& state) {
  constexpr std::string_view kMoments = "moments.";
  Json all = Json::object(), moments = Json::object();
  for (const auto& [name, tensor] : state) {
    Json held = tensor_json(part.name + "." + name);
    size_t dot = name.rfind('.');
    if (part.is_optimizer && name.starts_with(kMoments) && dot > kMoments.size())
      moments[name.substr(kMoments.size(), dot - kMoments.size())]["dict"][name.substr(dot + 1)] =
          held;
    else
      all[name] = held;
  }
  if (part.is_optimizer) all["moments"] = {{"dict", moments}};
  return {{"kind", part.kind}, {"state", {{"dict", all}}}};
}

Json part_json(const CheckpointPart& part, NamedTensors& tensors) {
  if (part.save) {
    nn::TensorMap state = part.save();
    for (const auto& [name, tensor] : state) tensors.emplace_back(part.name + "." + name, tensor);
    return state_json(part, state);
  }
  return std::visit(
      [&]<class T>(const T& value) -> Json {
        if constexpr (std::is_same_v<T, Tensor>)
          return tensors.emplace_back(part.name, value), tensor_json(part.name);
        else
          return value;
      },
      part.value);
}

[[noreturn]] void damaged(const std::string& path, std::string_view what,
                          int source_line = __builtin_LINE()) {
  throw_user(ErrorSite::here().at(source_line), Fault::value,
             format("load_checkpoint: {} is damaged: {}", path, what), {});
}

/// The descriptions of all parts of a file.
Json parts_of(const std::string& path, const Metadata& metadata) {
  auto found = metadata.find(kKey);
  if (found == metadata.end())
    fail(Hint{"model.load_weights loads weights"},
         "load_checkpoint: {} holds tensors, not a checkpoint", path);
  Json about = Json::parse(found->second, nullptr, false);
  if (!about.is_object() || !about["parts"].is_object())
    damaged(path, "its metadata is not that of a checkpoint");
  if (about["version"] != 1)
    fail(Hint{"load it with a newer tenon"}, "load_checkpoint: {} has version {}", path,
         about["version"].dump());
  return about["parts"];
}

/// Before anything is changed.
void check_part(const std::string& path, const Json& saved, const CheckpointPart& part) {
  if (!part.load)
    fail(Hint{"values are returned, by name"}, "load_checkpoint: {} is a value, which has no state",
         part.name);
  auto found = saved.find(part.name);
  if (found == saved.end()) fail("load_checkpoint: {} has no '{}'", path, part.name);
  if (part.is_tree) return;  // in Python it is a value: lists and dicts
  if (!found->is_object() || !found->contains("kind"))
    fail("load_checkpoint: {}: '{}' was saved as a value, not as a {}", path, part.name, part.kind);
  if (part.kind != "Module" && (*found)["kind"] != part.kind)
    fail("load_checkpoint: {}: '{}' was saved as {}, not as a {}", path, part.name,
         (*found)["kind"].dump(), part.kind);
}

/// The values of a file, without nested ones, which only Python writes.
CheckpointValues values_of(const std::string& path, const Json& saved,
                           const nn::TensorMap& tensors) {
  CheckpointValues values;
  for (const auto& [name, value] : saved.items()) {
    if (value.is_boolean()) values[name] = value.get<bool>();
    if (value.is_number_integer()) values[name] = value.get<int64_t>();
    if (value.is_number_float()) values[name] = value.get<double>();
    if (value.is_string()) values[name] = value.get<std::string>();
    if (!value.is_object() || !value.contains("tensor")) continue;
    auto found = value["tensor"].is_string() ? tensors.find(value["tensor"].get<std::string>())
                                             : tensors.end();
    if (found == tensors.end())
      damaged(path, format("it does not contain the tensor {}", value["tensor"].dump()));
    values[name] = found->second;
  }
  return values;
}

}  // namespace

void save_checkpoint(const std::string& path, const CheckpointParts& parts, bool random,
                     std::source_location at) {
  LocScope scope(at);
  NamedTensors tensors;
  Json about = Json::object();
  for (const CheckpointPart& part : parts) {
    if (about.contains(part.name)) fail("save_checkpoint: two parts are called {}", part.name);
    about[part.name] = part_json(part, tensors);
  }
  if (random) tensors.emplace_back(kRandom, tn::random::state());
  Json all = {{"version", 1}, {"parts", about}};
  save_safetensors(path, tensors, {{kKey, all.dump()}});
}

CheckpointValues load_checkpoint(const std::string& path, const CheckpointParts& parts, bool random,
                                 std::optional<bool> verify, std::source_location at) {
  LocScope scope(at);
  TensorFile file = load_safetensors(path, verify);
  Json saved = parts_of(path, file.metadata);
  for (const CheckpointPart& part : parts) check_part(path, saved, part);
  nn::TensorMap tensors(file.tensors.begin(), file.tensors.end());
  CheckpointValues values = values_of(path, saved, tensors);
  for (const CheckpointPart& part : parts) {
    nn::TensorMap state;
    std::string prefix = part.name + ".";
    for (const auto& [name, tensor] : tensors)
      if (name.starts_with(prefix)) state.emplace(name.substr(prefix.size()), tensor);
    part.load(state);
  }
  if (auto key = tensors.find(std::string(kRandom)); random && key != tensors.end())
    tn::random::set_state(key->second);
  return values;
}

// Several in a folder --------------------------------------------------------------------------

namespace fs = std::filesystem;

Checkpoints::Checkpoints(std::string folder, std::optional<int64_t> keep)
    : folder_(std::move(folder)), keep_(keep) {
  if (keep && *keep < 1) fail("Checkpoints: keep is a number above 0, not {}", *keep);
}

std::string Checkpoints::path(int64_t step) const {
  if (step < 0) fail("Checkpoints: a step must be 0 or more, not {}", step);
  return format("{}/step-{:08}.safetensors", folder_, step);
}

std::vector<int64_t> Checkpoints::steps() const {
  constexpr std::string_view kBegin = "step-", kEnd = ".safetensors";
  std::vector<int64_t> found;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, none)) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) continue;
    const char *first = name.data() + kBegin.size(),
               *last = name.data() + name.size() - kEnd.size();
    int64_t step = 0;
    auto [end, error] = std::from_chars(first, last, step);
    if (end == last && error == std::errc()) found.push_back(step);
  }
  std::ranges::sort(found);
  return found;
}

void Checkpoints::save(int64_t step, CheckpointParts parts, bool random,
                       std::source_location at) const {
  LocScope scope(at);
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) fail("checkpoints: cannot create the folder {}: {}", folder_, error.message());
  parts.emplace_back("step", step);
  save_checkpoint(path(step), parts, random);
  if (!keep_) return;
  std::vector<int64_t> others = steps();
  std::erase(others, step);
  for (size_t i = 0; i + static_cast<size_t>(*keep_) < others.size() + 1; ++i) {
    std::error_code gone;  // another process was first
    fs::remove(path(others[i]), gone);
  }
}

CheckpointValues Checkpoints::load(const CheckpointParts& parts, std::optional<int64_t> step,
                                   bool random, std::optional<bool> verify,
                                   std::source_location at) const {
  LocScope scope(at);
  std::vector<int64_t> known = steps();
  if (!step && known.empty()) return {};
  return load_checkpoint(path(step ? *step : known.back()), parts, random, verify);
}

}  // namespace tn
