#pragma once
// The processes of a launcher, of which each is a worker: what they read and decide together.
#include <span>

#include "runtime/buffer.h"
#include "tenon/tensor.h"
#include "workers/shared_transport.h"

namespace tn::mesh {

/// The rank of this process under a launcher; -1: workers are threads.
int rank_of_process();

/// Whether a tensor is divided among processes, or lies on a part of their mesh: all of them must
/// take part in reading it. Computes it first.
bool is_spread(const Tensor& x);
/// The same of a value that is computed.
bool is_spread(const Bound& value);
/// A value on the host, whole, in every process. All of them call it if the value is spread.
Bound gathered(const Bound& value, TypeRef type);
/// What this process holds of a value on a mesh, and the type of such a block.
struct BlocksHere {
  std::span<const Bound> blocks;
  TypeRef type;
};
BlocksHere blocks_here(const Bound& value, TypeRef type);

using workers::WithoutTimeout;

/// What the first process says, on all of them, which all call it.
bool said_by_first(bool own);
/// Whether one of the processes says so, on all of them, which all call it.
bool said_by_any(bool own);

/// While it lives, explicit collectives on this thread are those of one call of a function.
class CallTogether {
 public:
  CallTogether();
  ~CallTogether();
  CallTogether(const CallTogether&) = delete;

 private:
  uint64_t before_;
};

}  // namespace tn::mesh
