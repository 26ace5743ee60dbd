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

/// Of a slice, what is swapped at once: large messages are fast, and small ones stay in caches.
constexpr int64_t kExchangeBytes = int64_t{1} << 20;

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

  /// Elements [at, at + count) of an inner node, whose room is that of its level.
  void fold_to(void* out, int first, int last, size_t level, int64_t at, int64_t count) {
    int middle = first + static_cast<int>(std::bit_floor(static_cast<unsigned>(last - first - 1)));
    const void* both[] = {fold(first, middle, level, at, count),
                          fold(middle, last, level + 1, at, count)};
    workers::fold(kind_, type_, both, out, count);
  }

  /// Where the same elements of any node are.
  const std::byte* fold(int first, int last, size_t level, int64_t at, int64_t count) {
    if (const std::byte* root = by_rank_[static_cast<size_t>(first)]; root && is_root(first, last))
      return root + at * width_of(type_);
    std::vector<std::byte>& room = rooms_[level];
    room.resize(static_cast<size_t>(kBlock * width_of(type_)));
    fold_to(room.data(), first, last, level, at, count);
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

MachinesTransport::Part MachinesTransport::Part::of(int k, int parts) const {
  return {begin + count() * k / parts, begin + count() * (k + 1) / parts};
}

std::vector<const void*> MachinesTransport::operands_here(const void* in, int64_t bytes) {
  if (size_ == 1) return {in};
  if (bytes) std::memcpy(my_slot(), in, static_cast<size_t>(bytes));
  std::vector<const void*> all = slots();
  arrive_and_wait();
  return all;
}

void MachinesTransport::fold_roots(const CollectiveCall& call,
                                   const std::vector<const void*>& operands, int64_t count,
                                   std::byte* out) const {
  constexpr int64_t kBlock = 1024;  // elements that are widened at once
  Element wide = wide_of(call.element);
  int64_t step = wide == call.element ? std::max<int64_t>(count, 1) : kBlock;
  std::vector<float> widened;
  for (Range root : roots_[static_cast<size_t>(members_.own)]) {
    for (int64_t at = 0; at < count; at += step) {
      int64_t now = std::min(step, count - at);
      std::vector<const void*> in;
      for (int r = root.first; r < root.last; ++r) {
        auto place = static_cast<size_t>(seats_[static_cast<size_t>(r)].place);
        in.push_back(static_cast<const std::byte*>(operands[place]) + at * width_of(call.element));
      }
      if (wide != call.element) {
        widened.resize(in.size() * kBlock);
        for (size_t k = 0; k < in.size(); ++k) {
          widen(call.element, in[k], widened.data() + k * kBlock, now);
          in[k] = widened.data() + k * kBlock;
        }
      }
      fold(call.fold, wide, in, out + at * width_of(wide), now);
    }
    out += count * width_of(wide);
  }
}

const std::byte* MachinesTransport::roots_of(const CollectiveCall& call,
                                             const std::vector<const void*>& operands, Part part,
                                             Room& room) const {
  std::vector<const void*> here = moved(operands, part.begin * width_of(call.element));
  const std::vector<Range>& own = roots_[static_cast<size_t>(members_.own)];
  if (size_ == 1 && !is_narrow(call.element)) return static_cast<const std::byte*>(here[0]);
  auto bytes = static_cast<int64_t>(own.size()) * part.count() * width_of(wide_of(call.element));
  std::byte* made = room.of(bytes);
  fold_roots(call, here, part.count(), made);
  return made;
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
    std::byte* to = out + at * width_of(call.element);
    if (wide == call.element)
      tree.fold_to(to, 0, size(), 0, at, now);
    else
      narrow(call.element, reinterpret_cast<const float*>(tree.fold(0, size(), 0, at, now)), to,
             now);
  }
}

/// Little data: the first workers swap all roots at once.
void MachinesTransport::reduce_in_one(const CollectiveCall& call) {
  int64_t bytes = call.count * width_of(call.element);
  std::vector<const void*> operands = operands_here(call.in, bytes);
  std::byte* out = size_ == 1 ? static_cast<std::byte*>(call.out) : my_slot();
  if (rank_ == 0) {
    int64_t each = call.count * width_of(wide_of(call.element));
    int64_t own = roots_on(members_.own) * each;
    std::byte* message = sent_[static_cast<size_t>(members_.own)].of(kHeadBytes + own);
    fold_roots(call, operands, call.count, message + kHeadBytes);
    meet(own);
    std::vector<const std::byte*> roots;
    for (int m = 0; m < machines(); ++m)
      roots.push_back(m == members_.own ? message + kHeadBytes
                                        : got_[static_cast<size_t>(m)].of(0) + kHeadBytes);
    fold_rest(call, roots, call.count, out);
  }
  if (size_ == 1) return;
  const std::byte* folded = slot_of(0);
  arrive_and_wait();
  if (bytes) std::memcpy(call.out, folded, static_cast<size_t>(bytes));
}

/// Much data: worker k of every machine folds slice k, with its counterparts elsewhere. Where a
/// machine has several workers, they see each other's operands in slots.
void MachinesTransport::reduce_in_slices(const CollectiveCall& call) {
  int64_t width = width_of(call.element), bytes = call.count * width;
  // All machines divide alike, also one that needs no slots.
  int64_t room = size() == machines() ? bytes : kSlotBytes;
  for (int64_t at = 0; at < bytes; at += room) {
    int64_t block = std::min(room, bytes - at);
    std::byte* out = static_cast<std::byte*>(call.out) + at;
    auto operands = operands_here(static_cast<const std::byte*>(call.in) + at, block);
    Part all = {0, block / width}, own = all.of(rank_, lanes_);
    if (rank_ < lanes_)
      reduce_slice(call, moved(std::move(operands), own.begin * width), own.count(),
                   size_ == 1 ? out : my_slot(), at == 0);
    if (size_ == 1) continue;
    std::vector<const void*> folded = slots();
    arrive_and_wait();
    for (int k = 0; k < lanes_; ++k) {
      Part part = all.of(k, lanes_);
      std::memcpy(out + part.begin * width, folded[static_cast<size_t>(k)],
                  static_cast<size_t>(part.count() * width));
    }
  }
}

/// A slice is divided again between the machines: each folds its part, and all gather the results.
/// Pieces pass a pipeline: while the roots of one are swapped, the parts of the one before are
/// gathered. The first piece of a call has the messages that compare calls.
void MachinesTransport::reduce_slice(const CollectiveCall& call,
                                     const std::vector<const void*>& operands, int64_t count,
                                     std::byte* out, bool begins) {
  int64_t width = width_of(call.element);
  int64_t most = kExchangeBytes / width;
  int64_t first = kFirstBytes / (most_roots_ * width_of(wide_of(call.element)));
  Part piece, before;
  do {
    bool is_first = begins && piece.end == 0;
    before = piece;
    piece = {before.end, std::min(count, before.end + (is_first ? first * machines() : most))};
    std::vector<Transfer> transfers;
    transfers.reserve(4 * roots_.size());
    if (piece.count() || is_first) add_swap(call, operands, piece, is_first, transfers);
    if (before.count()) add_spread(before, width, out, transfers);
    transfer(transfers);
    if (is_first) compare_calls();
    if (piece.count()) fold_own_part(call, operands, piece, is_first, out);
    begins = false;
  } while (piece.count());
}

/// Roots of this machine's part from the others, and theirs from here.
void MachinesTransport::add_swap(const CollectiveCall& call,
                                 const std::vector<const void*>& operands, Part piece, bool begins,
                                 std::vector<Transfer>& transfers) {
  int64_t width = width_of(call.element), wide = width_of(wide_of(call.element));
  int64_t own = piece.of(members_.own, machines()).count();
  for (int m = 0; m < machines(); ++m) {
    if (m == members_.own) continue;
    Part part = piece.of(m, machines());
    Room &sent = sent_[static_cast<size_t>(m)], &got = got_[static_cast<size_t>(m)];
    int peer = ranks_on(m)[static_cast<size_t>(rank_)];
    int64_t bytes = roots_on(members_.own) * part.count() * wide;
    int64_t wanted = roots_on(m) * own * wide;
    if (begins) {
      std::byte* message = sent.of(kHeadBytes + bytes);
      fold_roots(call, moved(operands, part.begin * width), part.count(), message + kHeadBytes);
      transfers.push_back(receiving_first(m));
      transfers.push_back(sending_first(peer, message, bytes));
    } else {
      transfers.push_back(receiving(peer, got.of(wanted), wanted));
      transfers.push_back(sending(peer, roots_of(call, operands, part, sent), bytes));
    }
  }
}

void MachinesTransport::fold_own_part(const CollectiveCall& call,
                                      const std::vector<const void*>& operands, Part piece,
                                      bool begins, std::byte* out) {
  Part own = piece.of(members_.own, machines());
  std::vector<const std::byte*> roots;
  for (int m = 0; m < machines(); ++m)
    roots.push_back(m == members_.own
                        ? roots_of(call, operands, own, sent_[static_cast<size_t>(m)])
                        : got_[static_cast<size_t>(m)].of(0) + (begins ? kHeadBytes : 0));
  fold_rest(call, roots, own.count(), out + own.begin * width_of(call.element));
}

/// Folded parts to and from the others.
void MachinesTransport::add_spread(Part piece, int64_t width, std::byte* out,
                                   std::vector<Transfer>& transfers) {
  Part own = piece.of(members_.own, machines());
  for (int m = 0; m < machines(); ++m) {
    if (m == members_.own) continue;
    Part part = piece.of(m, machines());
    int peer = ranks_on(m)[static_cast<size_t>(rank_)];
    transfers.push_back(receiving(peer, out + part.begin * width, part.count() * width));
    transfers.push_back(sending(peer, out + own.begin * width, own.count() * width));
  }
}

/// Every worker of a machine folds the pieces for its counterparts on other machines.
void MachinesTransport::scatter_sums(const CollectiveCall& call, int64_t bytes) {
  meet_and_arrive();
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
