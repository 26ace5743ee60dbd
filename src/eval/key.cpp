#include "eval/key.h"

#include <algorithm>

#include "base/hash.h"
#include "ir/number.h"

namespace tn {

static uint64_t scalar_class(const Scalar& s) {
  return number_class(s.real) << 8 | number_class(s.imag);
}

/// Four independent chains, because the latency of the multiplication dominates.
static uint64_t hash_words(std::span<const uint64_t> words) {
  constexpr size_t kChains = 4;
  uint64_t chains[kChains] = {words.size(), 1, 2, 3};
  auto add = [](uint64_t chain, uint64_t word) {
    constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u;
    auto product = static_cast<unsigned __int128>(chain ^ word ^ kOdd) * 0xd6e8feb86659fd93u;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  };
  size_t i = 0;
  for (; i + kChains <= words.size(); i += kChains)
    for (size_t c = 0; c < kChains; ++c) chains[c] = add(chains[c], words[i + c]);
  for (; i < words.size(); ++i) chains[0] = add(chains[0], words[i]);
  return add(add(chains[0], chains[1]), add(chains[2], chains[3]));
}

/// The device of its results, which operands do not determine for ops of numbers alone.
static uint64_t device_word(const Node& node) {
  if (node.outs == 0) return 0;
  Device device = node.slots()[0].type->device;
  return uint64_t{device.kind} << 8 | device.index;
}

namespace {

/// Writes the words of a key consecutively.
class Words {
 public:
  explicit Words(FlushKey& key) : key_(key) { need(1); }
  /// Room for as many more words.
  void need(size_t count) {
    if (static_cast<size_t>(end_ - next_) < count) [[unlikely]]
      grow(count);
  }
  void add(uint64_t word) { *next_++ = word; }
  void add(const void* pointer) { add(reinterpret_cast<uint64_t>(pointer)); }
  void finish() {
    key_.size = static_cast<size_t>(next_ - key_.room.data());
    key_.hash = hash_words(key_.words());
  }

 private:
  [[gnu::noinline]] void grow(size_t count) {
    auto used = static_cast<size_t>(next_ - key_.room.data());
    key_.room.resize(2 * (used + count) + 32);
    next_ = key_.room.data() + used, end_ = key_.room.data() + key_.room.size();
  }
  FlushKey& key_;
  uint64_t* next_ = key_.room.data();
  uint64_t* end_ = next_ + key_.room.size();
};

}  // namespace

/// Two value numbers share a word; the last half-word of an odd count is empty.
void make_key(const Walk& walk, std::span<const Edge> outputs, FlushKey& key) {
  Words words(key);
  words.add(walk.leaves.size() << 32 | walk.nodes.size());
  for (const Node* leaf : walk.leaves) {
    words.need(2 + size_t{leaf->outs});
    words.add(uint64_t{leaf->index} << 32 | uint64_t{leaf->outs} << 1 | is_scalar(*leaf));
    for (int i = 0; i < leaf->outs; ++i) words.add(leaf->slots()[i].type);
    if (is_scalar(*leaf)) words.add(scalar_class(scalar_value(*leaf)));
  }
  auto add_values = [&](const Edge* edges, size_t count) {
    auto number = [](const Edge& e) { return uint64_t{e.node->index + e.index}; };
    size_t i = 0;
    for (; i + 1 < count; i += 2) words.add(number(edges[i]) << 32 | number(edges[i + 1]));
    if (i < count) words.add(number(edges[i]) | uint64_t{UINT32_MAX} << 32);
  };
  for (Node* node : walk.nodes) {
    words.need(3 + size_t{node->ins});
    words.add(node->op);
    words.add(uint64_t{node->ins} << 48 | uint64_t{node->outs} << 32 | device_word(*node) << 1 |
              (node->attrs != nullptr));
    if (node->attrs) words.add(node->attrs);
    add_values(node->inputs(), node->ins);
  }
  words.need(outputs.size());
  add_values(outputs.data(), outputs.size());
  words.finish();
}

void add_word(FlushKey& key, uint64_t word) {
  key.room.resize(std::max(key.room.size(), key.size + 1));
  key.room[key.size++] = word;
  key.hash = combine(key.hash, word);
}

uint64_t shown_hash(const Walk& walk, std::span<const Edge> outputs) {
  uint64_t hash = walk.leaves.size();
  auto add = [&](uint64_t word) { hash = combine(hash, word); };
  for (const Node* leaf : walk.leaves) {
    for (int i = 0; i < leaf->outs; ++i) add(leaf->slots()[i].type->hash);
    if (is_scalar(*leaf)) add(scalar_class(scalar_value(*leaf)));
  }
  for (Node* node : walk.nodes) {
    add(hash_text(node->op->name));
    add(node->attrs ? node->attrs->hash : 0);
    add(device_word(*node));
    for (int i = 0; i < node->ins; ++i) {
      const Edge& edge = node->inputs()[i];
      add(edge.node->index + edge.index);
    }
  }
  for (const Edge& e : outputs) add(e.node->index + e.index);
  return hash;
}

}  // namespace tn
