#include "tenon/stand_ins.h"

#include <algorithm>

namespace tn::tree {

namespace {

struct StandIn {
  const nn::ModuleBase* original;
  nn::ModuleBase* copy;
  Visitor::VisitModule* visit;
};

thread_local std::vector<StandIn> stand_ins;  // of all calls on this thread, the outer ones first

}  // namespace

void ModuleList::module(const Path&, nn::ModuleBase& module, VisitModule* visit) {
  all.emplace_back(&module, visit);
}

StandIns::StandIns(const ModuleList& originals, const ModuleList& copies)
    : outer_(stand_ins.size()) {
  for (size_t i = 0; i < std::min(originals.all.size(), copies.all.size()); ++i)
    stand_ins.push_back({originals.all[i].first, copies.all[i].first, copies.all[i].second});
}

StandIns::~StandIns() { stand_ins.resize(outer_); }

std::vector<Callback<void(Visitor&)>> stand_ins_of(const nn::ModuleBase& module) {
  std::vector<const nn::ModuleBase*> known = {&module};
  std::vector<Callback<void(Visitor&)>> found;
  for (const StandIn& each : stand_ins) {
    if (std::ranges::find(known, each.original) == known.end()) continue;
    known.push_back(each.copy);
    found.emplace_back([each](Visitor& visitor) { each.visit(*each.copy, visitor); });
  }
  std::ranges::reverse(found);
  return found;
}

}  // namespace tn::tree
