#pragma once
// Plan: what runs. A list of steps over a table of buffers; everything else was decided at compile
// time. Steps are data: launchers (backend/cpu/cpu_launcher.cpp) run them; printers, reports and
// the bundler read what they are.
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "ir/place.h"
#include "ir/view.h"
#include "plan/product_setting.h"
#include "plan/target.h"
#include "runtime/buffer.h"

namespace tn {

struct Attrs;
struct LibraryKernel;
struct OpDef;
struct Plan;
struct Step;
namespace loop {
struct Kernel;
struct BlockProgram;
}  // namespace loop

/// The code of a kernel at some sizes. A launcher knows what its own backend made of it.
struct BoundKernel {
  bool is_one_phase = true;  // it may be a part of a bundle
 protected:
  ~BoundKernel() = default;
};

/// A loop nest, and what runs it: machine code or a program for the interpreter. A plan whose
/// memory is only being estimated has neither.
struct KernelStep {
  std::shared_ptr<const loop::Kernel> kernel = {};
  std::shared_ptr<const BoundKernel> code = {};
  std::shared_ptr<const loop::BlockProgram> program = {};
};

/// One op of the graph, as it is. The buffers of the step begin with operands and results.
struct CallStep {
  const OpDef* op;
  const Attrs* attrs;
  std::vector<TypeRef> in, out;
};

/// A library kernel. Behind operands and results the step has the buffers of `after`, and room.
struct LibraryStep : CallStep {
  const LibraryKernel* kernel;

  // Of a kernel in its tiled form; room also of others.
  std::vector<Strided> at = {};  // by operand: where its elements lie; none: all are row-major
  KernelStep after = {};         // works on finished blocks, or on the whole result
  BufferRef packed = {};         // the second operand, packed when the plan was made
  struct Room {
    int64_t bytes = 0;  // 0: this piece is not needed
    int32_t at = 0;     // among the buffers of the step
  };
  std::vector<Room> room = {};
};

/// Control flow. Bodies are the graphs among the attributes.
struct ControlStep : CallStep {
  enum class Kind : uint8_t { cond, while_loop, scan } kind;
  std::vector<std::shared_ptr<const Plan>> bodies;
};

/// Elements brought in row-major order, from the first buffer to the second.
struct CopyStep {
  int64_t element_bytes = 0, offset = 0;  // in bytes
  std::vector<int64_t> extents = {}, strides = {};
};

/// Kernels that do not depend on each other. Buffers and scalars are those of the parts in a row.
struct BundleStep {
  static constexpr size_t kMost = 64;
  std::vector<Step> parts;
};

/// A place in the memory of a run.
struct Spot {
  int32_t block = 0;  // of Plan::blocks
  int64_t offset = 0;
};

/// Buffers are numbers in the plan's table: inputs first, then constants, then its own.
struct Step {
  std::variant<KernelStep, LibraryStep, ControlStep, CopyStep, BundleStep> what = {};
  std::vector<int32_t> buffers = {};
  /// Run-time numbers it takes, by place in the call; ~n: imaginary part.
  std::vector<int32_t> scalars = {};
  std::vector<int32_t> writes = {};  // places in `buffers` that it writes; none: it may write any
  struct Pair {
    int32_t input, output;  // places in `buffers`
  };
  std::vector<Pair> in_place = {};  // the output may lie where the input did
  bool effect = false;              // run for what it does: such steps keep their order
  bool bypass_cache = false;        // its results are large and not read soon: stores may
  // For readers.
  std::string name = {};  // "softmax"
  Loc loc = {};           // the user's place
  struct Op {
    const OpDef* op;
    TypeRef type;  // of its first result
    Loc loc;
  };
  std::vector<Op> ops = {};  // of the graph, computed here

  const LibraryStep* library() const { return std::get_if<LibraryStep>(&what); }
  /// A library kernel or control flow; null: it is neither.
  const CallStep* call() const {
    const CallStep* control = std::get_if<ControlStep>(&what);
    return control ? control : library();
  }
  /// Of a kernel, or of a library call whose result it works on; null: there is none.
  const KernelStep* kernel() const {
    const LibraryStep* call = library();
    const KernelStep* found = call ? &call->after : std::get_if<KernelStep>(&what);
    return found && found->kernel ? found : nullptr;
  }
};

/// Steps in the order of the plan, those of a bundle one by one.
template <class F>
void for_each_part(std::span<const Step> steps, F&& f) {
  for (const Step& step : steps)
    if (auto* bundle = std::get_if<BundleStep>(&step.what))
      for_each_part(std::span<const Step>(bundle->parts), f);
    else
      f(step);
}

/// How the places of a plan's buffers are found; see compiler/placement.h.
enum class MemoryPlanning : uint8_t {
  usual,  // as the effort says: greedy, or best_fit for the highest
  greedy,
  best_fit,
  optimal,
  none,
};

struct PlacedPlan;
class DevicePart;

struct Plan {
  int inputs = 0, scalars = 0;
  std::vector<Bound> constants;
  std::vector<int64_t> given_bytes;  // of inputs, then of constants
  std::vector<int64_t> bytes;        // of the plan's own buffers
  std::vector<Step> steps;
  struct Output {
    int32_t buffer;
    int64_t offset;
  };
  std::vector<Output> outputs;
  std::vector<int64_t> donated;  // by input: the donated bytes that results may reuse; 0: none
  bool one_thread = false;       // a run stays on the thread that calls it
  Target target = {};
  Products products = Products::highest;

  // Filled by plan_memory (compiler/plan_memory.h).
  struct Block {
    int64_t bytes;
    int32_t input = -1;  // the input whose memory is reused if it is donated
  };
  std::vector<Block> blocks;   // what a run takes: buffers of outputs, then the arena
  std::vector<Spot> spots;     // of the plan's own buffers
  size_t first_overwrite = 0;  // the first step that may write in memory of inputs
  MemoryPlanning planning = MemoryPlanning::usual;  // how spots were found
  bool is_least = false;  // it is known that these steps, in this order, need no less
  /// Says what needs the memory, when there is not enough.
  std::string (*explain_memory)(const Plan& plan) = nullptr;

  /// Plans for several devices. Such a plan has no steps of its own: values are numbers, its inputs
  /// first, then its constants, then what the parts make.
  struct Wanted {
    int32_t value;
    Device device;
    int64_t bytes;
  };
  struct Part {
    std::shared_ptr<const PlacedPlan> plan;
    std::vector<int32_t> in, out, scalars;
    std::vector<int64_t> in_bytes;
    std::vector<Wanted> fetched = {};   // copies that are made before it, for it or a later part
    std::vector<int32_t> dropped = {};  // values that nothing needs after it
  };
  struct Parts {
    bool is_whole = false;        // one part, with the inputs and outputs of the plan
    std::vector<Device> devices;  // of values, by number
    std::vector<Part> list;
    std::vector<Wanted> outputs;
    std::vector<Loc> recorded;  // places of the graph's ops, without numbers: plan/run_places.h
  };
  std::shared_ptr<const Parts> parts = {};
  /// Of a device that plans its parts itself. Such a plan has no steps and no blocks.
  std::shared_ptr<const DevicePart> unplanned = {};

  size_t bytes_given(size_t i) const { return static_cast<size_t>(given_bytes[i]); }
  int first_own() const { return inputs + static_cast<int>(constants.size()); }
};

/// A plan on a device.
struct PlacedPlan {
  Device device;
  std::shared_ptr<const Plan> plan;
  std::vector<Bound> constants;  // of the plan, there
  /// What the runtime of the device keeps for its runs; made and read by it alone.
  mutable std::shared_ptr<void> state = {};
};

/// Runs the steps in order; any number of threads may run one plan at once. `outputs` has the
/// plan's length and receives the results. The memory of a donated input is reused if its Bound
/// holds the only reference to it and it is writable. A run can be cancelled between steps until it
/// writes to donated memory. If a step fails later, `overwritten` is set.
void run(const Plan& plan, std::span<const Bound> inputs, const Scalar* scalars,
         std::span<Bound> outputs, bool* overwritten = nullptr);
/// The same on a device, asynchronously: readers of the results wait for them.
void run(const std::shared_ptr<const PlacedPlan>& placed, std::span<const Bound> inputs,
         const Scalar* scalars, std::span<Bound> outputs, bool* overwritten = nullptr);

}  // namespace tn
