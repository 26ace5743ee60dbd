#pragma once
// Modules that stand for others: transformed functions get copies of those among their arguments.
#include <utility>
#include <vector>

#include "tenon/tree.h"

namespace tn::tree {

/// Lists the modules of trees, in order.
struct ModuleList final : Visitor {
  std::vector<std::pair<nn::ModuleBase*, VisitModule*>> all = {};
  void module(const Path&, nn::ModuleBase& module, VisitModule* visit) override;
};

/// While it lives, the function that this thread calls has `copies` in place of `originals`.
class StandIns {
 public:
  StandIns(const ModuleList& originals, const ModuleList& copies);
  ~StandIns();
  StandIns(const StandIns&) = delete;

 private:
  size_t outer_;
};

/// The copies of a module and their copies, the newest first.
std::vector<Callback<void(Visitor&)>> stand_ins_of(const nn::ModuleBase& module);

}  // namespace tn::tree
