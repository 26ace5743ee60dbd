#include "mesh/compared_values.h"

#include "base/hash.h"
#include "mesh/mesh_value.h"
#include "plan/run_places.h"
#include "runtime/buffer.h"

namespace tn::mesh {
namespace {

using workers::GivenValue;

constexpr uint64_t kByHost = 1;  // what made it: no plan

/// All of few bytes, and samples of many.
uint64_t hash_of_samples(const char* bytes, size_t count) {
  constexpr size_t kAll = 512, kSamples = 64, kWidth = sizeof(uint64_t);
  if (count <= kAll) return hash_bytes(bytes, count);
  uint64_t hash = count;
  for (size_t k = 0; k < kSamples; ++k)
    hash = hash_bytes(bytes + (count - kWidth) / (kSamples - 1) * k, kWidth, hash);
  return hash;
}

}  // namespace

GivenValue given_by_host(const char* bytes, size_t count) {
  return {kByHost, hash_of_samples(bytes, count)};
}

Given::Given(const MeshPart& part, const WorkerPlan& plan, const PlacedPlan& placed,
             std::span<const Bound> inputs, const Scalar* scalars)
    : plan_(plan.structure) {
  if (!plan_) return;
  known_.reserve(inputs.size() + placed.constants.size() + 1);
  auto see = [&](const Bound& value, size_t input) {
    if (value.is_absent()) return;
    if (value.buffer->device.is_host()) {
      auto* bytes = static_cast<const char*>(host_address(*value.buffer)) + value.offset;
      return add(given_by_host(bytes, placed.plan->bytes_given(input)), part.reader(input));
    }
    add(value_in(*value.buffer).given, part.reader(input));
  };
  for (size_t i = 0; i < inputs.size(); ++i) see(inputs[i], i);
  for (size_t i = 0; i < placed.constants.size(); ++i) see(placed.constants[i], inputs.size() + i);
  auto count = static_cast<size_t>(placed.plan->scalars);
  add({kByHost, part.hash_numbers({scalars, count})}, {});
}

void Given::add(const GivenValue& value, Loc reader) {
  plan_ = combine(plan_, value.made_by);
  if (!value.made_by) return;
  hash_ = combine(hash_, value.hash);
  known_.push_back({value.made_by, value.hash, value.loc ? value.loc : place_now(reader).bits});
}

GivenValue Given::joined(size_t result) const {
  if (!plan_) return {};
  uint64_t loc = 0;
  for (const GivenValue& one : known_)
    if (one.loc) loc = one.loc;
  return {plan_ | kByHost, combine(hash_, result), loc};
}

}  // namespace tn::mesh
