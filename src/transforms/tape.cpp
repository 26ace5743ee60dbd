#include "transforms/tape.h"

#include <algorithm>

#include "base/error.h"
#include "ir/number.h"
#include "ir/trace.h"
#include "ir/walk.h"
#include "ir/watch.h"
#include "ops/call.h"
#include "ops/op_decls.h"

namespace tn {

Tensor operand_of(const Node& node, int k) {
  const Edge& edge = const_cast<Node&>(node).inputs()[k];
  retain(edge.node);
  return {edge.node, edge.index};
}

Tensors operands_of(const Node& node) {
  Tensors in;
  for (int k = 0; k < node.ins; ++k) in.push_back(operand_of(node, k));
  return in;
}

Tensors operands_of(const Tape& tape, const Tape::Entry& entry) {
  if (tape.held.empty()) return operands_of(entry.node());
  auto first = tape.held.begin() + entry.operand;
  return {first, first + entry.node().ins};
}

Tensors results_of(Node& node) {
  Tensors out;
  for (uint32_t i = 0; i < node.outs; ++i) {
    retain(&node);
    out.emplace_back(&node, i);
  }
  return out;
}

void check_given(const Tensors& list, std::string_view by, std::string_view what) {
  for (size_t i = 0; i < list.size(); ++i)
    if (!list[i].defined()) fail(Fault::type, "{}: {} {} is missing", by, what, i);
}

Tensor taped_copy(const Tensor& x) {
  Tensor copy = emit(ops::copy, {x});
  copy.node()->taped = Trace::tape_of_argument(x.node()->taped);
  return copy;
}

namespace {

/// How far a walk goes back: to what depends on the inputs, to all that is new, or to the leaves of
/// backward(), which are found on the way.
enum class Reach : uint8_t { inputs, everything, leaves };

/// While walking, `index` of a node met counts the operands visited; afterwards it is 1 + the
/// number of its first result, or 0 when it does not depend on the inputs. Leaves that are found
/// are numbered down from kFirstLeaf, and in the end from 0.
struct TapeWalk {
  static constexpr int32_t kFirstLeaf = kNoVal - 1;

  Tape& tape;
  uint32_t epoch;
  uint64_t oldest;
  Reach reach;
  std::vector<Node*> stack = {};
  Tensors leaves = {};
  Tensor blocked = {};

  void enter(Node* node) {
    if (node->epoch == epoch) return;
    node->epoch = epoch, node->index = 0;
    if (reach == Reach::leaves ? leads_to_leaf(node) : may_depend(*node)) stack.push_back(node);
  }
  bool may_depend(Node& node) const {
    // A node without operands is inside only when everything is, and then while it is pending;
    // one whose operands are gone has been computed.
    bool everything = reach == Reach::everything;
    bool inside = node.ins > 0 ? node.inputs()[0].node != nullptr : everything && node.is_pending();
    return inside && node.sequence >= oldest && (everything || node.taped || node.traced);
  }
  bool leads_to_leaf(Node* node) {
    uint8_t bits = watch_bits(*node);
    if (!(bits & kOnPath)) return false;
    if (bits & kLeaf) {
      node->index = static_cast<uint32_t>(kFirstLeaf + 1) - static_cast<uint32_t>(leaves.size());
      retain(node);
      leaves.emplace_back(node, 0);
      return false;
    }
    bool open = !(bits & kSpent) && node->ins > 0 && node->inputs()[0].node;
    if (!open) block(node);
    return open;
  }
  void block(Node* node) {
    retain(node);
    blocked = Tensor(node, 0);
  }
  int32_t value_of(const Edge& edge) const {
    return edge.node->index ? static_cast<int32_t>(edge.node->index - 1 + edge.index) : kNoVal;
  }
  void finish(Node* node) {
    size_t before = tape.operands.size();
    bool depends = reach == Reach::everything;
    for (int k = 0; k < node->ins; ++k) {
      tape.operands.push_back(value_of(node->inputs()[k]));
      depends |= tape.operands.back() != kNoVal;
    }
    node->index = 0;
    if (!depends) return tape.operands.resize(before);
    for (int k = 0; reach == Reach::leaves && k < node->ins; ++k)
      tape.held.push_back(operand_of(*node, k));
    node->index = static_cast<uint32_t>(tape.values) + 1;
    retain(node);
    tape.entries.push_back({Tensor(node, 0), static_cast<int32_t>(before), tape.values});
    tape.values += node->outs;
  }
  void visit(Node* root) {
    enter(root);
    while (!stack.empty()) {
      Node* node = stack.back();
      if (node->index < node->ins) {
        Node* operand = node->inputs()[node->index++].node;
        if (reach == Reach::leaves && has_lost_leaf(*node, *operand)) block(operand);
        enter(operand);
        continue;
      }
      stack.pop_back();
      finish(node);
    }
  }
  /// Makes the leaves that were found the inputs, which come first.
  void number_leaves() {
    auto count = static_cast<int32_t>(leaves.size());
    auto renumber = [count](int32_t& value) {
      if (value != kNoVal) value = value < kNoVal ? kFirstLeaf - value : value + count;
    };
    for (int32_t& v : tape.operands) renumber(v);
    for (int32_t& v : tape.outputs) renumber(v);
    for (Tape::Entry& e : tape.entries) e.value += count;
    tape.inputs += count, tape.values += count;
  }
};

}  // namespace

static Tape walk_tape(uint64_t oldest, Reach reach, std::span<const Tensor> inputs,
                      std::span<const Tensor> outputs, size_t distinct) {
  Tape tape;
  std::lock_guard lock(walk_mutex());
  TapeWalk walk{tape, new_epoch(), oldest, reach};
  tape.inputs = tape.values = static_cast<int32_t>(distinct);
  for (size_t i = 0; i < inputs.size(); ++i) {
    Node* node = inputs[i].node();
    node->epoch = walk.epoch;
    node->index = static_cast<uint32_t>(i % distinct) + 1;
  }
  for (const Tensor& t : outputs) walk.visit(t.node());
  for (const Tensor& t : outputs) tape.outputs.push_back(walk.value_of({t.node(), t.index()}));
  return tape;
}

Tape tape_of(std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  return tape_of(inputs, outputs, inputs.size());
}

Tape tape_of(std::span<const Tensor> inputs, std::span<const Tensor> outputs, size_t distinct) {
  uint64_t oldest = UINT64_MAX;
  for (const Tensor& t : inputs) oldest = std::min(oldest, t.node()->sequence);
  return walk_tape(oldest, Reach::inputs, inputs, outputs, distinct);
}

Tape tape_since(uint64_t start, std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  return walk_tape(start, Reach::everything, inputs, outputs, inputs.size());
}

WatchedTape tape_to_leaves(const Tensor& loss) {
  WatchedTape made;
  std::lock_guard lock(walk_mutex());
  TapeWalk walk{made.tape, new_epoch(), 0, Reach::leaves};
  walk.visit(loss.node());
  made.tape.outputs = {walk.value_of({loss.node(), loss.index()})};
  walk.number_leaves();
  made.leaves = std::move(walk.leaves), made.blocked = std::move(walk.blocked);
  return made;
}

/// Whether simplification may depend on the value: then it is part of the graph.
static bool is_part(const Scalar& s) {
  return number_class(s.real) || (s.imag != 0 && number_class(s.imag));
}

Captured capture(const Tape& tape, std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                 Numbers numbers) {
  Recorded recorded{inputs, {}, {}, {}, {}};
  auto meet = [&](Node& node) {
    bool inside =
        is_scalar(node) && (numbers == Numbers::are_constants || is_part(scalar_value(node)));
    if (!inside) recorded.leaves.push_back(&node);
  };
  for (const Tape::Entry& e : tape.entries) {
    recorded.ops.push_back(&e.node());
    for (int k = 0; k < e.node().ins; ++k)
      if (tape.operands_of(e)[static_cast<size_t>(k)] == kNoVal &&
          !ops::leads_to_rules(e.node(), k))
        meet(*e.node().inputs()[k].node);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    recorded.outputs.push_back({outputs[i].node(), outputs[i].index()});
    if (tape.outputs[i] == kNoVal) meet(*outputs[i].node());
  }
  return graph_of(recorded);
}

}  // namespace tn
