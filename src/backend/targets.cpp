// Targets by the names that people know hardware by.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "plan/backend.h"

namespace tn {
namespace {

constexpr std::string_view kGpus[] = {
    "nvidia_v100", "nvidia_t4",   "nvidia_a10",  "nvidia_a100", "nvidia_a40",
    "nvidia_l4",   "nvidia_l40s", "nvidia_h100", "nvidia_h200", "nvidia_b200",
};

[[noreturn]] void refuse(std::string_view name, std::string_view who) {
  if (std::ranges::count(kGpus, name))
    fail("{}: cannot generate code for {}: this build has no GPU backend", who, name);
  std::vector<std::string_view> targets = {"native"}, products, all;
  for (const Backend* backend : backends())
    for (const TargetName& known : backend->names())
      (known.is_product ? products : targets).push_back(known.name);
  for (const auto& list : {targets, products}) all.insert(all.end(), list.begin(), list.end());
  all.insert(all.end(), std::begin(kGpus), std::end(kGpus));
  std::string_view near = nearest_name(name, all);
  std::string known =
      format("there are {}, and the processors {}", join(targets, ", "), join(products, ", "));
  fail(Hint{near.empty() ? known : format("did you mean '{}'? {}", near, known)},
       "{}: no hardware of this name: '{}'", who, name);
}

}  // namespace

std::string_view name_of(const Target& target) {
  for (const TargetName& known : backend_of(target).names())
    if (known.target == target && !known.is_product) return known.name;
  return "";
}

const TargetCosts& costs_of(const Target& target) { return backend_of(target).costs(target); }

bool runs_here(const Target& target) { return backend_of(target).runs(target); }

Target target_named(std::string_view name, std::string_view who) {
  if (name == "native") return host_target();
  for (const Backend* backend : backends())
    for (const TargetName& known : backend->names())
      if (known.name == name) return known.target;
  refuse(name, who);
}

std::vector<Target> targets_named(const std::vector<std::string>& names, std::string_view who) {
  std::vector<Target> targets;
  for (const std::string& name : names) targets.push_back(target_named(name, who));
  std::ranges::sort(targets);
  targets.erase(std::ranges::unique(targets).begin(), targets.end());
  return targets;
}

}  // namespace tn
