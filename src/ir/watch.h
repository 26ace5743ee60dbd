#pragma once
// Watching: which recorded ops `backward()` walks over, and where gradients are kept.
//
// A *leaf* is a tensor whose gradient is wanted: one with `requires_grad`, or a parameter of a
// module that was called. What is recorded from it is on a path to it, unless a `NoGrad` is in
// force. Behind leaves with `requires_grad` nodes keep their operands when they are computed, so
// that a loss may be looked at before `backward()`; behind the others, only what is pending can be
// walked over, and nothing is kept alive for it.
#include "ir/node.h"

namespace tn {

/// Bits of Node::watched.
enum Watch : uint8_t {
  kOnPath = 1,   // a leaf, or recorded from one
  kKept = 2,     // behind it is a leaf with requires_grad: keeps its operands
  kLeaf = 4,     // its gradient is wanted; walks end here
  kHasGrad = 8,  // there is a gradient to let go of when the node dies
};
/// What a node takes over from its operands.
inline constexpr uint8_t kInherited = kOnPath | kKept;

/// The bits that nodes recorded on this thread take over: none where gradients are not wanted.
inline thread_local uint8_t inherited = kInherited;

}  // namespace tn
