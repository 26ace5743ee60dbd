#pragma once
// KernelSet: an optimised graph, its clusters, and its kernels. They serve all sizes that satisfy
// the guards. A plan for given sizes is made from a set. compiler/compiler.h is the
// interface that makes sets.
#include <map>

#include "compiler/plan_builder.h"
#include "ir/sizes.h"
#include "plan/backend.h"

namespace tn {

/// What a kernel is for; its number is that of a cluster, a value or an op.
enum class KernelUse : uint8_t {
  cluster,
  tile,  // a cluster that works on the blocks of its hero's result
  copy,  // a value brought in row-major order
  nest,  // an op by itself
};

/// A kernel, and what a step that runs it takes.
struct SharedKernel {
  std::shared_ptr<const loop::Kernel> kernel;
  KernelForm form = KernelForm::whole;
  std::vector<Val> values = {};       // by buffer of the kernel: whose memory it is
  std::vector<int32_t> scalars = {};  // as in Step
  KernelAccess access = {};
  bool compiled = false;
  std::shared_ptr<const KernelCode> code = {};  // null: it is interpreted
};

/// Ops that one kernel computes.
struct FusedOps {
  std::vector<int> members = {};  // in the order of the graph
  std::vector<Val> stores = {};   // values that it writes
  std::vector<Val> rows = {};     // values that it reads in row-major order
  int hero = -1;                  // the dot or convolution whose result the members finish
  Val sums = kNoVal;  // the stored value in whose memory that result is made; none: in its own
  std::vector<Val> reads = {};  // values that it reads where they lie
};

/// The second operand of an op, packed by its kernel.
struct PackedRight {
  BufferRef data;
  PackedLayout layout = 0;
  int32_t constant = -1;  // of the set's options: what it was made of
  int32_t traced = -1;    // in sets from files: its number among those of the traced graph
  // The op when it was packed; the order depends on the second operand alone.
  std::vector<TypeRef> in = {}, out = {};
  std::vector<Strided> at = {};
};

struct KernelSet;

/// Makes kernels that a set does not have yet, with their access.
class KernelSource {
 public:
  virtual ~KernelSource() = default;
  /// Null where the index of a tile is not linear. `homes`, by value, matter for sets of one plan.
  virtual std::shared_ptr<SharedKernel> build(const KernelSet& set, KernelUse use, int number,
                                              std::span<const Home> homes) = 0;
  /// Machine code, for all at once.
  virtual void compile(std::span<SharedKernel* const> kernels, std::span<const Binding> sizes,
                       CompileCounts& counts) = 0;
};

/// Copies share kernels.
struct KernelSet {
  CompileOptions options;         // with the constants that passes found
  std::vector<Binding> sizes;     // hints that it was made with
  std::vector<SizeGuard> guards;  // its assumptions about sizes
  Graph graph;
  Decisions decisions;  // of passes and fusion; none in sets from files
  std::vector<FusedOps> clusters;
  std::vector<int> producer;  // by value: the op that makes it, -1 for inputs
  std::vector<int> order;     // what runs: an op by itself, or a cluster as ~number
  std::vector<bool> library;  // by op: by itself it is a call of the library, not a kernel
  std::vector<std::string> names = {};  // of `order`, for readers; none in sets from files
  std::map<std::pair<KernelUse, int>, std::shared_ptr<SharedKernel>> kernels = {};
  std::map<int, std::vector<std::shared_ptr<const CompiledGraph>>> bodies = {};  // by op
  std::map<int, PackedRight> packed = {};     // by op; packed for the first plan
  std::vector<int32_t> step_order = {};       // found for the first plan
  std::shared_ptr<KernelSource> source = {};  // null: what is there is all there will be

  bool serves(std::span<const Binding> sizes) const;
  /// Built on first use; null where there is none.
  SharedKernel* kernel(KernelUse use, int number, std::span<const Binding> sizes,
                       std::span<const Home> homes);
  /// Machine code for those that were never compiled.
  void compile(std::span<SharedKernel* const> kernels, std::span<const Binding> sizes,
               CompileCounts& counts);
  /// Plans of the graphs among the attributes of an op.
  std::vector<std::shared_ptr<const Plan>> body_plans(int op, std::span<const Binding> sizes,
                                                      CompileCounts& counts);
};

/// A constant whose elements are not in memory.
Bound absent_constant();
/// Whether the second operand of this op, packed, has all elements of the constant that it was made
/// of; and those, in row-major order.
bool can_unpack(const KernelSet& set, int op);
BufferRef unpacked(const KernelSet& set, int op);

/// Gives the constants of the traced graph that have no data those that the sets hold packed.
void restore_constants(const Graph& traced, std::span<const KernelSet> sets,
                       std::vector<Bound>& constants);

}  // namespace tn
