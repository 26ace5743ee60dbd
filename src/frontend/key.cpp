#include "frontend/key.h"

#include <cmath>

#include "base/hash.h"

namespace tn {

/// Later simplification may depend on these values, and on no others.
static uint64_t value_class(double v) {
  if (v == 0) return std::signbit(v) ? 1 : 2;
  for (uint64_t i = 3; double c : {1.0, -1.0, 2.0, 0.5}) {
    if (v == c) return i;
    ++i;
  }
  return 0;
}

static uint64_t scalar_class(const Scalar& s) {
  return value_class(s.real) << 8 | value_class(s.imag);
}

void make_key(const Walk& walk, std::span<const Edge> outputs, FlushKey& key) {
  auto word = [&](auto w) { key.words.push_back((uint64_t)w); };
  key.words.clear();
  word(walk.leaves.size() << 32 | walk.nodes.size());
  for (const Node* leaf : walk.leaves) {
    word(uint64_t{leaf->index} << 32 | uint64_t{leaf->outs} << 1 | is_scalar(*leaf));
    for (int i = 0; i < leaf->outs; ++i) word(leaf->slots()[i].type);
    if (is_scalar(*leaf)) word(scalar_class(scalar_value(*leaf)));
  }
  for (Node* node : walk.nodes) {
    word(node->op);
    word(node->attrs);
    word(uint64_t{node->ins} << 16 | node->outs);
    for (int i = 0; i < node->ins; ++i) {
      const Edge& edge = node->inputs()[i];
      word(edge.node->index + edge.index);
    }
  }
  for (const Edge& e : outputs) word(e.node->index + e.index);
  key.hash = hash_bytes(key.words.data(), key.words.size() * 8);
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
    for (int i = 0; i < node->ins; ++i) {
      const Edge& edge = node->inputs()[i];
      add(edge.node->index + edge.index);
    }
  }
  for (const Edge& e : outputs) add(e.node->index + e.index);
  return hash;
}

}  // namespace tn
