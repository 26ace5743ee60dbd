#include "backend/cuda/mock/mock_driver.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>

namespace tn::cuda {

struct FunctionOfDriver {
  std::string name;
  const MockKernel* kernel;
  int shared_bytes = 48 << 10;  // the most that a launch may have
};
struct GraphNodeOfDriver {
  std::vector<GraphNode> after;
  Function function = nullptr;
  std::vector<uint64_t> params;
  unsigned blocks = 0, threads = 0;
  Graph child = nullptr;
  std::function<void()> copy = {};
};
struct GraphOfDriver {
  std::vector<GraphNode> nodes;
};
struct GraphExecOfDriver {
  GraphOfDriver graph;                     // with nodes of its own
  std::map<GraphNode, GraphNode> copy_of;  // by node of what it was made from
};
struct StreamOfDriver {
  Graph capturing = nullptr;
};
struct ModuleOfDriver {
  std::string image;
  std::map<std::string, Function> functions = {};
};
struct ContextOfDriver {};
struct EventOfDriver {
  int recorded = 0;  // how many were before
};
struct MemoryPoolOfDriver {};

Mock& mock() {
  static auto& only = *new Mock;
  return only;
}

namespace {

/// What the driver makes lives as long as the process, reachable for leak checkers: plans and GPUs
/// that a test leaves behind hold handles.
template <class T>
T* kept(T made = {}) {
  static auto& mutex = *new std::mutex;
  static auto& all = *new std::deque<T>;
  std::lock_guard lock(mutex);
  return &all.emplace_back(std::move(made));
}

constexpr Address kForeign = Address{0x7ff5} << 48;  // no float32 but NaN begins so
struct Block {
  void* memory;  // its address, which `Address` hides from leak checkers
  size_t bytes;
};
std::map<Address, Block>& blocks_of_mock() {
  static auto& only = *new std::map<Address, Block>;
  return only;
}
ContextOfDriver only_context;
MemoryPoolOfDriver only_pool;
thread_local Context current = nullptr;

void run_kernel(const FunctionOfDriver& function, const uint64_t* params, unsigned blocks,
                unsigned threads) {
  mock().log.push_back(function.name);
  function.kernel->run(params, blocks, threads);
}

/// Words that streams are to write.
struct Words {
  std::mutex mutex;
  bool is_busy = false;
  std::vector<std::pair<Address, uint32_t>> due;
  std::map<Address, uint32_t> last;  // that is written or due

  static Words& all() {
    static auto& only = *new Words;
    return only;
  }
  static void write(Address at, uint32_t value) {
    std::atomic_ref(*reinterpret_cast<uint32_t*>(at)).store(value, std::memory_order_release);
  }
};
Result write_word(Address at, uint32_t value) {
  if (mock().broken) return mock().broken;
  Words& words = Words::all();
  std::lock_guard lock(words.mutex);
  words.last[at] = value;
  if (words.is_busy)
    words.due.emplace_back(at, value);
  else
    Words::write(at, value);
  return kSuccess;
}
/// Refuses a wait that would never end: for a value that no earlier call writes.
Result wait_for_word(Stream stream, Address at, uint32_t value, unsigned how) {
  Words& words = Words::all();
  std::lock_guard lock(words.mutex);
  auto last = words.last.find(at);
  bool comes = last != words.last.end() && static_cast<int32_t>(last->second - value) >= 0;
  if (!comes || how != kWaitGreaterOrEqual) return 1;
  return mock().waiting.push_back(stream), mock().broken.load();
}
Result state_of_streams() {
  Words& words = Words::all();
  std::lock_guard lock(words.mutex);
  return mock().broken ? mock().broken.load() : words.is_busy ? kNotReady : kSuccess;
}

/// In any order that the edges allow.
void run_graph(const GraphOfDriver& graph) {
  static std::minstd_rand random(7);
  std::vector<GraphNode> left = graph.nodes;
  while (!left.empty()) {
    std::vector<size_t> ready;
    for (size_t i = 0; i < left.size(); ++i) {
      bool waits = false;
      for (GraphNode before : left[i]->after)
        for (GraphNode other : left) waits = waits || other == before;
      if (!waits) ready.push_back(i);
    }
    size_t chosen = ready[random() % ready.size()];
    const GraphNodeOfDriver& node = *left[chosen];
    if (node.function) run_kernel(*node.function, node.params.data(), node.blocks, node.threads);
    if (node.child) run_graph(*node.child);
    if (node.copy) node.copy();
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(chosen));
  }
}

std::vector<uint64_t> params_of(Function function, void** params) {
  std::vector<uint64_t> values(function->kernel->params);
  if (values.empty()) return values;
  if (function->kernel->takes_structure) {
    std::memcpy(values.data(), params[0], values.size() * sizeof(uint64_t));
    return values;
  }
  for (size_t i = 0; i < values.size(); ++i) std::memcpy(&values[i], params[i], sizeof(uint64_t));
  return values;
}

Graph copy_of(const GraphOfDriver& graph, std::map<GraphNode, GraphNode>& copies) {
  auto* made = kept<GraphOfDriver>();
  for (GraphNode node : graph.nodes) {
    auto* copy = kept(*node);
    for (GraphNode& before : copy->after) before = copies.at(before);
    std::map<GraphNode, GraphNode> inner;
    if (node->child) copy->child = copy_of(*node->child, inner);
    made->nodes.push_back(copies[node] = copy);
  }
  return made;
}

GraphNode add_node(Graph graph, const GraphNode* after, size_t count) {
  auto* node = kept<GraphNodeOfDriver>();
  node->after.assign(after, after + count);
  graph->nodes.push_back(node);
  return node;
}

/// A node behind all that the stream has captured.
GraphNode next_captured(Stream stream) {
  GraphNode last = stream->capturing->nodes.empty() ? nullptr : stream->capturing->nodes.back();
  return add_node(stream->capturing, &last, last ? 1 : 0);
}

void set_node(GraphNode node, const KernelNode& from) {
  node->function = from.function;
  node->params = params_of(from.function, from.params);
  node->blocks = from.grid[0], node->threads = from.block[0];
}

Result allocate(Address* out, size_t bytes) {
  Mock& m = mock();
  if (m.allocated + bytes > m.total_bytes) return kOutOfMemory;
  void* made = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(made, 0xa5, bytes);
  *out = reinterpret_cast<Address>(made) | kForeign;
  blocks_of_mock()[*out] = {made, bytes};
  m.allocated += bytes, ++m.allocations;
  return kSuccess;
}

Result release(Address at) {
  auto found = blocks_of_mock().find(at);
  if (found == blocks_of_mock().end()) return 1;
  mock().allocated -= found->second.bytes;
  std::free(mock_memory(at));
  blocks_of_mock().erase(found);
  return kSuccess;
}

Result launch(Function function, unsigned blocks, unsigned threads, Stream stream, void** params) {
  if (mock().broken) return mock().broken;
  bool fails = mock().launches_left == 0;
  if (mock().launches_left >= 0) --mock().launches_left;
  if (fails) return 1;
  if (stream->capturing) {
    KernelNode node;
    node.function = function, node.params = params;
    node.grid[0] = blocks, node.block[0] = threads;
    set_node(next_captured(stream), node);
    return kSuccess;
  }
  ++mock().launches;
  run_kernel(*function, params_of(function, params).data(), blocks, threads);
  return kSuccess;
}

Result attribute(int* out, int what, DeviceNumber) {
  *out = what == kMajor               ? mock().major
         : what == kMinor             ? mock().minor
         : what == kSharedBytesOfEach ? 228 << 10
                                      : 4;
  return kSuccess;
}

void make_device(Driver& d) {
  d.cuInit = [](unsigned) { return mock().init; };
  d.cuDriverGetVersion = [](int* out) { return *out = mock().version, kSuccess; };
  d.cuGetErrorName = [](Result, const char** out) { return *out = "CUDA_ERROR_MOCK", kSuccess; };
  d.cuGetErrorString = [](Result, const char** out) { return *out = "as asked", kSuccess; };
  d.cuDeviceGetCount = [](int* out) { return *out = mock().devices, kSuccess; };
  d.cuDeviceGet = [](DeviceNumber* out, int index) { return *out = index, kSuccess; };
  d.cuDeviceGetName = [](char* out, int size, DeviceNumber) {
    std::strncpy(out, "Mock GPU", static_cast<size_t>(size));
    return kSuccess;
  };
  d.cuDeviceGetAttribute = attribute;
  d.cuDeviceTotalMem_v2 = [](size_t* out, DeviceNumber) {
    return *out = mock().total_bytes, kSuccess;
  };
  d.cuDeviceGetDefaultMemPool = [](MemoryPool* out, DeviceNumber) {
    return *out = &only_pool, kSuccess;
  };
  d.cuDevicePrimaryCtxRetain = [](Context* out, DeviceNumber) {
    return *out = &only_context, mock().context;
  };
  d.cuCtxSetCurrent = [](Context c) { return current = c, kSuccess; };
  d.cuCtxGetCurrent = [](Context* out) { return *out = current, kSuccess; };
  d.cuCtxSynchronize = [] { return ++mock().synchronized, mock().broken.load(); };
}

void make_memory(Driver& d) {
  d.cuMemGetInfo_v2 = [](size_t* free, size_t* total) {
    *total = mock().total_bytes, *free = *total - mock().allocated;
    return kSuccess;
  };
  d.cuMemPoolSetAttribute = [](MemoryPool, int, void*) { return kSuccess; };
  d.cuMemPoolTrimTo = [](MemoryPool, size_t) { return kSuccess; };
  d.cuMemAllocAsync = [](Address* out, size_t bytes, Stream) { return allocate(out, bytes); };
  d.cuMemFreeAsync = [](Address at, Stream) { return release(at); };
  d.cuMemHostAlloc = [](void** out, size_t bytes, unsigned) {
    return *out = std::malloc(bytes), kSuccess;
  };
  d.cuMemFreeHost = [](void* at) { return std::free(at), kSuccess; };
  d.cuMemcpyHtoDAsync_v2 = [](Address to, const void* from, size_t bytes, Stream) {
    return std::memcpy(mock_memory(to), from, bytes), mock().broken.load();
  };
  d.cuMemcpyDtoHAsync_v2 = [](void* to, Address from, size_t bytes, Stream) {
    return std::memcpy(to, mock_memory(from), bytes), mock().broken.load();
  };
  d.cuMemsetD8Async = [](Address to, unsigned char value, size_t, Stream) {
    return std::memcpy(mock_memory(to), &value, 1), mock().broken.load();
  };
  d.cuMemsetD16Async = [](Address to, unsigned short value, size_t, Stream) {
    return std::memcpy(mock_memory(to), &value, 2), mock().broken.load();
  };
  d.cuMemsetD32Async = [](Address to, unsigned value, size_t, Stream) {
    return std::memcpy(mock_memory(to), &value, 4), mock().broken.load();
  };
  d.cuMemcpyDtoDAsync_v2 = [](Address to, Address from, size_t bytes, Stream stream) {
    auto copy = [=] { std::memmove(mock_memory(to), mock_memory(from), bytes); };
    if (!stream->capturing) return copy(), mock().broken.load();
    return next_captured(stream)->copy = copy, kSuccess;
  };
}

void make_streams(Driver& d) {
  d.cuStreamCreate = [](Stream* out, unsigned) { return *out = kept<StreamOfDriver>(), kSuccess; };
  d.cuStreamWriteValue32_v2 = [](Stream, Address at, uint32_t value, unsigned) {
    return write_word(at, value);
  };
  d.cuStreamWaitValue32_v2 = wait_for_word;
  d.cuStreamQuery = [](Stream) { return state_of_streams(); };
  d.cuStreamSynchronize = [](Stream) { return mock().broken.load(); };
  d.cuStreamWaitEvent = [](Stream stream, EventHandle, unsigned) {
    return mock().waiting.push_back(stream), mock().broken.load();
  };
  d.cuStreamBeginCapture_v2 = [](Stream stream, int) {
    return stream->capturing = kept<GraphOfDriver>(), kSuccess;
  };
  d.cuStreamEndCapture = [](Stream stream, Graph* out) {
    *out = stream->capturing, stream->capturing = nullptr;
    return kSuccess;
  };
  d.cuEventCreate = [](EventHandle* out, unsigned) { return *out = new EventOfDriver, kSuccess; };
  d.cuEventRecord = [](EventHandle event, Stream stream) {
    static int recorded = 0;
    mock().recorded.push_back(stream);
    return event->recorded = ++recorded, kSuccess;
  };
  d.cuEventElapsedTime = [](float* out, EventHandle from, EventHandle to) {
    return *out = static_cast<float>(to->recorded - from->recorded) * 4e-6F, kSuccess;
  };
  d.cuEventDestroy_v2 = [](EventHandle event) { return delete event, kSuccess; };
  d.cuEventSynchronize = [](EventHandle) { return mock().broken.load(); };
  d.cuLaunchKernel = [](Function f, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned,
                        unsigned, unsigned shared_bytes, Stream stream, void** params, void**) {
    if (shared_bytes > static_cast<unsigned>(f->shared_bytes)) return 1;
    return launch(f, blocks, threads, stream, params);
  };
}

void make_modules(Driver& d) {
  d.cuModuleLoadDataEx = [](Module* out, const void* image, unsigned, int*, void**) {
    if (mock().module == kSuccess) *out = new ModuleOfDriver{static_cast<const char*>(image)};
    return mock().module;
  };
  d.cuModuleUnload = [](Module module) { return delete module, kSuccess; };
  d.cuModuleGetFunction = [](Function* out, Module module, const char* name) {
    auto found = mock().kernels.find(name);
    if (found == mock().kernels.end()) return 500;
    Function& known = module->functions[name];
    if (!known) known = kept(FunctionOfDriver{name, &found->second});
    *out = known;
    return kSuccess;
  };
  d.cuFuncGetAttribute = [](int* out, int attribute, Function f) {
    return *out = attribute == kFunctionSharedBytes ? f->shared_bytes : 32, kSuccess;
  };
  d.cuFuncSetAttribute = [](Function f, int attribute, int value) {
    if (attribute == kFunctionSharedBytes) f->shared_bytes = value;
    return kSuccess;
  };
}

void make_graphs(Driver& d) {
  d.cuGraphCreate = [](Graph* out, unsigned) { return *out = kept<GraphOfDriver>(), kSuccess; };
  d.cuGraphDestroy = [](Graph) { return kSuccess; };  // nodes are shared with copies
  d.cuGraphAddEmptyNode = [](GraphNode* out, Graph graph, const GraphNode* after, size_t count) {
    return *out = add_node(graph, after, count), kSuccess;
  };
  d.cuGraphAddKernelNode_v2 = [](GraphNode* out, Graph graph, const GraphNode* after, size_t count,
                                 const KernelNode* node) {
    set_node(*out = add_node(graph, after, count), *node);
    return kSuccess;
  };
  d.cuGraphAddChildGraphNode = [](GraphNode* out, Graph graph, const GraphNode* after, size_t count,
                                  Graph child) {
    std::map<GraphNode, GraphNode> copies;
    (*out = add_node(graph, after, count))->child = copy_of(*child, copies);
    return kSuccess;
  };
  d.cuGraphInstantiateWithFlags = [](GraphExec* out, Graph graph, unsigned long long) {
    if (mock().instantiate) return mock().instantiate;
    auto* made = new GraphExecOfDriver;
    made->graph = *copy_of(*graph, made->copy_of);
    ++mock().graphs_built;
    return *out = made, kSuccess;
  };
  d.cuGraphExecKernelNodeSetParams_v2 = [](GraphExec exec, GraphNode node, const KernelNode* from) {
    if (mock().set_params) return mock().set_params;
    set_node(exec->copy_of.at(node), *from);
    return ++mock().nodes_set, kSuccess;
  };
  d.cuGraphExecChildGraphNodeSetParams = [](GraphExec exec, GraphNode node, Graph child) {
    std::map<GraphNode, GraphNode> copies;
    exec->copy_of.at(node)->child = copy_of(*child, copies);
    return ++mock().nodes_set, kSuccess;
  };
  d.cuGraphLaunch = [](GraphExec exec, Stream) {
    ++mock().graph_launches;
    if (!mock().broken) run_graph(exec->graph);
    return mock().broken.load();
  };
  d.cuGraphExecDestroy = [](GraphExec exec) { return delete exec, kSuccess; };
}

}  // namespace

void set_mock_busy(bool busy) {
  Words& words = Words::all();
  std::lock_guard lock(words.mutex);
  words.is_busy = busy;
  if (busy) return;
  for (auto [at, value] : words.due) Words::write(at, value);
  words.due.clear();
}

void* mock_memory(Address address) { return reinterpret_cast<void*>(address & ~kForeign); }

bool is_mock_address(uint64_t word) { return word >> 48 == kForeign >> 48; }

const Driver& mock_driver() {
  static const Driver& only = *[] {
    auto* made = new Driver;
    make_device(*made), make_memory(*made), make_streams(*made);
    make_modules(*made), make_graphs(*made);
    return made;
  }();
  return only;
}

}  // namespace tn::cuda
