#include "compiler/residence.h"

#include <algorithm>
#include <limits>

namespace tn {
namespace {

constexpr int kNever = std::numeric_limits<int>::max();
constexpr double kImpossible = std::numeric_limits<double>::infinity();
/// Values looked at to weigh one.
constexpr size_t kMostMet = 256;
/// Turns for an item, on average: with less memory than one part of a graph needs, everything would
/// be dropped and made again without end.
constexpr size_t kMostTurns = 4;

class Run {
 public:
  Run(const StoredValues& values, std::span<const int32_t> order, int64_t budget)
      : values_(values),
        order_(order),
        budget_(budget),
        uses_(values.all.size()),
        readers_(values.all.size()),
        resident_(values.all.size()),
        made_(values.all.size()),
        pins_(values.all.size()),
        met_(values.all.size()) {
    for (size_t i = 0; i < order.size(); ++i)
      for (int r : item_at(i).reads) uses_[index(r)].push_back(static_cast<int>(i));
    for (size_t v = 0; v < values.all.size(); ++v)
      for (int from : values.all[v].from) readers_[index(from)].push_back(static_cast<int>(v));
  }

  Residence run() {
    while (index(now_) < order_.size()) {
      const StoredValues::Item& item = item_at(index(now_));
      for (int r : item.reads) require(r);
      out_.turns.push_back({.item = order_[index(now_)]});
      for (int w : item.writes) hold(w);
      make_room();
      for (int r : item.reads) --pins_[index(r)];
      ++now_;
      drop_dead(item.reads), drop_dead(item.writes);
    }
    return std::move(out_);
  }

 private:
  static size_t index(int i) { return static_cast<size_t>(i); }
  const StoredValue& at(int v) const { return values_.all[index(v)]; }
  const StoredValues::Item& item_at(size_t i) const { return values_.items[index(order_[i])]; }

  void hold(int v) {
    resident_[index(v)] = made_[index(v)] = true;
    live_ += at(v).bytes;
  }
  void drop(int v) {
    resident_[index(v)] = false;
    live_ -= at(v).bytes;
  }

  void drop_dead(const std::vector<int>& list) {
    for (int v : list)
      if (resident_[index(v)] && !at(v).kept && needed_at(v) == kNever) drop(v);
  }

  /// Afterwards `v` is in memory, and pinned there. Its operands come first.
  void require(int v) {
    struct Visit {
      int value;
      size_t next = 0;  // operand to look at
    };
    std::vector<Visit> path = {{v}};
    while (!path.empty()) {
      auto [value, next] = path.back();
      const std::vector<int>& from = at(value).from;
      if (!resident_[index(value)] && next < from.size()) {
        ++path.back().next;
        path.push_back({from[next]});
        continue;
      }
      ++pins_[index(value)];
      if (!resident_[index(value)]) {
        compute_again(value);
        for (int operand : from) --pins_[index(operand)];
      }
      path.pop_back();
    }
  }

  void compute_again(int v) {
    out_.turns.push_back({.value = v});
    out_.cost += at(v).cost;
    hold(v);
    make_room();
  }

  /// Drops what is not pinned until the rest fits.
  void make_room() {
    bool thrashes = out_.turns.size() > kMostTurns * order_.size();
    if (live_ > budget_ && !thrashes) drop_until_it_fits();
    out_.peak = std::max(out_.peak, live_);
  }

  void drop_until_it_fits() {
    std::vector<std::pair<double, int>> heap;
    for (int v = 0; v < static_cast<int>(values_.all.size()); ++v)
      if (resident_[index(v)] && !pins_[index(v)] && !at(v).kept && at(v).bytes > 0)
        if (double gain = gain_of(v); gain > 0) heap.push_back({gain, v});
    std::ranges::make_heap(heap);
    while (live_ > budget_ && !heap.empty()) {
      std::ranges::pop_heap(heap);
      auto [gain, v] = heap.back();
      heap.pop_back();
      // What was dropped since makes others dearer, never cheaper: the rest of the heap is no
      // better.
      if (double now = gain_of(v); now < gain) {
        if (now > 0) heap.push_back({now, v}), std::ranges::push_heap(heap);
      } else {
        drop(v);
      }
    }
  }

  /// Of dropping a value: bytes and how long they are free, for the cost of making it again.
  double gain_of(int v) {
    int next = needed_at(v);
    if (next == kNever) return kImpossible;
    double cost = cost_of(v);
    return static_cast<double>(at(v).bytes) * (next - now_) / cost;
  }

  /// When an item reads `v`, or something that was dropped and is made of it.
  int needed_at(int v) {
    int first = kNever;
    bool all = visit(v, [&](int met, std::vector<int>& pending) {
      auto next = std::ranges::lower_bound(uses_[index(met)], now_);
      if (next != uses_[index(met)].end()) first = std::min(first, *next);
      for (int reader : readers_[index(met)])
        if (made_[index(reader)] && !resident_[index(reader)]) pending.push_back(reader);
    });
    return all ? first : std::min(first, now_ + 1);
  }

  /// Of making it again, with all that was dropped and it is made of.
  double cost_of(int v) {
    double cost = 0;
    bool all = visit(v, [&](int met, std::vector<int>& pending) {
      cost += at(met).repeatable ? at(met).cost : kImpossible;
      for (int from : at(met).from)
        if (!resident_[index(from)]) pending.push_back(from);
    });
    return all ? cost : kImpossible;
  }

  /// Each value that `meet` leads to, once; false where there are too many.
  template <class Meet>
  bool visit(int v, Meet meet) {
    ++visits_;
    std::vector<int> pending = {v};
    for (size_t met = 0; !pending.empty(); ++met) {
      if (met == kMostMet) return false;
      int next = pending.back();
      pending.pop_back();
      if (met_[index(next)] == visits_) continue;
      met_[index(next)] = visits_;
      meet(next, pending);
    }
    return true;
  }

  const StoredValues& values_;
  std::span<const int32_t> order_;
  const int64_t budget_;
  // By value.
  std::vector<std::vector<int>> uses_;     // when items read it: places in the order
  std::vector<std::vector<int>> readers_;  // values made of it
  std::vector<bool> resident_, made_;
  std::vector<int> pins_;
  std::vector<int64_t> met_;
  int64_t visits_ = 0, live_ = 0;
  int now_ = 0;  // place in the order
  Residence out_;
};

}  // namespace

Residence reside(const StoredValues& values, std::span<const int32_t> order, int64_t budget) {
  return Run(values, order, budget).run();
}

}  // namespace tn
