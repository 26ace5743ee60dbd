// Folds over the workers of several machines.
#include <algorithm>
#include <bit>
#include <cstring>

#include "base/half.h"
#include "workers/machines_transport.h"
#include "workers/rank_fold.h"

namespace tn::workers {
namespace {

bool is_narrow(Element type) { return type == Element::f16 || type == Element::bf16; }
/// In which roots are exchanged: narrow types are rounded once, at the end.
Element wide_of(Element type) { return is_narrow(type) ? Element::f32 : type; }

int64_t width_of(Element type) { return static_cast<int64_t>(element_bytes(type)); }

void widen(Element type, const void* in, float* out, int64_t count) {
  auto* x = static_cast<const uint16_t*>(in);
  for (int64_t i = 0; i < count; ++i)
    out[i] = type == Element::f16 ? float16_to_float(x[i]) : bfloat16_to_float(x[i]);
}
void narrow(Element type, const float* in, void* out, int64_t count) {
  auto* x = static_cast<uint16_t*>(out);
  for (int64_t i = 0; i < count; ++i)
    x[i] = type == Element::f16 ? float_to_float16(in[i]) : float_to_bfloat16(in[i]);
}

struct Part {
  int64_t begin, end;
  int64_t count() const { return end - begin; }
};
Part slice_of(int64_t count, int k, int parts) {
  return {count * k / parts, count * (k + 1) / parts};
}

std::vector<const void*> moved(std::vector<const void*> all, int64_t bytes) {
  for (const void*& p : all) p = static_cast<const std::byte*>(p) + bytes;
  return all;
}

/// The inner nodes of the tree over ranks, whose lower nodes are roots of machines.
class RestOfTree {
 public:
  static constexpr int64_t kBlock = 4096;  // elements

  RestOfTree(Fold kind, Element type, std::vector<const std::byte*> by_rank)
      : kind_(kind), type_(type), by_rank_(std::move(by_rank)), rooms_(kLevels) {}

  /// Elements [at, at + count): where they are.
  const std::byte* fold(int first, int last, size_t level, int64_t at, int64_t count) {
    if (const std::byte* root = by_rank_[static_cast<size_t>(first)]; root && is_root(first, last))
      return root + at * width_of(type_);
    int middle = first + static_cast<int>(std::bit_floor(static_cast<unsigned>(last - first - 1)));
    const void* both[] = {fold(first, middle, level, at, count),
                          fold(middle, last, level + 1, at, count)};
    std::vector<std::byte>& room = rooms_[level];
    room.resize(static_cast<size_t>(kBlock * width_of(type_)));
    workers::fold(kind_, type_, both, room.data(), count);
    return room.data();
  }

 private:
  static constexpr size_t kLevels = 24;
  /// A root begins at `first` and ends where the next one begins.
  bool is_root(int first, int last) const {
    for (int r = first + 1; r < last; ++r)
      if (by_rank_[static_cast<size_t>(r)]) return false;
    return true;
  }

  Fold kind_;
  Element type_;
  std::vector<const std::byte*> by_rank_;  // null: inside of a root
  std::vector<std::vector<std::byte>> rooms_;
};

}  // namespace

void MachinesTransport::fold_roots(const CollectiveCall& call,
                                   const std::vector<const void*>& operands, int64_t count,
                                   std::byte* out) const {
  Element wide = wide_of(call.element);
  std::vector<std::vector<float>> widened(operands.size());
  std::vector<const void*> values = operands;
  if (wide != call.element)
    for (size_t k = 0; k < operands.size(); ++k) {
      widened[k].resize(static_cast<size_t>(count));
      widen(call.element, operands[k], widened[k].data(), count);
      values[k] = widened[k].data();
    }
  for (Range root : roots_[static_cast<size_t>(members_.own)]) {
    std::vector<const void*> in;
    for (int r = root.first; r < root.last; ++r)
      in.push_back(values[static_cast<size_t>(seats_[static_cast<size_t>(r)].place)]);
    fold(call.fold, wide, in, out, count);
    out += count * width_of(wide);
  }
}

void MachinesTransport::fold_rest(const CollectiveCall& call,
                                  const std::vector<const std::byte*>& roots, int64_t count,
                                  std::byte* out) const {
  Element wide = wide_of(call.element);
  std::vector<const std::byte*> by_rank(seats_.size(), nullptr);
  for (int m = 0; m < machines(); ++m) {
    const std::byte* at = roots[static_cast<size_t>(m)];
    for (Range root : roots_[static_cast<size_t>(m)]) {
      by_rank[static_cast<size_t>(root.first)] = at;
      at += count * width_of(wide);
    }
  }
  RestOfTree tree(call.fold, wide, std::move(by_rank));
  for (int64_t at = 0; at < count; at += RestOfTree::kBlock) {
    int64_t now = std::min(RestOfTree::kBlock, count - at);
    const std::byte* folded = tree.fold(0, size(), 0, at, now);
    std::byte* to = out + at * width_of(call.element);
    if (wide != call.element)
      narrow(call.element, reinterpret_cast<const float*>(folded), to, now);
    else
      std::memcpy(to, folded, static_cast<size_t>(now * width_of(wide)));
  }
}

/// Little data: the first workers swap all roots at once.
void MachinesTransport::reduce_in_one(const CollectiveCall& call) {
  int64_t bytes = call.count * width_of(call.element);
  if (bytes) std::memcpy(my_slot(), call.in, static_cast<size_t>(bytes));
  std::vector<const void*> operands = slots();
  arrive_and_wait();
  if (rank_ == 0) {
    int64_t each = call.count * width_of(wide_of(call.element));
    std::vector<std::byte> own(static_cast<size_t>(roots_on(members_.own) * each));
    fold_roots(call, operands, call.count, own.data());
    auto got = meet(call, own.data(), static_cast<int64_t>(own.size()));
    std::vector<const std::byte*> roots;
    for (const auto& from : got) roots.push_back(from.data());
    fold_rest(call, roots, call.count, my_slot());
  }
  const std::byte* folded = slot_of(0);
  arrive_and_wait();
  if (bytes) std::memcpy(call.out, folded, static_cast<size_t>(bytes));
}

/// Much data: worker k of every machine folds slice k, with its counterparts elsewhere.
void MachinesTransport::reduce_in_slices(const CollectiveCall& call) {
  meet_and_arrive(call);
  int64_t width = width_of(call.element), bytes = call.count * width;
  for (int64_t at = 0; at < bytes; at += kSlotBytes) {
    int64_t piece = std::min(kSlotBytes, bytes - at), count = piece / width;
    std::memcpy(my_slot(), static_cast<const std::byte*>(call.in) + at, static_cast<size_t>(piece));
    std::vector<const void*> operands = slots();
    arrive_and_wait();
    Part own = slice_of(count, rank_, lanes_);
    if (rank_ < lanes_)
      reduce_slice(call, moved(std::move(operands), own.begin * width), own.count(), my_slot());
    std::vector<const void*> folded = slots();
    arrive_and_wait();
    for (int k = 0; k < lanes_; ++k) {
      Part part = slice_of(count, k, lanes_);
      std::memcpy(static_cast<std::byte*>(call.out) + at + part.begin * width,
                  folded[static_cast<size_t>(k)], static_cast<size_t>(part.count() * width));
    }
  }
}

/// A slice is divided again between the machines: each folds its part, and all gather the results.
void MachinesTransport::reduce_slice(const CollectiveCall& call,
                                     const std::vector<const void*>& operands, int64_t count,
                                     std::byte* out) {
  int64_t width = width_of(call.element), wide = width_of(wide_of(call.element));
  auto size_for = [&](int machine, int64_t of) {
    return static_cast<size_t>(roots_on(machine) * of * wide);
  };
  std::vector<std::vector<std::byte>> sent(roots_.size()), got(roots_.size());
  std::vector<Transfer> swap, spread;
  int64_t own = slice_of(count, members_.own, machines()).count();
  for (int m = 0; m < machines(); ++m) {
    auto k = static_cast<size_t>(m);
    Part part = slice_of(count, m, machines());
    sent[k].resize(size_for(members_.own, part.count()));
    fold_roots(call, moved(operands, part.begin * width), part.count(), sent[k].data());
    if (m == members_.own) continue;
    got[k].resize(size_for(m, own));
    int peer = ranks_on(m)[static_cast<size_t>(rank_)];
    swap.push_back(receiving(peer, got[k].data(), static_cast<int64_t>(got[k].size())));
    swap.push_back(sending(peer, sent[k].data(), static_cast<int64_t>(sent[k].size())));
  }
  got[static_cast<size_t>(members_.own)] = std::move(sent[static_cast<size_t>(members_.own)]);
  transfer(swap);
  std::vector<const std::byte*> roots;
  for (const auto& from : got) roots.push_back(from.data());
  std::byte* mine = out + slice_of(count, members_.own, machines()).begin * width;
  fold_rest(call, roots, own, mine);
  for (int m = 0; m < machines(); ++m) {
    if (m == members_.own) continue;
    Part part = slice_of(count, m, machines());
    int peer = ranks_on(m)[static_cast<size_t>(rank_)];
    spread.push_back(receiving(peer, out + part.begin * width, part.count() * width));
    spread.push_back(sending(peer, mine, own * width));
  }
  transfer(spread);
}

/// Every worker of a machine folds the pieces for its counterparts on other machines.
void MachinesTransport::scatter_sums(const CollectiveCall& call, int64_t bytes) {
  meet_and_arrive(call);
  int64_t width = width_of(call.element), wide = width_of(wide_of(call.element));
  int64_t room = kSlotBytes / size() / 64 * 64, at = 0;
  do {
    int64_t piece = std::min(room, bytes - at), count = piece / width;
    for (int r = 0; r < size() && piece; ++r)
      std::memcpy(my_slot() + r * room, static_cast<const std::byte*>(call.in) + r * bytes + at,
                  static_cast<size_t>(piece));
    std::vector<const void*> from = slots();
    arrive_and_wait();
    std::vector<std::vector<std::byte>> sent(seats_.size()), got(roots_.size());
    std::vector<Transfer> transfers;
    for (int r = 0; r < size(); ++r) {
      Seat seat = seats_[static_cast<size_t>(r)];
      bool is_own = r == rank();
      if (!is_own && (seat.machine == members_.own || seat.place % size_ != rank_)) continue;
      std::vector<std::byte>& roots =
          is_own ? got[static_cast<size_t>(members_.own)] : sent[static_cast<size_t>(r)];
      roots.resize(static_cast<size_t>(roots_on(members_.own) * count * wide));
      fold_roots(call, moved(from, r * room), count, roots.data());
      if (!is_own)
        transfers.push_back(sending(r, roots.data(), static_cast<int64_t>(roots.size())));
    }
    for (int m = 0; m < machines(); ++m) {
      if (m == members_.own) continue;
      std::vector<std::byte>& roots = got[static_cast<size_t>(m)];
      roots.resize(static_cast<size_t>(roots_on(m) * count * wide));
      transfers.push_back(
          receiving(counterpart(m, rank_), roots.data(), static_cast<int64_t>(roots.size())));
    }
    if (piece) transfer(transfers);
    std::vector<const std::byte*> roots;
    for (const auto& of : got) roots.push_back(of.data());
    fold_rest(call, roots, count, static_cast<std::byte*>(call.out) + at);
    at += piece;
  } while (at < bytes);
}

}  // namespace tn::workers
