#include "compiler/stored_values.h"

#include <algorithm>

#include "compiler/fusion.h"
#include "compiler/op_cost.h"
#include "passes/passes.h"

namespace tn {
namespace {

class Finder {
 public:
  Finder(const KernelSet& set, std::span<const Binding> sizes)
      : set_(set),
        graph_(set.graph),
        sizes_(sizes),
        costs_(costs_of(set.options.target)),
        stored_(graph_.types.size(), -1) {}

  StoredValues run() {
    for (int n : set_.order) add_item(n);
    seen_.assign(graph_.ops.size(), -1);
    for (size_t i = 0; i < found_.all.size(); ++i) trace(static_cast<int>(i));
    for (StoredValues::Item& item : found_.items) add_reads(item);
    for (Val v : graph_.outputs)
      if (int i = stored_[index(behind_views(v))]; i >= 0) at(i).kept = true;
    for (const StoredValues::Item& item : found_.items) take_donated(item);
    return std::move(found_);
  }

 private:
  static size_t index(int i) { return static_cast<size_t>(i); }
  const GraphOp& op(int i) const { return graph_.ops[index(i)]; }
  StoredValue& at(int i) { return found_.all[index(i)]; }
  int64_t bytes(Val v) const {
    TypeRef type = graph_.types[index(v)];
    return elements_at(type, sizes_) * size_of(type->dtype);
  }

  void add_item(int n) {
    StoredValues::Item& item = found_.items.emplace_back();
    auto add = [&](Val v) {
      stored_[index(v)] = static_cast<int>(found_.all.size());
      item.writes.push_back(stored_[index(v)]);
      found_.all.push_back({.value = v, .bytes = bytes(v)});
    };
    if (n < 0)
      for (Val v : set_.clusters[index(~n)].stores) add(v);
    else
      for (int k = 0; k < op(n).outs; ++k) add(op(n).out + k);
  }

  Val behind_views(Val v) const {
    for (int made_by; stored_[index(v)] < 0; v = graph_.in(op(made_by))[0]) {
      made_by = set_.producer[index(v)];
      if (made_by < 0 || !op(made_by).op->view) break;
    }
    return v;
  }

  /// The ops of stored value `i`: back to what else is stored.
  void trace(int i) {
    StoredValue& value = at(i);
    std::vector<int> pending = {set_.producer[index(value.value)]};
    while (!pending.empty()) {
      int n = pending.back();
      pending.pop_back();
      if (seen_[index(n)] == i) continue;
      seen_[index(n)] = i;
      value.ops.push_back(n);
      for (Val v : graph_.in(op(n))) {
        int from = stored_[index(v)], made_by = set_.producer[index(v)];
        if (from >= 0)
          value.from.push_back(from);
        else if (made_by >= 0 && op(made_by).op != &scalar_leaf)
          pending.push_back(made_by);
      }
    }
    std::ranges::sort(value.ops);
    drop_repeated(value.from);
    weigh(value);
  }

  void weigh(StoredValue& value) {
    int64_t moved = value.bytes;
    for (int from : value.from) moved += at(from).bytes;
    value.cost = static_cast<double>(moved) / costs_.memory_bytes_per_ns;
    for (int n : value.ops) {
      value.cost += work_of(graph_, op(n), sizes_, set_.options.target).nanoseconds;
      value.repeatable &= !has_effects(op(n)) && bodies_of(op(n)).empty();
    }
  }

  void add_reads(StoredValues::Item& item) {
    for (int w : item.writes) {
      const StoredValue& value = at(w);
      item.reads.insert(item.reads.end(), value.from.begin(), value.from.end());
      for (int n : value.ops) {
        item.effect |= has_effects(op(n)) || !bodies_of(op(n)).empty();
        for (Val v : graph_.in(op(n)))
          if (v < graph_.inputs()) item.inputs.push_back(v);
      }
    }
    drop_repeated(item.reads), drop_repeated(item.inputs);
    std::erase_if(item.reads, [&](int r) { return std::ranges::count(item.writes, r) > 0; });
  }

  /// A result as large as a donated input that its item reads needs no memory of its own.
  void take_donated(const StoredValues::Item& item) {
    const std::vector<bool>& donated = set_.options.donated;
    std::vector<Val> left = item.inputs;
    std::erase_if(left, [&](Val v) { return index(v) >= donated.size() || !donated[index(v)]; });
    for (int w : item.writes) {
      if (!at(w).kept) continue;
      auto found = std::ranges::find(left, at(w).bytes, [&](Val v) { return bytes(v); });
      if (found == left.end()) continue;
      left.erase(found);
      at(w).bytes = 0;
    }
  }

  static void drop_repeated(std::vector<int>& list) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }

  const KernelSet& set_;
  const Graph& graph_;
  std::span<const Binding> sizes_;
  const TargetCosts& costs_;
  std::vector<int> stored_;  // by value: its number, or -1
  std::vector<int> seen_;    // by op: the stored value that it was last met for
  StoredValues found_;
};

}  // namespace

StoredValues stored_values(const KernelSet& set, std::span<const Binding> sizes) {
  return Finder(set, sizes).run();
}

}  // namespace tn
