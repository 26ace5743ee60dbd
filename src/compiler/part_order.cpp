#include "compiler/part_order.h"

#include <algorithm>
#include <climits>
#include <map>
#include <tuple>

#include "base/error.h"

namespace tn {
namespace {

class Order {
 public:
  explicit Order(const std::vector<OrderedPart>& parts) : parts_(parts), state_(parts.size()) {
    made_.begin.resize(parts.size()), made_.end.resize(parts.size());
    for (int p = 0; p < count(); ++p)
      for (int before : part(p).after) readers_of(before).push_back(p);
    find_heights();
    for (int p = 0; p < count(); ++p) {
      state(p).left = static_cast<int>(part(p).after.size());
      for (int reader : readers_of(p)) {
        bool is_later = part(reader).device == part(p).device && part(reader).stage > part(p).stage;
        int last = state(p).closed_by;
        if (is_later && (last < 0 || part(reader).stage > part(last).stage))
          state(p).closed_by = reader;
      }
    }
  }

  PartOrder run() {
    while (made_.order.size() < parts_.size()) {
      int next = best(true);
      if (next < 0 && advance()) continue;
      if (next < 0) next = best(false);
      invariant(next >= 0, "placing: parts wait for each other");
      start(next);
    }
    return std::move(made_);
  }

 private:
  using Key = std::tuple<uint8_t, uint8_t, int>;  // a device and a stage
  struct State {
    std::vector<int> readers;
    int height = 0;      // parts on the longest way to the end
    int left = 0;        // parts that it reads and that have not ended
    int closed_by = -1;  // the last later part of its device that reads it
    bool started = false;
  };

  int count() const { return static_cast<int>(parts_.size()); }
  const OrderedPart& part(int p) const { return parts_[static_cast<size_t>(p)]; }
  State& state(int p) { return state_[static_cast<size_t>(p)]; }
  std::vector<int>& readers_of(int p) { return state(p).readers; }
  int end_of(int p) const { return made_.end[static_cast<size_t>(p)]; }
  static std::pair<uint8_t, uint8_t> key_of(Device d) { return {d.kind, d.index}; }
  Key key_of(int p) const { return {part(p).device.kind, part(p).device.index, part(p).stage}; }

  void find_heights() {
    std::vector<int> left(parts_.size()), ready;
    for (int p = 0; p < count(); ++p) {
      left[static_cast<size_t>(p)] = static_cast<int>(readers_of(p).size());
      if (readers_of(p).empty()) ready.push_back(p);
    }
    while (!ready.empty()) {
      int p = ready.back();
      ready.pop_back();
      for (int before : part(p).after) {
        state(before).height = std::max(state(before).height, state(p).height + 1);
        if (--left[static_cast<size_t>(before)] == 0) ready.push_back(before);
      }
    }
  }

  bool is_held_back(int p) {
    int last = state(p).closed_by;
    if (last < 0) return false;
    return open_[key_of(p)] >= (part(last).stage - part(p).stage) / 2 + 1;
  }

  /// The part to begin now; -1: none. `bounded`: no device works further ahead than it should.
  int best(bool bounded) {
    auto rank = [&](int p) {
      return std::tuple(part(p).stage, state(p).height, part(p).waits, -p);
    };
    int found = -1;
    for (int p = 0; p < count(); ++p) {
      const State& s = state(p);
      bool can = !s.started && s.left == 0 && busy_until_[key_of(part(p).device)] <= now_;
      if (!can || (bounded && is_held_back(p))) continue;
      if (found < 0 || rank(p) > rank(found)) found = p;
    }
    return found;
  }

  void start(int p) {
    state(p).started = true;
    if (state(p).closed_by >= 0) ++open_[key_of(p)];
    for (int before : part(p).after)
      if (state(before).closed_by == p) --open_[key_of(before)];
    int end = now_ + part(p).time;
    made_.order.push_back(p);
    made_.begin[static_cast<size_t>(p)] = now_, made_.end[static_cast<size_t>(p)] = end;
    busy_until_[key_of(part(p).device)] = end;
    running_.push_back(p);
    finish();
  }

  void finish() {
    std::erase_if(running_, [&](int p) {
      if (end_of(p) > now_) return false;
      for (int reader : readers_of(p)) --state(reader).left;
      return true;
    });
  }

  /// To the next end of a part. False: nothing runs.
  bool advance() {
    int next = INT_MAX;
    for (int p : running_) next = std::min(next, end_of(p));
    if (next == INT_MAX) return false;
    now_ = next;
    finish();
    return true;
  }

  const std::vector<OrderedPart>& parts_;
  std::vector<State> state_;
  std::map<std::pair<uint8_t, uint8_t>, int> busy_until_;
  std::map<Key, int> open_;
  std::vector<int> running_;
  int now_ = 0;
  PartOrder made_;
};

}  // namespace

PartOrder order_parts(const std::vector<OrderedPart>& parts) { return Order(parts).run(); }

}  // namespace tn
