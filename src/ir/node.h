#pragma once
// Nodes: recorded ops with their operands, and the values once computed. Tensor is a handle to one
// result.
#include <atomic>

#include "ir/opdef.h"
#include "ir/place.h"
#include "runtime/buffer.h"

namespace tn {

/// One result: its type and, when computed, its elements (row-major).
struct Slot {
  TypeRef type;
  std::atomic<Buffer*> data;  // owned; null while pending
  int64_t offset;             // in bytes
};

struct Edge {
  Node* node;
  uint32_t index;
};

/// Laid out as Node, then `outs` Slots, then `ins` Edges.
struct Node {
  std::atomic<uint32_t> refs;
  uint16_t ins, outs;
  const OpDef* op;  // null: data given by the user
  const Attrs* attrs;
  union {
    uint64_t sequence;  // order of creation
    Node* next_dead;    // releasing threads the dead through here: no recursion, no memory
  };
  Loc loc;
  // Scratch of walks, valid for one epoch.
  uint32_t epoch, index, uses;
  std::atomic<uint32_t> depth;  // pending ops on the longest path to here
  uint32_t taped;               // the trace with known values behind it, 0: none; such nodes keep
                                // their operands when they are computed
  bool weak;                    // a number that adopts the type of its partner: see number.h
  bool traced;                  // depends on a parameter: it has no value
  uint8_t watched;              // for derivatives by backward(): see watch.h
  bool running;                 // a thread computes it; guarded by walk_mutex()

  Slot* slots() { return reinterpret_cast<Slot*>(this + 1); }
  const Slot* slots() const { return reinterpret_cast<const Slot*>(this + 1); }
  Edge* inputs() { return reinterpret_cast<Edge*>(slots() + outs); }
  bool is_pending() const;  // has an op that is still to run
};

/// Leaves that are not data: a number known when recorded, a parameter of a trace.
extern const OpDef scalar_leaf, param_leaf;

struct ScalarAttrs {
  Scalar value;
  static constexpr void fields(auto& a, auto&& f) { f("value", a.value); }
};

/// A number above those of the nodes recorded so far on this thread.
uint64_t next_sequence();
/// From here on nodes of all threads get numbers above those recorded so far.
void raise_sequence();
/// Records `op` on borrowed operands. Types are given; attributes are canonical.
Node* record(const OpDef& op, const Attrs* attrs, std::span<const Edge> in, Types out);

Tensor make_scalar(const Scalar& value, DType type, bool weak);
Tensor make_param(TypeRef type);
Tensor make_data(BufferRef buffer, int64_t offset, TypeRef type);
const Scalar& scalar_value(const Node& node);
inline bool is_scalar(const Node& node) { return node.op == &scalar_leaf; }

/// Fails: a null tensor has no type and no value.
[[noreturn]] void fail_null_tensor();
inline const Slot& slot_of(const Tensor& t) {
  if (!t.defined()) [[unlikely]]
    fail_null_tensor();
  return t.node()->slots()[t.index()];
}
inline TypeRef type_of(const Tensor& t) { return slot_of(t).type; }

/// Publishes a computed value; the slot takes ownership of the reference.
void materialise(Slot& slot, BufferRef data, int64_t offset);
/// Moves the operands of an evaluated node to `dead`, which the caller releases.
void take_inputs(Node& node, std::vector<Node*>& dead);
void release(Node* node) noexcept;
inline void retain(Node* node) noexcept { node->refs.fetch_add(1, std::memory_order_relaxed); }

/// Derivatives whose function is running on this thread: what it records is kept.
inline thread_local int taping = 0;
/// `tape`, or a trace around it, if its function is running on some thread; else 0.
uint32_t running_tape(uint32_t tape);

/// Called for what was recorded of ops that workers compute together, if it has a value: processes
/// compare the order in which they evaluate it. Null: there are no workers.
extern void (*number_meeting)(Node& node);

/// Called after recording a node whose depth passes kMostPending; set by eval/. Does not throw.
extern void (*flush_deep)(Node* node);
inline constexpr uint32_t kMostPending = 20'000;

}  // namespace tn
