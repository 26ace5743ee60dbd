// composite(x…) = body(x…), unless the library has a kernel that computes it whole.
//
// Kept ones are worth more than their parts: attention never has its scores in memory. But where
// the graph computes the same parts for something else, as a derivative does, the whole would
// compute them twice: then it is expanded too, if what it shares is no larger than its operands and
// results. Switched off, none is kept. Nor is one where products of another device are to have the
// bits of the CPU: its kernels for wholes sum in orders of their own. Calls are no composites here:
// `inline` and `recompute` replace them.
#include "ir/rewrite.h"
#include "ops/op_decls.h"
#include "passes/passes.h"
#include "plan/backend.h"
#include "plan/library.h"

namespace tn {

namespace {

using IsKept = FunctionRef<bool(const Graph&, const GraphOp&)>;

Graph expanded(const Graph& graph, IsKept is_kept) {
  return replace_ops(graph, [&](const GraphOp& op) -> std::optional<Graph> {
    if (!op.op->rules->body || op.op == &ops::call || is_kept(graph, op)) return {};
    return expanded(body_graph(*op.op, op.attr_data(), graph.in_types(op)), is_kept);
  });
}

struct HasKernel {
  Target target;
  bool keeps_none;
  bool operator()(const Graph& graph, const GraphOp& op) const {
    if (keeps_none && op.op->rules->body) return false;
    return library_kernel(*op.op, graph.in_types(op), target) != nullptr;
  }
};
constexpr auto is_never_kept = [](const Graph&, const GraphOp&) { return false; };

Graph merged(const Graph& graph) {
  PassContext nothing_known;
  return prune(merge_equal_ops(canonicalise(graph, nothing_known), nothing_known));
}

/// Calls of library kernels for primitives: products are what is not to be computed twice.
int64_t count_kernels(const Graph& graph, const HasKernel& has_kernel) {
  return std::ranges::count_if(
      graph.ops, [&](const GraphOp& op) { return !op.op->rules->body && has_kernel(graph, op); });
}

/// Whether kernels that composites consist of are wanted by others too.
bool shares_parts(const Graph& graph, const HasKernel& has_kernel) {
  auto count = [&](const Graph& g, IsKept is_kept) {
    return count_kernels(merged(expanded(g, is_kept)), has_kernel);
  };
  int64_t kept = count(graph, has_kernel);
  for (const GraphOp& op : graph.ops) {
    if (!op.op->rules->body || !has_kernel(graph, op)) continue;
    Graph body = body_graph(*op.op, op.attr_data(), graph.in_types(op));
    kept += count(body, is_never_kept);
  }
  return count(graph, is_never_kept) < kept;
}

/// Whether nothing inside is larger than operands and results together.
bool is_small_inside(const Graph& graph, const GraphOp& op, const PassContext& context) {
  int64_t outside = 0, inside = 0;
  for (TypeRef t : graph.in_types(op)) outside += context.bytes(t);
  for (TypeRef t : graph.out_types(op)) outside += context.bytes(t);
  Graph body = body_graph(*op.op, op.attr_data(), graph.in_types(op));
  for (TypeRef t : expanded(body, is_never_kept).types) inside = std::max(inside, context.bytes(t));
  return inside <= outside;
}

}  // namespace

Graph claim_composites(const Graph& graph, PassContext& context) {
  bool keeps_none =
      context.products == Products::exact && !backend_of(context.target).has_exact_composites();
  HasKernel has_kernel{context.target, keeps_none};
  bool any = std::ranges::any_of(
      graph.ops, [&](const GraphOp& op) { return op.op->rules->body && has_kernel(graph, op); });
  bool shares = any && !context.is_off("claim") && shares_parts(graph, has_kernel);
  return expanded(graph, [&](const Graph& around, const GraphOp& op) {
    if (!has_kernel(around, op) || context.is_off("claim")) return false;
    bool is_kept = !(shares && is_small_inside(around, op, context));
    context.decide(
        "claim", is_kept, op.loc, [&] { return format("{} kept whole", op.op->name); },
        is_kept ? "the runtime has a kernel for it" : "others need its parts, which are small");
    return is_kept;
  });
}

}  // namespace tn
