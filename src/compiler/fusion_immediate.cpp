// The policy of effort e0: only ops over the same points are computed together.
#include <algorithm>

#include "compiler/fuser.h"

namespace tn {

bool Fuser::fits_now(int i, int c) const {
  const Cluster& into = out_.clusters[static_cast<size_t>(c)];
  return into.members.size() < kMaxMembers &&
         identical(type(op_at(i).out)->shape, domain_of(graph_, op_at(into.members.front())));
}

bool Fuser::can_inline_now(int i, const std::vector<int>& users) const {
  constexpr size_t kMostReaders = 3;  // kernels that compute an op again rather than read it
  if (users.size() > kMostReaders) return false;
  return std::ranges::all_of(users, [&](int c) { return fits_now(i, c); }) &&
         (users.size() == 1 || is_cheap_to_repeat(op_at(i)));
}

/// What only the graph returns is written by the kernel that reads it.
bool Fuser::can_store_now(int i, int c) const {
  Val v = op_at(i).out;
  return readers_[index(v)].empty() && clusters_using(v).size() == 1 && fits_now(i, c) &&
         !out_.clusters[static_cast<size_t>(c)].folds && !holds_operands(i, c);
}

/// Reading its operands again must not cost more than reading its result: none of them is itself
/// the result of scalar work on all points.
bool Fuser::is_cheap_to_repeat(const GraphOp& op) const {
  constexpr int kCheap = 3;  // scalar operations worth less than a pass over memory
  DType dtype = type(graph_.in(op).back())->dtype;
  bool plain = op.op->operands != Operands::select && op.op->rules->scalar;
  if (!plain || is_complex(dtype) || is_complex(type(op.out)->dtype)) return false;
  int large = 0;
  for (Val v : graph_.in(op)) {
    if (!identical(type(v)->shape, type(op.out)->shape)) continue;
    int made_by = out_.producer[index(v)];
    if (++large > 1 || (made_by >= 0 && op_at(made_by).op->is_elementwise())) return false;
  }
  return scalar_cost(*op.op, op.attr_data(), info(dtype).compute) <= kCheap;
}

void Fuser::find_reads(Cluster& c) const {
  for (int m : c.members)
    for (Val v : graph_.in(op_at(m))) {
      int made_by = out_.producer[index(v)];
      bool inside = made_by >= 0 && std::ranges::binary_search(c.members, made_by);
      if (!inside && !std::ranges::count(c.reads, v)) c.reads.push_back(v);
    }
}

}  // namespace tn
