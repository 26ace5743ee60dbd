#include "plan/run_places.h"

#include <algorithm>

#include "ir/graph.h"

namespace tn {

std::vector<Loc> places_in(const Graph& graph) {
  std::vector<Loc> places;
  for (const GraphOp& op : graph.ops)
    if (op.op != &scalar_leaf) places.push_back(op.loc);
  return places;
}

PlacesRef planned_places(const Plan& plan) {
  return plan.parts ? PlacesRef(plan.parts, &plan.parts->recorded) : nullptr;
}

RunPlaces places_of_run(const PlacesRef& planned, size_t count, FunctionRef<Loc(size_t)> place) {
  if (!planned || planned->size() != count) return {};
  size_t same = 0;
  while (same < count && (*planned)[same].bits == place(same).bits) ++same;
  if (same == count) return {planned, nullptr};
  std::vector<Loc> now(count);
  for (size_t i = 0; i < count; ++i) now[i] = place(i);
  return {planned, std::make_shared<const std::vector<Loc>>(std::move(now))};
}

/// The places of the ops of this run that were recorded at `planned` when its plan was made. A
/// device that plans its parts itself has marked them.
static std::vector<Loc> places_now(Loc planned) {
  std::vector<Loc> found;
  const std::vector<Loc>& recorded = *run_places.planned;
  for (size_t i = 0; i < recorded.size(); ++i)
    if (recorded[i].bits == planned.bits || recorded[i].bits == planned.place())
      found.push_back((*run_places.now)[i]);
  return found;
}

Loc place_now(Loc planned) {
  if (!run_places.now) return planned;
  std::vector<Loc> found = places_now(planned);
  if (found.empty()) return planned;
  bool is_one = std::ranges::all_of(found, [&](Loc loc) { return loc.bits == found[0].bits; });
  return is_one ? found[0] : Loc{};
}

Loc marked_place_now(Loc planned) {
  if (!run_places.planned || !planned.mark()) return {};
  if (!run_places.now) return planned;
  auto own = std::ranges::find(*run_places.planned, planned.bits, &Loc::bits);
  if (own == run_places.planned->end()) return {};
  return (*run_places.now)[static_cast<size_t>(own - run_places.planned->begin())];
}

Loc place_of(const Plan& plan, const Step& step, Loc inside) {
  Loc planned = inside ? inside : step.loc;
  if (!run_places.now) return planned;
  std::vector<Loc> found = places_now(planned);
  if (found.empty()) return planned;
  // The ops of a loop have one place. Their steps are in the order of the ops.
  size_t before = 0, steps = 0;
  for_each_part(std::span<const Step>(plan.steps), [&](const Step& other) {
    if (&other == &step) before = steps;
    steps += other.loc.place() == step.loc.place();
  });
  return found[steps ? before * found.size() / steps : 0];
}

}  // namespace tn
