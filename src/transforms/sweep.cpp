#include "transforms/sweep.h"

#include "base/error.h"
#include "ir/interned.h"
#include "ir/precision.h"
#include "ir/region.h"
#include "ir/sizes.h"
#include "tenon/ops.h"
#include "transforms/derivative.h"

namespace tn {

namespace {

/// What is recorded inside is the user's call that `node` came from. Graphs that rules derive are
/// held until the rule has recorded them.
class OnBehalfOf {
 public:
  explicit OnBehalfOf(const Node& node) : outer_(current_loc) {
    if (node.loc) current_loc = node.loc;
  }
  ~OnBehalfOf() { current_loc = outer_; }

 private:
  Loc outer_;
  RecordScope interning_;
};

/// A sum of cotangents. Narrow floats are added in f32 and rounded once.
struct Sum {
  Tensor value;
  void add(Tensor term) {
    if (!value.defined()) {
      value = std::move(term);
      return;
    }
    DType type = info(term.dtype()).compute;
    value = tn::add(cast_to(value, type), cast_to(term, type));
  }
  Tensor take(TypeRef type) {
    Tensor whole = std::move(value);
    value = {};
    return whole.defined() ? cast_to(whole, type->dtype) : whole;
  }
};

/// Whether each value of a tape varies smoothly with the inputs: ops whose derivative is zero, and
/// integers, end the dependence.
std::vector<bool> varying_values(const Tape& tape, std::span<const Tensor> inputs) {
  std::vector<bool> varies(static_cast<size_t>(tape.values));
  for (size_t i = 0; i < inputs.size(); ++i) varies[i] = is_differentiable(inputs[i].dtype());
  for (const Tape::Entry& e : tape.entries) {
    Node& node = e.node();
    bool any = false;
    for (int32_t v : tape.operands_of(e)) any |= v != kNoVal && varies[static_cast<size_t>(v)];
    if (!any || node.op->gradient == Gradient::zero) continue;
    for (int i = 0; i < node.outs; ++i)
      varies[static_cast<size_t>(e.value + i)] = is_differentiable(node.slots()[i].type->dtype);
  }
  return varies;
}

const void* attrs_data(const Node& node) { return node.attrs ? node.attrs->data : nullptr; }

}  // namespace

Tensors sweep_back(const Tape& tape, std::span<const Tensor> inputs, const Tensors& cotangents) {
  AsGiven types;
  std::vector<bool> varies = varying_values(tape, inputs);
  std::vector<Sum> sums(static_cast<size_t>(tape.values));
  for (size_t i = 0; i < cotangents.size(); ++i)
    if (int32_t v = tape.outputs[i];
        v != kNoVal && cotangents[i].defined() && varies[static_cast<size_t>(v)])
      sums[static_cast<size_t>(v)].add(cotangents[i]);
  Tensors cts, in, out;
  std::vector<bool> wanted;
  RegionsOfDerivatives regions;
  for (auto e = tape.entries.rbegin(); e != tape.entries.rend(); ++e) {
    Node& node = e->node();
    regions.meet(node);
    bool any = false;
    cts.clear(), wanted.clear();
    for (int i = 0; i < node.outs; ++i) {
      cts.push_back(sums[static_cast<size_t>(e->value + i)].take(node.slots()[i].type));
      any |= cts.back().defined();
    }
    if (!any) continue;
    for (int32_t v : tape.operands_of(*e))
      wanted.push_back(v != kNoVal && varies[static_cast<size_t>(v)]);
    OnBehalfOf user(node);
    in = operands_of(tape, *e), out = results_of(node);
    Tensors back = vjp_of({*node.op, attrs_data(node), in, out}, cts, wanted);
    for (size_t k = 0; k < back.size(); ++k) {
      if (!back[k].defined() || !wanted[k]) continue;
      invariant(decide_equal(back[k].shape(), in[k].shape()),
                "vjp of {}: {} for operand {} of type {}", node.op->name, *type_of(back[k]), k,
                *type_of(in[k]));
      sums[static_cast<size_t>(tape.operands_of(*e)[k])].add(std::move(back[k]));
    }
  }
  Tensors result;
  for (int32_t i = 0; i < tape.inputs; ++i)
    result.push_back(sums[static_cast<size_t>(i)].take(type_of(inputs[static_cast<size_t>(i)])));
  return result;
}

Tensors sweep_forward(const Tape& tape, const Tensors& tangents) {
  AsGiven types;
  Tensors values(static_cast<size_t>(tape.values));
  std::copy(tangents.begin(), tangents.end(), values.begin());
  for (const Tape::Entry& e : tape.entries) {
    Node& node = e.node();
    OnBehalfOf user(node);
    Tensors in = operands_of(node), out = results_of(node), given;
    for (int32_t v : tape.operands_of(e))
      given.push_back(v == kNoVal ? Tensor() : values[static_cast<size_t>(v)]);
    Tensors made = jvp_of({*node.op, attrs_data(node), in, out}, given);
    for (size_t i = 0; i < out.size(); ++i) {
      if (!made[i].defined() || !is_differentiable(out[i].dtype())) continue;
      invariant(decide_equal(made[i].shape(), out[i].shape()),
                "jvp of {}: {} for a result of type {}", node.op->name, *type_of(made[i]),
                *type_of(out[i]));
      values[static_cast<size_t>(e.value) + i] = std::move(made[i]);
    }
  }
  Tensors result;
  for (int32_t v : tape.outputs)
    result.push_back(v == kNoVal ? Tensor() : values[static_cast<size_t>(v)]);
  return result;
}

std::vector<Batched> sweep_batch(const Tape& tape, std::vector<Batched> values,
                                 std::span<const Tensor> outputs, Dim size) {
  AsGiven types;
  values.resize(static_cast<size_t>(tape.values));
  Tensors in;
  std::vector<bool> batched;
  for (const Tape::Entry& e : tape.entries) {
    Node& node = e.node();
    OnBehalfOf user(node);
    in = operands_of(node);
    batched.assign(in.size(), false);
    bool any = false;
    for (size_t k = 0; k < in.size(); ++k) {
      int32_t v = tape.operands_of(e)[k];
      if (v == kNoVal) continue;
      in[k] = values[static_cast<size_t>(v)].value;
      any |= batched[k] = values[static_cast<size_t>(v)].batched;
    }
    Tensors out = any ? batch_of(*node.op, attrs_data(node), in, batched, size)
                      : emit_all(*node.op, in, attrs_data(node));
    for (size_t i = 0; i < out.size(); ++i)
      values[static_cast<size_t>(e.value) + i] = {std::move(out[i]), any};
  }
  std::vector<Batched> result;
  for (size_t i = 0; i < outputs.size(); ++i)
    result.push_back(tape.outputs[i] == kNoVal ? Batched{outputs[i], false}
                                               : values[static_cast<size_t>(tape.outputs[i])]);
  return result;
}

}  // namespace tn
