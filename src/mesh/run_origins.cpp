#include "mesh/run_origins.h"

#include "base/hash.h"
#include "mesh/mesh_value.h"
#include "plan/run_places.h"
#include "runtime/buffer.h"

namespace tn::mesh {
namespace {

/// Of a value of the mesh, or of a part of one.
Origin origin_of(const Bound& value) {
  Origin origin = value_in(*value.buffer).origin;
  if (auto offset = static_cast<uint64_t>(value.offset)) {
    origin.ops = combine(origin.ops, offset);
    origin.traced_ops = combine(origin.traced_ops, offset);
  }
  return origin;
}

}  // namespace

OriginsOfRun::OriginsOfRun(const MeshPart& part, const WorkerPlan& plan, const PlacedPlan& placed,
                           std::span<const Bound> inputs, const Scalar* scalars) {
  const GraphOrigins* origins = part.origins();
  if (!origins) return;
  std::vector<Origin> all;  // of inputs, then constants
  auto see = [&](const Bound& value) {
    size_t input = all.size();
    Origin& own = all.emplace_back();
    if (value.is_absent()) return;
    bool is_host = value.buffer->device.is_host();
    if (is_host) {
      auto* bytes = static_cast<const char*>(host_address(*value.buffer)) + value.offset;
      own = origin_of(bytes, placed.plan->bytes_given(input));
    } else {
      own = origin_of(value);
    }
    bool is_copy = own.ops == Origin().ops;  // of the host's
    if (is_copy && !own.loc) own.loc = place_now(part.reader(input)).place();
    if (is_host) given_.push_back(own);
  };
  for (const Bound& value : inputs) see(value);
  for (const Bound& value : placed.constants) see(value);
  // What the host gives to this run is what most likely differs, so it comes first.
  std::vector<Origin> numbers = origins->of_numbers(part.graph(), scalars);
  given_.insert(given_.end(), numbers.begin(), numbers.end());
  for (size_t i = 0; i < all.size(); ++i) {
    given_.push_back(all[i]);
    if (!all[i].loc) given_.back().loc = part.reader(i).marked(0).bits;
  }
  std::vector<Origin> values = origins->of_run(part.graph(), all, numbers);
  calls_ = origins->of_calls(plan.meetings, values);
  for (Val v : part.graph().outputs)
    results_.push_back(origins->of_one(values[static_cast<size_t>(v)], results_.size()));
}

}  // namespace tn::mesh
