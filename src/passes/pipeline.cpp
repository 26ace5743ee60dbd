#include "passes/pipeline.h"

#include <cstring>
#include <map>

#include "base/error.h"
#include "base/interrupt.h"
#include "ir/rewrite.h"
#include "passes/layout.h"
#include "passes/passes.h"

namespace tn {

namespace {

constexpr Pass kFirst[] = {
    {"inline", "a call hides its ops from everything below", inline_calls},
    {"claim", "what no kernel runs whole is simplified as ops", claim_composites, false, true},
};

constexpr Pass kRound[] = {
    {"fold", "numbers first: other rules look for them", fold_constants},
    {"canon", "one way to write a thing, so that equal things look equal", canonicalise},
    {"cse", "forward and backward compute much in common", merge_equal_ops},
    {"dce", "the rules above leave what they replaced", drop_dead_ops},
};

constexpr Pass kAbsorb = {"absorb", "factors and terms are next to what they belong to",
                          absorb_factors, true};

constexpr Pass kLast[] = {
    {"recompute", "after the last cse, which would merge what is to be computed twice",
     repeat_rematerialised},
    {"canon", "views meet across the borders of recomputed segments", canonicalise},
    {"layout", "chains are as long as they get; canon would turn what pooling reads back",
     put_channels_last},
    {"fold", "weights that are now read in another order are put in it once", fold_constants},
    {"dce", "not everything that could be recomputed is needed", drop_dead_ops},
};

std::vector<Pass> unrolled(int rounds) {
  std::vector<Pass> list(std::begin(kFirst), std::end(kFirst));
  for (int i = 0; i < rounds; ++i) {
    list.insert(list.end(), std::begin(kRound), std::end(kRound));
    if (i == 0) list.push_back(kAbsorb);
  }
  list.insert(list.end(), std::begin(kLast), std::end(kLast));
  return list;
}

/// Numbers given at every run, as inputs while passes run: what they are must not matter.
class HiddenScalars {
 public:
  HiddenScalars(const Graph& graph, const PassContext& context)
      : at_(context.first_constant(graph)), count_(context.runtime_scalars) {}

  Graph hide(const Graph& graph) {
    if (count_ == 0) return graph;
    Graph out;
    out.name = graph.name;
    GraphCopy copy{graph, out};
    auto input = [&](Val v) {
      copy[v] = out.add_input(graph.input_names[static_cast<size_t>(v)], type(graph, v));
    };
    for (Val v = 0; v < at_; ++v) input(v);
    for (const GraphOp& op : graph.ops) {
      if (op.op != &scalar_leaf || static_cast<int>(hidden_.size()) == count_) continue;
      copy[op.out] = out.add_input(format("scalar{}", hidden_.size()), type(graph, op.out));
      hidden_.push_back(op);
    }
    invariant(static_cast<int>(hidden_.size()) == count_, "{}: {} numbers are given at every run",
              graph.name, count_);
    for (Val v = at_; v < graph.inputs(); ++v) input(v);
    for (const GraphOp& op : graph.ops)
      if (copy[op.out] == kNoVal) copy.op(op);
    out.outputs = copy.all(graph.outputs);
    return out;
  }

  Graph show(const Graph& graph) {
    if (count_ == 0) return graph;
    Graph out;
    out.name = graph.name;
    GraphCopy copy{graph, out};
    for (Val v = 0; v < graph.inputs(); ++v)
      if (v < at_ || v >= at_ + count_)
        copy[v] = out.add_input(graph.input_names[static_cast<size_t>(v)], type(graph, v));
    for (int i = 0; i < count_; ++i) {
      const GraphOp& op = hidden_[static_cast<size_t>(i)];
      copy[at_ + i] = out.add_constant(op.scalar, type(graph, at_ + i), op.loc);
    }
    for (const GraphOp& op : graph.ops) copy.op(op);
    out.outputs = copy.all(graph.outputs);
    return out;
  }

 private:
  static TypeRef type(const Graph& graph, Val v) { return graph.types[static_cast<size_t>(v)]; }
  Val at_;  // in front of the inputs whose values are known
  int count_;
  std::vector<GraphOp> hidden_;
};

bool same(const Graph& a, const Graph& b) {
  auto same_op = [](const GraphOp& x, const GraphOp& y) {
    return x.op == y.op && x.attrs == y.attrs && x.ins == y.ins &&
           bits_of(x.scalar) == bits_of(y.scalar);
  };
  return a.types == b.types && a.operands == b.operands && a.outputs == b.outputs &&
         std::ranges::equal(a.ops, b.ops, same_op);
}

}  // namespace

[[noreturn]] static void fail_by_name(std::string_view name,
                                      const std::vector<std::string_view>& names) {
  std::string_view near = nearest_name(name, names);
  Hint hint{near.empty() ? format("passes are: {}", join(names, ", "))
                         : format("did you mean '{}'?", near)};
  fail(hint, "pass: no pass named '{}'", name);
}

std::span<const Pass> pipeline(int rounds) {
  static const std::vector<Pass> kTables[] = {unrolled(1), unrolled(2), unrolled(3)};
  invariant(rounds >= 1 && rounds <= 3, "pipeline: 1 to 3 rounds, not {}", rounds);
  return kTables[rounds - 1];
}

void check_pass_name(std::string_view name, std::span<const std::string_view> others) {
  std::vector<std::string_view> names(others.begin(), others.end());
  for (const Pass& pass : pipeline(1))
    if (!std::ranges::count(names, pass.name)) names.push_back(pass.name);
  if (std::ranges::count(names, name)) return;
  fail_by_name(name, names);
}

void check_asked_for(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Pass& pass : pipeline(1))
    if (pass.asked_for) names.push_back(pass.name);
  if (!std::ranges::count(names, name)) fail_by_name(name, names);
}

Graph run_passes(const Graph& graph, PassContext& context, std::span<const Pass> passes,
                 std::span<const std::string> off) {
  context.off = off;
  HiddenScalars scalars(graph, context);
  Graph now = scalars.hide(graph);
  std::map<std::string_view, int> left_unchanged;  // the version that a pass had nothing to do on
  int version = 1;
  for (const Pass& pass : passes) {
    if (left_unchanged[pass.name] == version) continue;
    if (context.is_off(pass.name) && !pass.runs_when_off) continue;
    if (pass.asked_for && !context.is_asked_for(pass.name)) continue;
    stop_if_asked();
    Graph next = pass.run(now, context);
#ifndef NDEBUG
    verify(next, pass.name);
#endif
    if (same(now, next))
      left_unchanged[pass.name] = version;
    else
      ++version;
    now = std::move(next);
  }
  context.off = {};
  return scalars.show(now);
}

}  // namespace tn
