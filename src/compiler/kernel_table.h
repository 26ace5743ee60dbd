#pragma once
// KernelTable: the kernels of an immediate plan by structure. Long programs repeat a few ops many
// times, and the steps of a plan share kernels that differ in the numbers of their values only.
#include <unordered_map>

#include "base/function_ref.h"
#include "compiler/fusion.h"
#include "compiler/kernel_set.h"

namespace tn {

/// All that a kernel is built from. Values and run-time numbers are numbered by first use, so that
/// one kernel serves all uses with equal words.
struct KernelKey {
  std::vector<uint64_t> words;
  std::vector<Val> values;         // by number
  std::vector<int32_t> arguments;  // run-time numbers, by number
};

class KernelTable {
 public:
  /// A kernel of the table, for other values. If none has this structure, `build` makes one.
  std::shared_ptr<SharedKernel> get(KernelKey key,
                                    FunctionRef<std::shared_ptr<SharedKernel>()> build);

  KernelKey key_of(const Graph& graph, const Cluster& cluster, std::span<const Home> homes);
  /// Of a value that is brought in row-major order.
  KernelKey key_of(const Graph& graph, Val copied, std::span<const Home> homes);
  /// Of an op by itself.
  KernelKey key_of(const Graph& graph, const GraphOp& op);

 private:
  struct Hash {
    size_t operator()(const std::vector<uint64_t>& words) const;
  };
  /// Values and run-time numbers are those of a key.
  struct Entry {
    std::shared_ptr<const loop::Kernel> kernel;
    KernelAccess access;
    std::vector<int32_t> values = {}, scalars = {};
  };
  static Entry entry_of(const SharedKernel& made, const KernelKey& key);

  std::unordered_map<std::vector<uint64_t>, Entry, Hash> entries_;
  std::vector<int32_t> numbers_;  // by value of the graph, while a key is made
};

}  // namespace tn
