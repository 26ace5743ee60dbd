#include "executable/targets.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "executable/program.h"

namespace tn {
namespace {

struct Processor {
  std::string_view name;
  CpuLevel level;
};

/// As compilers call them. One stands for the level that all of its kind have.
constexpr Processor kProcessors[] = {
    {"nehalem", CpuLevel::v2},
    {"westmere", CpuLevel::v2},
    {"sandybridge", CpuLevel::v2},
    {"ivybridge", CpuLevel::v2},
    {"silvermont", CpuLevel::v2},
    {"goldmont", CpuLevel::v2},
    {"bdver1", CpuLevel::v2},
    {"haswell", CpuLevel::v3},
    {"broadwell", CpuLevel::v3},
    {"skylake", CpuLevel::v3},
    {"alderlake", CpuLevel::v3},
    {"raptorlake", CpuLevel::v3},
    {"zen", CpuLevel::v3},
    {"zen2", CpuLevel::v3},
    {"zen3", CpuLevel::v3},
    {"skylake-avx512", CpuLevel::v4},
    {"cascadelake", CpuLevel::v4},
    {"cooperlake", CpuLevel::v4},
    {"icelake-server", CpuLevel::v4},
    {"sapphirerapids", CpuLevel::v4},
    {"emeraldrapids", CpuLevel::v4},
    {"graniterapids", CpuLevel::v4},
    {"zen4", CpuLevel::v4},
    {"zen5", CpuLevel::v4},
};

constexpr std::string_view kGpus[] = {
    "nvidia_v100", "nvidia_t4",   "nvidia_a10",  "nvidia_a100", "nvidia_a40",
    "nvidia_l4",   "nvidia_l40s", "nvidia_h100", "nvidia_h200", "nvidia_b200",
};

[[noreturn]] void refuse(std::string_view name, std::string_view who) {
  if (std::ranges::count(kGpus, name))
    fail("{}: code for {} comes with the GPU backend, and this tenon makes code for CPUs", who,
         name);
  std::vector<std::string_view> levels = {"native"}, processors, all;
  for (CpuLevel level : {CpuLevel::v2, CpuLevel::v3, CpuLevel::v4})
    levels.push_back(name_of(level));
  for (const Processor& p : kProcessors) processors.push_back(p.name);
  for (const auto& list : {levels, processors}) all.insert(all.end(), list.begin(), list.end());
  all.insert(all.end(), std::begin(kGpus), std::end(kGpus));
  std::string_view near = nearest_name(name, all);
  std::string known =
      format("there are {}, and the processors {}", join(levels, ", "), join(processors, ", "));
  fail(Hint{near.empty() ? known : format("did you mean '{}'? {}", near, known)},
       "{}: no hardware of this name: '{}'", who, name);
}

}  // namespace

CpuLevel level_of_target(std::string_view name, std::string_view who) {
  if (name == "native") return cpu_level();
  for (CpuLevel level : {CpuLevel::v2, CpuLevel::v3, CpuLevel::v4})
    if (name == name_of(level)) return level;
  auto known = std::ranges::find(kProcessors, name, &Processor::name);
  return known == std::end(kProcessors) ? (refuse(name, who), CpuLevel::v2) : known->level;
}

std::vector<CpuLevel> levels_of_targets(const std::vector<std::string>& names,
                                        std::string_view who) {
  std::vector<CpuLevel> levels;
  for (const std::string& name : names) levels.push_back(level_of_target(name, who));
  std::ranges::sort(levels);
  levels.erase(std::ranges::unique(levels).begin(), levels.end());
  return levels;
}

}  // namespace tn
