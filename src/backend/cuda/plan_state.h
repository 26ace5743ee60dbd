#pragma once
// What a GPU keeps of a plan: its kernels, loaded, and CUDA graphs of its launches.
#include <span>

#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/gpu.h"
#include "backend/cuda/product_tail.h"
#include "backend/cuda/tail_program.h"
#include "plan/plan.h"

namespace tn::cuda {

/// Addresses and numbers of one run.
struct RunValues {
  void* const* address;  // in the order of the plan's table
  const Scalar* scalars;
  Address room = 0;
};

/// A step that a GPU runs without the host: a kernel with code, or a library call.
struct Item {
  const Step* step = nullptr;
  bool is_call = false;                         // of the library; its kernel works on the result
  const CudaKernel* kernel = nullptr;           // null: there is none
  std::shared_ptr<const CudaKernel> kept = {};  // where it is not the step's, but compiled since
  std::optional<ProductTail> tail = {};    // what the kernel does, where the call may do it instead
  std::optional<TailOfStep> program = {};  // the same, where own kernels may do it
  std::vector<Function> functions = {};
  int64_t room = 0;                // where its memory begins in that of the plan
  size_t first = 0, count = 0;     // of its parameters, in 8 bytes each
  size_t addresses = 0;            // of them, those of the call, which come first
  std::vector<size_t> after = {};  // items that must be done before it
};

struct OwnKernel;

/// Runs of one plan on one GPU. Guarded by the lock of the GPU's stream, once it is made.
class PlanState {
 public:
  PlanState(Gpu& gpu, const PlacedPlan& placed);
  ~PlanState();
  PlanState(const PlanState&) = delete;

  const Gpu& gpu() const { return gpu_; }
  const std::vector<Item>& items() const { return items_; }
  /// Whether no step needs the host.
  bool is_device_only() const { return device_only_; }
  int64_t room_bytes() const { return room_bytes_; }
  /// Whether a kernel that it interprets has been compiled.
  bool is_outdated() const;
  /// Counts a run of each kernel that it interprets. Needs no lock, and must not be under one.
  void count_run() const;

  /// Before the first run: makes the code of all own kernels that its calls launch. Needs no lock,
  /// and must not be under one.
  void prepare(const RunValues& values);
  /// Puts all launches on the stream: as a graph from the second run on.
  void submit(const RunValues& values, Stream stream);
  /// Those of step `number` alone, where is_item says so.
  bool is_item(size_t number) const { return is_item_[number]; }
  void submit_step(size_t number, const RunValues& values, Stream stream);

  /// Plans of the bodies of a step, on the GPU.
  std::shared_ptr<const PlacedPlan> body(const ControlStep& step, size_t number);

  struct Counts {
    int64_t launched = 0, built = 0, updated = 0;  // graphs
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Made {
    Graph graph = nullptr;
    GraphExec exec = nullptr;
    std::vector<GraphNode> nodes = {};  // of all launches; of a library call, one
    std::vector<bool> tails = {};       // by item: whether the call does what its kernel would
    std::vector<uint64_t> slots = {};   // empty: they are not known
    uint64_t used = 0;
  };
  static constexpr size_t kMostGraphs = 2;

  void add(const Step& step);
  void find_order();
  void fill(const RunValues& values, std::vector<uint64_t>& slots) const;
  void fill(const Item& item, const RunValues& values, uint64_t* slots) const;
  void launch(const Item& item, const uint64_t* slots, Stream stream) const;
  /// Whether the call has done what the kernel behind it would. `wanted`: see CallPlace.
  bool call(const Item& item, const uint64_t* slots, Stream stream,
            std::vector<OwnKernel>* wanted = nullptr) const;
  Graph captured(const Item& item, const uint64_t* slots, bool& has_done_tail) const;
  Made& graph_for_now();
  void build(Made& made);
  void add_nodes(Made& made);
  bool update(Made& made);
  void destroy(Made& made) const;
  size_t changed_items(const Made& made) const;

  Gpu& gpu_;
  Device device_;
  std::shared_ptr<const Plan> plan_;
  std::vector<Item> items_;
  std::vector<bool> is_item_;       // by step
  std::vector<size_t> first_item_;  // by step, and behind the last
  bool device_only_ = true;
  int64_t room_bytes_ = 0;
  size_t slots_ = 0;
  std::vector<uint64_t> now_;
  std::vector<Made> made_;
  uint64_t runs_ = 0;
  std::atomic<bool> is_prepared_ = false;
  Counts counts_;
  std::mutex bodies_mutex_;
  std::vector<std::pair<const Plan*, std::shared_ptr<const PlacedPlan>>> bodies_;
};

/// The functions of a kernel, loaded on this GPU.
std::vector<Function> functions_of(Gpu& gpu, const CudaKernel& kernel);

}  // namespace tn::cuda
