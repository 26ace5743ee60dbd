// Targets by the names that people know hardware by.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "plan/backend.h"

namespace tn {
namespace {

[[noreturn]] void refuse(std::string_view name, std::string_view who) {
  std::vector<std::string_view> targets = {"native"}, products, gpus, all;
  for (const Backend* backend : backends())
    for (const TargetName& known : backend->names()) {
      all.push_back(known.name);
      bool is_cpu = is_for_host(known.target);
      if (backend->why_not_in_files(known.target).empty())
        (!is_cpu ? gpus : known.is_product ? products : targets).push_back(known.name);
    }
  all.push_back("native");
  std::string_view near = nearest_name(name, all);
  std::string known = format("there are {}, the processors {}, and the GPUs {}",
                             join(targets, ", "), join(products, ", "), join(gpus, ", "));
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

bool is_for_host(const Target& target) { return target.kind == host_target().kind; }

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
  for (const std::string& name : names) {
    targets.push_back(target_named(name, who));
    std::string why = backend_of(targets.back()).why_not_in_files(targets.back());
    if (!why.empty())
      fail(Hint{"a file for CPUs runs on a GPU too: it is compiled there, from its graph"},
           "{}: cannot generate code for {} ahead of time: {}", who, name, why);
  }
  std::ranges::sort(targets);
  targets.erase(std::ranges::unique(targets).begin(), targets.end());
  return targets;
}

}  // namespace tn
