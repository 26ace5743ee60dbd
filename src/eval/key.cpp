#include "eval/key.h"

#include "base/hash.h"
#include "ir/number.h"

namespace tn {

static uint64_t scalar_class(const Scalar& s) {
  return number_class(s.real) << 8 | number_class(s.imag);
}

/// Four chains beside each other: a multiplication takes longer than what else there is to do.
static uint64_t hash_words(std::span<const uint64_t> words) {
  constexpr uint64_t kChains = 4, kOdd = 0x9e3779b97f4a7c15u;
  uint64_t chains[kChains] = {words.size(), 1, 2, 3};
  auto add = [&](uint64_t& chain, uint64_t word) {
    auto product = static_cast<unsigned __int128>(chain ^ word ^ kOdd) * 0xd6e8feb86659fd93u;
    chain = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  };
  size_t i = 0;
  for (; i + kChains <= words.size(); i += kChains)
    for (size_t c = 0; c < kChains; ++c) add(chains[c], words[i + c]);
  for (; i < words.size(); ++i) add(chains[i % kChains], words[i]);
  return hash_bytes(chains, sizeof chains);
}

/// Where its results are: operands do not say it of what is made from numbers.
static uint64_t device_word(const Node& node) {
  if (node.outs == 0) return 0;
  Device device = node.slots()[0].type->device;
  return uint64_t{device.kind} << 8 | device.index;
}

/// No key of these has more words.
static size_t most_words(const Walk& walk, std::span<const Edge> outputs) {
  size_t most = 1 + outputs.size();
  for (const Node* leaf : walk.leaves) most += 2 + size_t{leaf->outs};
  for (const Node* node : walk.nodes) most += 3 + size_t{node->ins};
  return most;
}

void make_key(const Walk& walk, std::span<const Edge> outputs, FlushKey& key) {
  key.words.resize(most_words(walk, outputs));
  uint64_t* next = key.words.data();
  auto word = [&](auto w) { *next++ = (uint64_t)w; };
  word(walk.leaves.size() << 32 | walk.nodes.size());
  for (const Node* leaf : walk.leaves) {
    word(uint64_t{leaf->index} << 32 | uint64_t{leaf->outs} << 1 | is_scalar(*leaf));
    for (int i = 0; i < leaf->outs; ++i) word(leaf->slots()[i].type);
    if (is_scalar(*leaf)) word(scalar_class(scalar_value(*leaf)));
  }
  for (Node* node : walk.nodes) {
    word(node->op);
    word(node->attrs);
    word(uint64_t{node->ins} << 16 | node->outs | device_word(*node) << 32);
    for (int i = 0; i < node->ins; ++i) {
      const Edge& edge = node->inputs()[i];
      word(edge.node->index + edge.index);
    }
  }
  for (const Edge& e : outputs) word(e.node->index + e.index);
  key.words.resize(static_cast<size_t>(next - key.words.data()));
  key.hash = hash_words(key.words);
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
