#include "compiler/group.h"

#include <algorithm>

#include "compiler/fusion.h"
#include "compiler/op_cost.h"

namespace tn {

namespace {

constexpr int kMaxGroup = 200;  // ops in one kernel
constexpr int kMaxReaders = 3;  // kernels that may compute an op again rather than read it
constexpr int kCheap = 3;       // scalar operations worth less than a pass over memory

/// The kernels that read a value.
struct Readers {
  int kernels[kMaxReaders];
  int count = 0;
  bool others = false;  // views, library calls, or too many kernels

  void add(int kernel) {
    for (int i = 0; i < count; ++i)
      if (kernels[i] == kernel) return;
    if (kernel < 0 || count == kMaxReaders)
      others = true;
    else
      kernels[count++] = kernel;
  }
};

class Grouper {
 public:
  explicit Grouper(const Graph& graph)
      : graph_(graph),
        readers_(graph.types.size()),
        size_(graph.ops.size()),
        returned_(graph.types.size()) {
    grouping_.of.assign(graph.ops.size(), Grouping::kAlone);
    grouping_.producer.assign(graph.types.size(), -1);
    for (size_t i = 0; i < graph.ops.size(); ++i)
      for (int k = 0; k < graph.ops[i].outs; ++k)
        grouping_.producer[static_cast<size_t>(graph.ops[i].out + k)] = static_cast<int>(i);
    for (Val v : graph.outputs) returned_[static_cast<size_t>(v)] = true;
    for (size_t i = 0; i < graph.ops.size(); ++i) {
      const GraphOp& op = graph.ops[i];
      bool library = op.op != &scalar_leaf && !op.op->view && !has_loop_form(graph_, op);
      libraries_.push_back((i ? libraries_.back() : 0) + library);
    }
  }

  // From the last op to the first: an elementwise op joins the kernel of its readers when they all
  // are in one kernel and visit the same points. All readers inside means no path leaves the kernel
  // and comes back.
  Grouping group() {
    for (int i = static_cast<int>(graph_.ops.size()) - 1; i >= 0; --i) {
      const GraphOp& op = graph_.ops[static_cast<size_t>(i)];
      int mine = place(op, i);
      grouping_.of[static_cast<size_t>(i)] = mine;
      if (mine >= 0) ++size_[static_cast<size_t>(mine)];
      for (Val v : graph_.in(op)) readers_[static_cast<size_t>(v)].add(mine);
    }
    return std::move(grouping_);
  }

 private:
  TypeRef type(Val v) const { return graph_.types[static_cast<size_t>(v)]; }

  /// The points a kernel rooted at op `root` visits: of the result, or of what a reduction reads.
  const Shape& domain(int root) const {
    const GraphOp& op = graph_.ops[static_cast<size_t>(root)];
    return type(folds(root) ? graph_.in(op)[0] : op.out)->shape;
  }
  bool folds(int root) const {
    return graph_.ops[static_cast<size_t>(root)].op->family == Family::reduction;
  }

  int place(const GraphOp& op, int i) const {
    if (!has_loop_form(graph_, op)) return Grouping::kAlone;
    if (!op.op->is_elementwise()) return i;
    const Readers& readers = readers_[static_cast<size_t>(op.out)];
    bool same_points = readers.count > 0 && !readers.others;
    for (int k = 0; k < readers.count; ++k)
      same_points &= type(op.out)->shape == domain(readers.kernels[k]);
    if (!same_points) return i;
    bool stored = returned_[static_cast<size_t>(op.out)];
    int only = readers.kernels[0];
    if (readers.count > 1) return !stored && is_cheap_to_repeat(op) ? Grouping::kInlined : i;
    bool fits = size_[static_cast<size_t>(only)] < kMaxGroup && !(stored && folds(only)) &&
                !holds_operands(op, i, only);
    return fits ? only : i;
  }

  /// Whether computing `op` in a later kernel keeps two operands alive across library calls, where
  /// one result would do: gradients that are added up as they come.
  bool holds_operands(const GraphOp& op, int i, int kernel) const {
    if (libraries_[static_cast<size_t>(kernel)] == libraries_[static_cast<size_t>(i)]) return false;
    Val first = kNoVal;
    for (Val v : graph_.in(op)) {
      int made_by = grouping_.producer[static_cast<size_t>(v)];
      bool large = made_by >= 0 && type(v)->shape == type(op.out)->shape;
      if (!large || graph_.ops[static_cast<size_t>(made_by)].op == &scalar_leaf) continue;
      if (first != kNoVal && first != v) return true;
      first = v;
    }
    return false;
  }

  /// Reading its operands again must not cost more than reading its result: none of them is itself
  /// the result of scalar work on all points.
  bool is_cheap_to_repeat(const GraphOp& op) const {
    DType dtype = type(graph_.in(op).back())->dtype;
    bool plain = op.op->operands != Operands::select && op.op->scalar;
    if (!plain || is_complex(dtype) || is_complex(type(op.out)->dtype)) return false;
    int large = 0;
    for (Val v : graph_.in(op)) {
      if (type(v)->shape != type(op.out)->shape) continue;
      int made_by = grouping_.producer[static_cast<size_t>(v)];
      if (++large > 1 ||
          (made_by >= 0 && graph_.ops[static_cast<size_t>(made_by)].op->is_elementwise()))
        return false;
    }
    return scalar_cost(*op.op, op.attr_data(), info(dtype).compute) <= kCheap;
  }

  const Graph& graph_;
  std::vector<Readers> readers_;
  std::vector<int> size_;
  std::vector<bool> returned_;
  std::vector<int> libraries_;  // library calls among the ops up to each
  Grouping grouping_;
};

}  // namespace

Grouping group_elementwise(const Graph& graph) { return Grouper(graph).group(); }

}  // namespace tn
