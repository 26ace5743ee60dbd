#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "ir/rewrite.h"
#include "ops/call.h"
#include "ops/op_decls.h"
#include "transforms/variants.h"

namespace tn {
namespace {

/// Cuts are looked for so far, as a part of a segment, before and after where they would be even.
constexpr double kSlack = 0.25;
/// What stands for sizes that are not known.
constexpr int64_t kOpenSize = 64;

double bytes_of(const Graph& graph, Val v) {
  const Type& type = *graph.types[static_cast<size_t>(v)];
  auto bytes = static_cast<double>(size_of(type.dtype));
  for (Dim d : type.shape) bytes *= static_cast<double>(d.is_const() ? d.value() : kOpenSize);
  return bytes;
}

class Segments {
 public:
  explicit Segments(const Graph& graph)
      : from_(graph), last_(graph.types.size(), -1), made_by_(graph.types.size(), -1) {
    for (int i = 0; i < ops(); ++i) {
      for (Val v : graph.in(op(i))) last_[index(v)] = i;
      for (int k = 0; k < op(i).outs; ++k) made_by_[index(op(i).out + k)] = i;
    }
    for (Val v : graph.outputs) last_[index(v)] = ops();
  }

  Graph cut(int segments) {
    copy_.inputs();
    std::vector<int> cuts = cuts_for(segments);
    int begin = 0;
    for (int end : cuts) add_call(std::exchange(begin, end), end);
    for (int i = begin; i < ops(); ++i) copy_.op(op(i));
    to_.outputs = copy_.all(from_.outputs);
    return std::move(to_);
  }

 private:
  static size_t index(int i) { return static_cast<size_t>(i); }
  int ops() const { return static_cast<int>(from_.ops.size()); }
  const GraphOp& op(int i) const { return from_.ops[index(i)]; }
  bool is_number(Val v) const {
    int maker = made_by_[index(v)];
    return maker >= 0 && op(maker).op == &scalar_leaf;
  }
  bool is_stored(int i) const { return !op(i).op->view && op(i).op != &scalar_leaf; }

  /// Ops in front of which one segment ends and the next begins.
  std::vector<int> cuts_for(int segments) const {
    // By op: the bytes made before it, and those of them that are read behind, outputs apart.
    std::vector<double> made(index(ops()) + 1), alive(index(ops()) + 1);
    for (int i = 0; i < ops(); ++i) {
      made[index(i) + 1] = made[index(i)];
      if (!is_stored(i)) continue;
      for (Val v = op(i).out; v < op(i).out + op(i).outs; ++v) {
        made[index(i) + 1] += bytes_of(from_, v);
        if (last_[index(v)] == ops()) continue;
        alive[index(i) + 1] += bytes_of(from_, v);
        alive[index(std::max(last_[index(v)], i)) + 1] -= bytes_of(from_, v);
      }
    }
    std::partial_sum(alive.begin(), alive.end(), alive.begin());
    std::vector<int> cuts;
    double each = made.back() / segments;
    for (int n = 1; n < segments; ++n) {
      double even = n * each;
      auto off = [&](int i) { return std::abs(made[index(i)] - even); };
      int best = -1;
      for (int i = cuts.empty() ? 1 : cuts.back() + 1; i < ops(); ++i) {
        if (off(i) > kSlack * each) continue;
        double less = best < 0 ? -1 : alive[index(i)] - alive[index(best)];
        if (less < 0 || (less == 0 && off(i) < off(best))) best = i;
      }
      if (best >= 0) cuts.push_back(best);
    }
    return cuts;
  }

  /// Numbers are no values to pass: each graph has its own.
  void add_call(int begin, int end) {
    Graph body;
    GraphCopy inside{from_, body};
    std::vector<Val> in, out;
    for (int i = begin; i < end; ++i)
      for (Val v : from_.in(op(i))) {
        if (made_by_[index(v)] >= begin || is_number(v) || inside[v] != kNoVal) continue;
        inside[v] = body.add_input(format("x{}", in.size()), from_.types[index(v)]);
        in.push_back(copy_[v]);
      }
    std::vector<TypeRef> types;
    for (int i = begin; i < end; ++i) {
      for (Val v : from_.in(op(i)))
        if (is_number(v) && inside[v] == kNoVal) inside.op(op(made_by_[index(v)]));
      if (op(i).op == &scalar_leaf) {
        copy_.op(op(i));
        continue;
      }
      inside.op(op(i));
      for (Val v = op(i).out; v < op(i).out + op(i).outs; ++v)
        if (last_[index(v)] >= end) out.push_back(v), types.push_back(from_.types[index(v)]);
    }
    if (out.empty()) return;
    body.outputs = inside.all(out);
    ops::CallAttrs attrs{ops::CallKind::remat, intern(std::move(body))};
    Val first = to_.add(ops::call, intern(*ops::call.attrs, &attrs), in, types, op(begin).loc);
    for (size_t k = 0; k < out.size(); ++k) copy_[out[k]] = first + static_cast<Val>(k);
  }

  const Graph& from_;
  Graph to_;
  GraphCopy copy_{from_, to_};
  std::vector<int> last_;     // by value: the op that reads it last; those that are outputs: ops()
  std::vector<int> made_by_;  // by value
};

}  // namespace

Graph in_segments(const Graph& forward, int segments) {
  if (segments < 1) fail("checkpoint: segments must be 1 or more: {}", segments);
  return Segments(forward).cut(segments);
}

}  // namespace tn
