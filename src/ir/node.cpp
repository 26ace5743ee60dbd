#include "ir/node.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#include "base/at_fork.h"
#include "base/error.h"
#include "base/events.h"
#include "ir/interned.h"
#include "ir/number.h"
#include "ir/pending.h"
#include "ir/region.h"
#include "ir/walk.h"
#include "ir/watch.h"

template class std::vector<tn::Tensor>;

namespace tn {

constinit const OpDef scalar_leaf = [] {
  OpDef op;
  op.name = "constant", op.attrs = &attr_kind<ScalarAttrs>;
  return op;
}();
constinit const OpDef param_leaf = [] {
  OpDef op;
  op.name = "param";
  return op;
}();

void (*flush_deep)(Node*) = nullptr;
static std::atomic<uint32_t> longest_pending = kMostPending;

uint32_t set_longest_pending(uint32_t ops) { return longest_pending.exchange(ops); }

static constexpr size_t kMostEdges = UINT16_MAX;

/// Threads take numbers in blocks; a block from before the last trace is given up.
static std::atomic<uint64_t> sequence_blocks{0}, sequence_floor{0};
std::atomic<void (*)(uint64_t)> sequence_block_taken = nullptr;

void raise_sequence() {
  sequence_floor.store(sequence_blocks.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

namespace {

/// Freed nodes by size, kept per thread: nodes are small and short-lived, and the general allocator
/// is too slow for them. A thread that only frees hands full batches to a shared shelf, where
/// threads that only allocate find them.
struct NodePool {
  static constexpr size_t kStep = 16, kLargest = 512, kClasses = kLargest / kStep + 1;
  static constexpr int kBatch = 1024;
  struct Free {
    Free* next;
    Free* next_batch;
  };
  struct Shelf {
    std::mutex mutex;
    Free* batches[kClasses] = {};
    std::vector<NodePool*> idle;  // of threads that ended
  };
  static Shelf& shelf() {
    static auto& only = *[] {
      auto* made = new Shelf;
      guarded_at_fork(made->mutex, 6);
      return made;
    }();
    return only;
  }

  Free* free[kClasses] = {};
  int count[kClasses] = {};
  char* bump = nullptr;
  size_t left = 0;

  void* take(size_t bytes) {
    if (bytes > kLargest) return ::operator new(bytes);
    size_t place = (bytes + kStep - 1) / kStep;
    if (!free[place]) [[unlikely]]
      if (void* fresh = refill(place)) return fresh;
    Free* found = free[place];
    free[place] = found->next;
    --count[place];
    return found;
  }
  void give(void* at, size_t bytes) {
    if (bytes > kLargest) return ::operator delete(at);
    size_t place = (bytes + kStep - 1) / kStep;
    if (count[place] == 2 * kBatch) [[unlikely]]
      to_shelf(place);
    free[place] = new (at) Free{free[place], nullptr};
    ++count[place];
  }

 private:
  /// Takes a batch from the shelf; where there is none, memory that was never used.
  [[gnu::noinline]] void* refill(size_t place) {
    if (from_shelf(place)) return nullptr;
    size_t size = place * kStep;
    if (left < size) {
      constexpr size_t kSlab = 64 * 1024;
      bump = static_cast<char*>(::operator new(kSlab));  // kept for the life of the process
      left = kSlab;
    }
    left -= size;
    return std::exchange(bump, bump + size);
  }
  bool from_shelf(size_t place) {
    std::lock_guard lock(shelf().mutex);
    Free* batch = shelf().batches[place];
    if (!batch) return false;
    shelf().batches[place] = batch->next_batch;
    free[place] = batch;
    count[place] = kBatch;
    return true;
  }
  [[gnu::noinline]] void to_shelf(size_t place) {
    Free* batch = free[place];
    Free* last = batch;
    for (int i = 1; i < kBatch; ++i) last = last->next;
    free[place] = std::exchange(last->next, nullptr);
    count[place] -= kBatch;
    std::lock_guard lock(shelf().mutex);
    batch->next_batch = std::exchange(shelf().batches[place], batch);
  }
};

/// What recording needs of its thread, side by side: finding a variable of a thread costs a call.
/// Pools outlive their threads (tensors may be released after a thread's other objects are gone); a
/// new thread takes over the pool of one that ended.
struct Recorder {
  NodePool* pool = nullptr;
  uint64_t next = 0, end = 0;  // numbers of nodes
};
constinit thread_local Recorder recorder;

struct PoolReturner {
  ~PoolReturner() {
    std::lock_guard lock(NodePool::shelf().mutex);
    if (recorder.pool) NodePool::shelf().idle.push_back(std::exchange(recorder.pool, nullptr));
  }
};

[[gnu::noinline]] NodePool* new_pool() {
  thread_local PoolReturner returner;
  (void)returner;
  NodePool::Shelf& shelf = NodePool::shelf();
  std::lock_guard lock(shelf.mutex);
  if (shelf.idle.empty()) return new NodePool;
  NodePool* pool = shelf.idle.back();
  shelf.idle.pop_back();
  return pool;
}

NodePool& pool_of(Recorder& own) {
  if (!own.pool) [[unlikely]]
    own.pool = new_pool();
  return *own.pool;
}

[[gnu::noinline]] void take_sequence_block(Recorder& own) {
  own.next = sequence_blocks.fetch_add(kSequenceBlock, std::memory_order_relaxed);
  own.end = own.next + kSequenceBlock;
  if (auto taken = sequence_block_taken.load(std::memory_order_relaxed)) taken(own.next);
}

uint64_t next_of(Recorder& own) {
  if (own.next == own.end || own.next < sequence_floor.load(std::memory_order_relaxed)) [[unlikely]]
    take_sequence_block(own);
  return own.next++;
}

size_t bytes_of(int outs, int ins, bool scalar) {
  return sizeof(Node) + static_cast<size_t>(outs) * sizeof(Slot) +
         static_cast<size_t>(ins) * sizeof(Edge) + (scalar ? sizeof(Scalar) : 0);
}

[[gnu::always_inline]] inline Node* make_node(const OpDef* op, const Attrs* attrs, int ins,
                                              Types out, bool scalar = false) {
  Recorder& own = recorder;
  void* memory = pool_of(own).take(bytes_of(static_cast<int>(out.size()), ins, scalar));
  Node* node = new (memory) Node{};
  node->refs.store(1, std::memory_order_relaxed);
  node->ins = static_cast<uint16_t>(ins);
  node->outs = static_cast<uint16_t>(out.size());
  node->op = op, node->attrs = attrs;
  node->sequence = next_of(own);
  node->loc = current_loc;
  hold(attrs);
  for (size_t i = 0; i < out.size(); ++i) {
    new (node->slots() + i) Slot{out[i], nullptr, 0};
    hold(out[i]);
  }
  return node;
}

/// True when the caller held the last reference. A sole owner needs no atomic subtraction.
bool drop(Node* node) noexcept {
  return node->refs.load(std::memory_order_acquire) == 1 ||
         node->refs.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

}  // namespace

uint64_t next_sequence() { return next_of(recorder); }

bool Node::is_pending() const { return !is_leaf(*this); }

[[gnu::noinline]] static void report_recorded(const Node& node) {
  Event event(EventKind::record, node.op->name, event_time());
  event.place = node.loc.bits;
  post(event);
}

/// Whether a derivative of these results says something of the operands.
static bool passes_derivatives(const OpDef& op, Types out) {
  return op.gradient != Gradient::zero &&
         std::ranges::any_of(out, [](TypeRef type) { return is_inexact(type->dtype); });
}

void (*number_meeting)(Node& node) = nullptr;

Node* record(const OpDef& op, const Attrs* attrs, std::span<const Edge> in, Types out) {
  if (in.size() > kMostEdges || out.size() > kMostEdges)
    fail("{}: {} operands and {} results, the maximum is {}", op.name, in.size(), out.size(),
         kMostEdges);
  Node* node = make_node(&op, attrs, static_cast<int>(in.size()), out);
  Edge* edges = node->inputs();
  uint32_t depth = 0;
  uint8_t watched = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    Node* operand = in[i].node;
    edges[i] = in[i];
    retain(operand);
    depth = std::max(depth, operand->depth.load(std::memory_order_relaxed));
    node->traced |= operand->traced;
    watched |= watch_bits(*operand);
    node->taped = std::max(node->taped, operand->taped);
  }
  // State that a function keeps (running means) may be made so: it must not hold what it came from.
  if ((watched || node->taped) && !passes_derivatives(op, out)) watched = 0, node->taped = 0;
  if (watched) node->watched = watched & inherited;
  if (node->taped && !taping) node->taped = running_tape(node->taped);
  node->depth.store(depth + 1, std::memory_order_relaxed);
  if (op.meets && number_meeting && !node->traced) [[unlikely]]
    number_meeting(*node);
  if (has_watcher(EventKind::record)) [[unlikely]]
    report_recorded(*node);
  if (depth >= longest_pending.load(std::memory_order_relaxed) && !node->traced && flush_deep)
    flush_deep(node);
  return node;
}

void fail_null_tensor() { fail(Fault::type, "a null tensor was used: it holds no value"); }

Tensor make_scalar(const Scalar& value, DType type, bool weak) {
  if (value.is_symbolic()) return size_as(value.offset().size(), type, weak);
  thread_local TypeRef types[kDTypes] = {};
  TypeRef& scalar_type = types[static_cast<int>(type)];
  if (!scalar_type) scalar_type = intern(type, {});
  Node* node = make_node(&scalar_leaf, nullptr, 0, {&scalar_type, 1}, true);
  node->weak = weak;
  new (node->inputs()) Scalar(value);
  return {node, 0};
}

const Scalar& scalar_value(const Node& node) {
  return *reinterpret_cast<const Scalar*>(const_cast<Node&>(node).inputs());
}

Tensor make_param(TypeRef type) {
  Node* node = make_node(&param_leaf, nullptr, 0, {&type, 1});
  node->traced = true;
  return {node, 0};
}

Tensor make_data(BufferRef buffer, int64_t offset, TypeRef type) {
  Node* node = make_node(nullptr, nullptr, 0, {&type, 1});
  materialise(node->slots()[0], std::move(buffer), offset);
  return {node, 0};
}

void materialise(Slot& slot, BufferRef data, int64_t offset) {
  slot.offset = offset;
  slot.data.store(data.detach(), std::memory_order_release);
}

/// Releases the operands of `node` onto the list of the dead.
static void unlink(Node* node, Node*& dead) noexcept {
  Edge* edges = node->inputs();
  for (int i = 0; i < node->ins; ++i) {
    if (!edges[i].node || !drop(edges[i].node)) continue;
    edges[i].node->next_dead = dead;
    dead = edges[i].node;
  }
}

/// The same for the gradient that was left at it.
static void forget_gradient(Node* node, Node*& dead) noexcept {
  Tensor handle = exchange_gradient(*node, {});
  Node* gradient = handle.node();
  retain(gradient);
  handle = {};
  if (!drop(gradient)) return;
  gradient->next_dead = dead;
  dead = gradient;
}

static void bury(Node* dead) noexcept {
  NodePool& pool = pool_of(recorder);
  while (dead) {
    Node* node = dead;
    dead = node->next_dead;
    size_t bytes = bytes_of(node->outs, node->ins, is_scalar(*node));
    unlink(node, dead);
    if (node->watched & kHasGrad) [[unlikely]]
      forget_gradient(node, dead);
    for (int i = 0; i < node->outs; ++i) {
      BufferRef::adopt_reference(node->slots()[i].data.load(std::memory_order_acquire)).reset();
      drop(node->slots()[i].type);
    }
    drop(node->attrs);
    pool.give(node, bytes);
  }
}

void release(Node* node) noexcept {
  if (!drop(node)) return;
  node->next_dead = nullptr;
  bury(node);
}

// The size of a node's memory follows from `ins`, so edges stay counted when they are emptied.
void take_inputs(Node& node, std::vector<Node*>& dead) {
  Edge* edges = node.inputs();
  node.depth.store(0, std::memory_order_relaxed);
  for (int i = 0; i < node.ins; ++i)
    if (Node* operand = std::exchange(edges[i].node, nullptr)) dead.push_back(operand);
}

void Tensor::retain() const noexcept {
  if (node_) tn::retain(node_);
}
void Tensor::release() noexcept {
  if (node_) tn::release(node_);
}

const Shape& Tensor::shape() const& { return type_of(*this)->shape; }
DType Tensor::dtype() const { return type_of(*this)->dtype; }

int64_t Tensor::dim(int axis, Place at) const {
  LocScope scope(at);
  return shape()[normal_axis(axis, rank(), "dim")].value();
}
int64_t Tensor::size() const { return shape().elements().value(); }
int64_t Tensor::bytes() const { return size() * size_of(dtype()); }

Tensor Tensor::from_scalar(const Scalar& value) {
  return make_scalar(value, default_dtype(value.kind), false);
}

}  // namespace tn
