#include "model/record.h"

#include <algorithm>

#include "base/error.h"
#include "tenon/random.h"

namespace tn::model {

bool draws(const Resolved& model) {
  return std::ranges::any_of(model.flat.blocks,
                             [&](const FlatBlock& b) { return b.draws(model.training); });
}

Tensors record(const Resolved& model, const Tensors& given) {
  const FlatModel& flat = model.flat;
  bool random = draws(model);
  invariant(given.size() == flat.open.size() + random, "model: {} values given, {} taken",
            given.size(), flat.open.size() + random);
  Indexed<Tensor> values(flat.wires.size());
  for (size_t w = 0; w < values.size(); ++w) values[w] = flat.wires[w].value;
  for (size_t i = 0; i < flat.open.size(); ++i) values[flat.open[i]] = given[i];
  Tensor keys = random ? random::split(given.back()) : Tensor();
  Tensor here = random ? index(keys, {0}) : Tensor();
  Indexed<Tensor> states = values;  // who shares one goes on with what it became
  for (size_t b = 0; b < flat.blocks.size(); ++b) {
    const FlatBlock& block = flat.blocks[b];
    auto is_state = [&](size_t t) { return block.def->terminals[t].role == Role::state; };
    Tensors in;
    for (size_t t = 0; t < block.in.size(); ++t) {  // outputs come behind
      int w = block.in[t];
      in.push_back(w < 0 ? Tensor() : (is_state(t) ? states : values)[w]);
    }
    Tensor key =
        block.draws(model.training) ? random::fold_in(here, static_cast<int64_t>(b)) : Tensor();
    Tensors out = compute(block, in, model.training, key);
    for (size_t i = 0; i < block.out.size(); ++i) values[block.out[i]] = out[i];
    size_t next = block.out.size();
    for (size_t t = 0; t < block.in.size(); ++t)
      if (is_state(t)) states[block.in[t]] = out[next++];
  }
  Tensors results;
  for (int w : flat.outputs) results.push_back(values[w]);
  for (int w : flat.states) results.push_back(states[w]);
  if (random) results.push_back(index(keys, {1}));
  return results;
}

/// The first value of a wire, as the block says that it is drawn for.
static Tensor first_value(const Resolved& model, int w, const Tensor& key) {
  const FlatBlock& block = model.flat.blocks[model.flat.wires[w].drawn_by];
  std::vector<Shape> shapes;
  const Initializer* initial = nullptr;
  size_t in = 0;
  for (const Terminal& terminal : block.def->terminals) {
    if (terminal.role == Role::output) continue;
    int at = block.in[in++];
    shapes.push_back(at < 0 ? Shape() : model.types[at]->shape);
    if (at == w && terminal.initial && !initial) initial = &terminal.initial;
  }
  TypeRef type = model.types[w];
  return (*initial)({type->shape, type->dtype, key, shapes});
}

Tensors first_values(const Resolved& model, const Tensor& key) {
  Tensors values;
  for (size_t i = 0; i < model.flat.open.size(); ++i) {
    int w = model.flat.open[i];
    bool given = model.flat.wires[w].role == Role::input;
    values.push_back(given ? Tensor()
                           : first_value(model, w, random::fold_in(key, static_cast<int64_t>(i))));
  }
  return values;
}

}  // namespace tn::model
