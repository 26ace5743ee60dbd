#include "compiler/kernel_set.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "plan/library.h"

namespace tn {

bool KernelSet::serves(std::span<const Binding> sizes) const {
  return std::ranges::all_of(guards, [&](const SizeGuard& g) { return holds(g, sizes); });
}

SharedKernel* KernelSet::kernel(KernelUse use, int number, std::span<const Binding> sizes,
                                std::span<const Home> homes) {
  auto found = kernels.find({use, number});
  if (found != kernels.end()) return found->second.get();
  if (!source) return nullptr;
  SizeHints hints({sizes.begin(), sizes.end()});
  std::shared_ptr<SharedKernel> made = source->build(*this, use, number, homes);
  guards.insert(guards.end(), hints.guards.begin(), hints.guards.end());
  return (kernels[{use, number}] = std::move(made)).get();
}

void KernelSet::compile(std::span<SharedKernel* const> kernels, std::span<const Binding> sizes,
                        CompileCounts& counts) {
  std::vector<SharedKernel*> missing;
  for (SharedKernel* k : kernels)
    if (!std::exchange(k->compiled, true)) missing.push_back(k);
  if (source && !missing.empty()) source->compile(missing, sizes, counts);
  for (const SharedKernel* k : missing) counts.interpreted += !k->code;
}

std::vector<std::shared_ptr<const Plan>> KernelSet::body_plans(int op,
                                                               std::span<const Binding> sizes,
                                                               CompileCounts& counts) {
  auto [at, added] = bodies.try_emplace(op);
  if (added)
    for (const GraphRef& body : bodies_of(graph.ops[static_cast<size_t>(op)]))
      at->second.push_back(std::make_shared<const CompiledGraph>(*body, options.of_bodies()));
  std::vector<std::shared_ptr<const Plan>> plans;
  for (const auto& body : at->second) {
    CompileCounts before = body->counts();
    plans.push_back(body->plan(sizes));
    CompileCounts after = body->counts();
    counts.compiled += after.compiled - before.compiled;
    counts.from_memory += after.from_memory - before.from_memory;
    counts.from_disk += after.from_disk - before.from_disk;
    counts.interpreted += after.interpreted - before.interpreted;
  }
  return plans;
}

/// Whether a place among `elements`, in row-major order, has each of them once.
static bool is_whole(const Strided& at, int64_t elements) {
  std::vector<int> axes(static_cast<size_t>(at.shape.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  std::ranges::sort(axes, {}, [&](int k) { return at.strides[k]; });
  int64_t stride = 1;
  for (int k : axes) {
    if (at.shape[k].is(1)) continue;
    if (at.strides[k] != stride) return false;
    stride *= at.shape[k].value();
  }
  return at.offset == 0 && stride == elements;
}

Bound absent_constant() {
  constexpr size_t kSome = 1;  // memory of no bytes would be there
  return {adopt(nullptr, kSome, nullptr, [](void*) {}, true), 0};
}

/// To `out`, or only asks whether it can.
static bool unpack(const KernelSet& set, int number, void* out) {
  const PackedRight& packed = set.packed.at(number);
  const GraphOp& op = set.graph.ops[static_cast<size_t>(number)];
  const TiledForm* form = tiled_form(*op.op, packed.in, set.options.target);
  if (!form || !form->packing || !is_whole(packed.at[1], packed.in[1]->elements)) return false;
  TiledCall call{op.attr_data(), packed.in, packed.out, packed.at, nullptr, nullptr};
  std::span bytes(packed.data.data<const std::byte>(), packed.data.bytes());
  return form->packing->unpack(call, packed.layout, bytes, out);
}

bool can_unpack(const KernelSet& set, int op) { return unpack(set, op, nullptr); }

BufferRef unpacked(const KernelSet& set, int op) {
  if (!can_unpack(set, op)) fail("a packed constant is damaged");
  BufferRef made = allocate(static_cast<size_t>(set.packed.at(op).in[1]->bytes()));
  unpack(set, op, made.data());
  return made;
}

void restore_constants(const Graph& traced, std::span<const KernelSet> sets,
                       std::vector<Bound>& constants) {
  auto first = static_cast<size_t>(traced.inputs()) - constants.size();
  auto fits = [&](const KernelSet& set, int number, const PackedRight& packed, TypeRef wanted) {
    const GraphOp& op = set.graph.ops[static_cast<size_t>(number)];
    return packed.in[1]->bytes() == wanted->bytes() &&
           std::ranges::equal(infer_types(*op.op, op.attrs, packed.in), packed.out);
  };
  auto find = [&](size_t number) {
    for (const KernelSet& set : sets)
      for (const auto& [op, packed] : set.packed)
        if (packed.traced == static_cast<int32_t>(number) &&
            fits(set, op, packed, traced.types[first + number]))
          return unpacked(set, op);
    fail("the value of constant {} is missing", traced.input_names[first + number]);
  };
  for (size_t i = 0; i < constants.size(); ++i) {
    bool absent = !constants[i].buffer || constants[i].is_absent();
    if (absent && traced.types[first + i]->elements > 0) constants[i] = {find(i), 0};
  }
}

}  // namespace tn
