#include "model/record.h"

#include <algorithm>

#include "base/error.h"
#include "tenon/random.h"

namespace tn::model {

bool draws(const Resolved& model) {
  return model.training &&
         std::ranges::any_of(model.flat.blocks, [](const FlatBlock& b) { return b.def->random; });
}

Tensors record(const Resolved& model, const Tensors& given) {
  const FlatModel& flat = model.flat;
  bool random = draws(model);
  invariant(given.size() == flat.open.size() + random, "model: {} values given, {} taken",
            given.size(), flat.open.size() + random);
  Tensors values(flat.wires.size());
  for (size_t w = 0; w < values.size(); ++w) values[w] = flat.wires[w].value;
  for (size_t i = 0; i < flat.open.size(); ++i)
    values[static_cast<size_t>(flat.open[i])] = given[i];
  Tensor keys = random ? random::split(given.back()) : Tensor();
  Tensor here = random ? index(keys, {0}) : Tensor();
  Tensors states;
  for (size_t b = 0; b < flat.blocks.size(); ++b) {
    const FlatBlock& block = flat.blocks[b];
    Tensors in;
    for (int w : block.in) in.push_back(w < 0 ? Tensor() : values[static_cast<size_t>(w)]);
    bool draws = random && block.def->random;
    Tensor key = draws ? random::fold_in(here, static_cast<int64_t>(b)) : Tensor();
    Tensors out = compute(block, in, model.training, key);
    for (size_t i = 0; i < block.out.size(); ++i)
      values[static_cast<size_t>(block.out[i])] = out[i];
    states.insert(states.end(), out.begin() + std::ssize(block.out), out.end());
  }
  Tensors results;
  for (int w : flat.outputs) results.push_back(values[static_cast<size_t>(w)]);
  results.insert(results.end(), states.begin(), states.end());
  if (random) results.push_back(index(keys, {1}));
  return results;
}

Tensors first_values(const Resolved& model, const Tensor& key) {
  Tensors values;
  for (size_t i = 0; i < model.flat.open.size(); ++i) {
    int w = model.flat.open[i];
    const FlatWire& wire = model.flat.wire(w);
    TypeRef type = model.types[static_cast<size_t>(w)];
    if (wire.role == Role::input) {
      values.emplace_back();
      continue;
    }
    Tensor own = random::fold_in(key, static_cast<int64_t>(i));
    values.push_back(wire.initial(type->shape, type->dtype, own));
  }
  return values;
}

}  // namespace tn::model
