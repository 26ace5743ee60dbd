#pragma once
// Transport: how the workers of a program exchange data. Every worker makes the same calls in the
// same order; a call returns when the worker's own result is complete.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/element_kind.h"

namespace tn::workers {

enum class Collective : uint8_t {
  barrier,
  all_reduce,      // out: the fold of all operands
  all_gather,      // out: the operands of all workers, by rank
  reduce_scatter,  // in: one piece per worker; out: the fold of this worker's pieces
  all_to_all,      // in and out: one piece per worker
  broadcast,       // out: the operand of `peer`
  send,            // of one worker to another: these two are no calls of all workers
  recv,
};
std::string_view name_of(Collective kind);

enum class Fold : uint8_t { sum, product, max, min };

/// The shape of a tensor, as other workers compare it.
struct CallShape {
  int32_t rank = -1;  // -1: not that of a tensor
  int64_t extents[16] = {};
  friend bool operator==(const CallShape&, const CallShape&) = default;
};

/// How a value was made, as hashes that are equal in processes which make it alike. Nothing is
/// known of a value that has those given here.
struct Origin {
  uint64_t ops = 1;     // by which ops
  uint64_t values = 1;  // and from which numbers and bytes of the host
  // Processes may have traced one function for other sizes, or with a number as a constant: results
  // of functions have the hashes of their arguments above, and here those of their own ops. These
  // values count where these ops are the same.
  uint64_t traced_ops = 1, traced_values = 1;
  uint64_t loc = 0;  // the user's line where the host gave something
};

/// What a collective is about; `loc` is that of its step.
struct CallOrigin {
  uint64_t loc;
  Origin origin;
};

/// One of the tensors of a joined call.
struct CallPiece {
  const void* in;
  void* out;  // may be `in`
  int64_t count;
};

struct CollectiveCall {
  Collective kind = Collective::barrier;
  Fold fold = Fold::sum;
  Element element = Element::u8;
  /// Elements of the operand of an all_reduce, all_gather or broadcast; of one piece otherwise.
  int64_t count = 0;
  int32_t peer = 0;
  const void* in = nullptr;
  void* out = nullptr;          // may be `in` for all_reduce and broadcast
  std::string_view place = {};  // the user's line, for errors of this and other workers
  CallShape shape = {};         // of the operand, or of what a message holds
  uint64_t loc = 0;             // the user's line, unresolved
  uint64_t run = 0;             // of a message between parts of a plan: see run_of_parts
  /// Of an all_reduce of several tensors: all of them, and `count` is their sum. `in` and `out` are
  /// not used then.
  std::span<const CallPiece> pieces = {};
  /// Of the value that the call is about, which must be equal for all workers where all have one.
  std::optional<Origin> origin = {};
  std::span<const Origin> given = {};  // of what the plan was given that makes the call
};

/// Folds have a fixed order: a binary tree over the ranks, split at the largest power of two. f16
/// and bf16 are folded in f32 and rounded once. So results do not depend on timing, and
/// every worker gets the same bits.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Whether calls carry the user's line, for the reports of other workers.
  virtual bool shows_places() const { return true; }
  /// Throws WorkerFailed if another worker ended, hangs, or makes a different call.
  virtual void run(const CollectiveCall& call) = 0;
  /// The same in two steps: `complete` takes what `start` returned. In between, the worker leaves
  /// operands and results alone. At most kMostStarted calls are under way, and they are completed
  /// in the order of their starts.
  static constexpr int kMostStarted = 4;
  virtual uint64_t start(const CollectiveCall& call) { return run(call), 0; }
  virtual void complete(uint64_t) {}
  /// Instead of `complete`, by a worker that fails: other workers may have begun the call. It has
  /// called `stop` of all its groups.
  virtual void abandon(uint64_t) {}
  /// Calls that not all workers have begun will fail.
  virtual void stop() {}
  /// Where shapes or element types of the two sides differ, both report it.
  virtual void send(const CollectiveCall& call) = 0;     // `in` to `peer`
  virtual void receive(const CollectiveCall& call) = 0;  // `out` from `peer`
  /// Workers that give the same `color` form a group, ranked by `key`, then by their ranks here.
  /// Every worker calls it.
  virtual std::unique_ptr<Transport> split(int color, int key) = 0;

  /// What the program has asked of this group, in its order: collectives that were recorded one by
  /// one, and calls of functions that have some.
  struct Asked {
    std::atomic<uint64_t> recorded = 0, calls = 0, last_call = 0;
  };
  Asked asked;
};

}  // namespace tn::workers
