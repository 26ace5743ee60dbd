// The runtime of CUDA devices, against a mock of the driver: memory of the heap, kernels that are
// functions of the host.
#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "backend/cuda/assembler.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cuda_runtime.h"
#include "backend/cuda/plan_state.h"
#include "backend/cuda/tile_choice.h"
#include "base/interrupt.h"
#include "errors.h"
#include "eval/eval.h"
#include "files.h"
#include "mock_plans.h"
#include "tenon/tenon.h"

using namespace tn;

TEST_CASE("cuda: without a driver, or with an old one") {
  cuda::replace_driver(nullptr);
  CHECK(error_in([] {
          Device("cuda");
        }).starts_with("device: cuda: no NVIDIA driver was found (libcuda.so.1 is missing)\n"));
  size_t others = devices().size();
  WithMock with;
  mock().version = 11040;
  CHECK(error_in([] { Device("cuda:0"); })
            .starts_with("device: cuda:0: the driver is too old: it is for CUDA 11.4, and CUDA "
                         "12.0 (driver 525) is needed\n"));
  mock().version = 13000;
  cuda::replace_driver(&cuda::mock_driver());
  mock().init = 100;
  CHECK(contains(error_in([] { Device("cuda"); }), "the driver finds no usable GPU"));
  mock().init = 0, mock().devices = 0;
  cuda::replace_driver(&cuda::mock_driver());
  CHECK(error_in([] { Device("cuda"); }).starts_with("device: cuda: the driver finds no GPU\n"));
  mock().devices = 1;
  cuda::replace_driver(&cuda::mock_driver());
  CHECK(contains(error_in([] { Device("cuda:1"); }), "no such device: 'cuda:1'"));
  CHECK(to_text(Device("cuda")) == "cuda:0");
  CHECK(devices().size() == others + 1);
}

TEST_CASE("cuda: targets by name") {
  CHECK(target_named("sm_90", "x") == cuda::target_of(90));
  CHECK(target_named("nvidia_h200", "x") == cuda::target_of(90));
  CHECK(name_of(cuda::target_of(80)) == "sm_80");
  CHECK(targets_named({"nvidia_h200", "sm_80", "native", "ptx_80"}, "save") ==
        std::vector{host_target(), cuda::target_of(-80), cuda::target_of(80), cuda::target_of(90)});
  CHECK(contains(error_in([] { targets_named({"nvidia_t4"}, "save"); }),
                 "save: cannot generate code for nvidia_t4 ahead of time: code for GPUs begins"));
}

TEST_CASE("cuda: programs run, by the host where there is no code") {
  WithMock with;
  Device gpu("cuda");
  Tensor x = random::normal({5, 7});
  Tensor there = x.to(gpu);
  CHECK(there.device() == gpu);
  auto values = [](const Tensor& t) { return t.to_vector<float>(); };
  CHECK(values(there * 2 + 1) == values(x * 2 + 1));
  CHECK(values(softmax(there, Axes(-1))) == values(softmax(x, Axes(-1))));
  CHECK(values(matmul(there, transpose(there))) == values(matmul(x, transpose(x))));
  CHECK(values(sort(there, 1)) == values(sort(x, 1)));
  CHECK(sum(there).item<double>() == sum(x).item<double>());
  CHECK(values(there[1]) == values(x[1]));  // begins off 16 bytes
  CHECK(values(there[1] * 3) == values(x[1] * 3));
  auto f = [](const Tensors& in) {
    auto small = [](const Tensors& v) { return sum(v[0]) < 100; };
    return while_loop(
        small, [](const Tensors& v) { return Tensors{v[0] * 2 + 1}; }, Tensors{in[0]});
  };
  Tensor start = arange(1, 4, 1, float32);
  CHECK(values(compile(f)({start.to(gpu)})[0]) == values(compile(f)({start})[0]));
  auto loss = [](const Tensors& in) { return Tensors{sum(exp(in[0]) * in[0])}; };
  CHECK(values(grad(loss)({there})[0]) == values(grad(loss)({x})[0]));
}

TEST_CASE("cuda: memory is kept, counted and limited") {
  WithMock with;
  Device gpu("cuda");
  cuda::Pool& pool = cuda::gpu_of(gpu).pool;
  CHECK(cuda::Pool::class_of(1) == 512);
  CHECK(cuda::Pool::class_of(513) == 1024);
  CHECK(cuda::Pool::class_of(4097) == 4608);
  CHECK(cuda::Pool::class_of(1000000) % 512 == 0);
  size_t before = memory_use(gpu).active;
  void* at;
  {
    BufferRef block = allocate(5000, gpu);
    at = block->address;
    CHECK(memory_use(gpu).active == before + 5000);
    CHECK_THROWS(block.data());  // it is not the host's
  }
  CHECK(memory_use(gpu).active == before);
  CHECK(memory_use(gpu).cache >= 5000);
  CHECK(allocate(5100, gpu)->address == at);
  CHECK(memory_use(gpu).peak >= before + 5100);
  reset_peak_memory(gpu);
  CHECK(memory_use(gpu).peak == before);
  size_t limit = set_memory_limit(before + 1000, gpu);
  CHECK(contains(error_in([&] { allocate(2000, gpu); }), "cuda:0: not enough memory: 1.95 KiB"));
  set_memory_limit(0, gpu);
  CHECK(memory_use(gpu).limit == limit);
  clear_cache(gpu);
  CHECK(memory_use(gpu).cache == 0);
  CHECK(contains(
      error_in([&] { allocate(mock().total_bytes / 2, gpu), allocate(size_t{1} << 50, gpu); }),
      "not enough memory"));
  CHECK(&pool == &cuda::gpu_of(gpu).pool);
}

TEST_CASE("cuda: numbers travel with the command") {
  WithMock with;
  Device gpu("cuda");
  CHECK(full({}, 7, int8).to(gpu).to(Device()).item<int64_t>() == 7);
  CHECK(full({}, -300, int16).to(gpu).to(Device()).item<int64_t>() == -300);
  CHECK(full({}, 1.5, float32).to(gpu).to(Device()).item<double>() == 1.5);
  CHECK(full({}, 1e300, float64).to(gpu).to(Device()).item<double>() == 1e300);
}

TEST_CASE("cuda: a run without memory says what needs it") {
  WithMock with;
  Device gpu("cuda");
  Tensor x = ones({1000}, float32).to(gpu);
  eval({x});
  set_memory_limit(memory_use(gpu).active + 100, gpu);
  std::string error =
      error_in([&] { compile([](const Tensors& in) { return Tensors{exp(in[0])}; })({x}); });
  set_memory_limit(0, gpu);
  CHECK(contains(error, "cuda:0: not enough memory: 3.91 KiB requested"));
  CHECK(contains(error, "exp"));
}

TEST_CASE("cuda: large copies go through pinned memory in pieces") {
  WithMock with;
  Device gpu("cuda");
  Tensor x = arange(0, 3 << 20, 1, int64);  // 24 MiB
  Tensor back = x.to(gpu).to(Device());
  CHECK(back.to_vector<int64_t>() == x.to_vector<int64_t>());
}

TEST_CASE("cuda: one mark serves work on its heels, and whoever waits has one") {
  WithMock with;
  cuda::Gpu& gpu = cuda::gpu_of(Device("cuda"));
  gpu.wait_for_all();
  auto give = [&] { return gpu.give([](cuda::Stream) {}, [] { return "work"; }); };
  std::vector<uint64_t> numbers;
  for (int i = 0; i < 200; ++i) numbers.push_back(give());
  CHECK(numbers.back() == numbers.front() + 199);
  for (size_t i : {size_t{150}, size_t{197}, size_t{199}}) {
    gpu.wait(numbers[i]);
    CHECK(gpu.done() >= numbers[i]);
    CHECK(gpu.done() <= numbers.back());
  }
  gpu.wait(give());
  CHECK(gpu.done() == numbers.back() + 1);
}

TEST_CASE("cuda: numbers of work pass the end of the word that the GPU writes") {
  WithMock with;
  cuda::forget_gpus();
  cuda::Gpu& gpu = cuda::gpu_of(Device("cuda"));
  BufferRef memory = allocate(64, Device("cuda"));
  auto there = reinterpret_cast<cuda::Address>(memory->address);
  auto give = [&] { return gpu.give([](cuda::Stream) {}, [] { return "work"; }); };
  auto copy = [&](uint64_t used) { return gpu.copy_ahead(there, "of 16 bytes each", 16, used); };
  constexpr uint64_t kEnd = uint64_t{1} << 32, kCopy = cuda::Gpu::kCopyBit;
  CHECK(gpu.done() < kEnd);
  while (gpu.submitted() < kEnd - 2) gpu.wait(give());
  while (copy(0) < (kCopy | (kEnd - 2))) continue;
  cuda::set_mock_busy(true);
  mock().waiting.clear();
  uint64_t last = 0, last_copy = 0;
  std::vector<cuda::Stream> waited;
  for (int i = 0; i < 4; ++i) {  // streams wait for numbers of 32 bits as well
    last = give();
    gpu.join(last_copy = copy(last));
    waited.insert(waited.end(), {gpu.copying, gpu.stream});
  }
  CHECK(mock().waiting == waited);
  CHECK(last == kEnd + 2);
  CHECK(last_copy == (kCopy | last));
  CHECK_FALSE(gpu.is_done(kEnd - 1));
  CHECK_FALSE(gpu.is_done(kCopy | (kEnd - 1)));
  cuda::set_mock_busy(false);
  gpu.wait(last);
  CHECK(gpu.done() == last);
  CHECK(gpu.is_done(last_copy));
}

TEST_CASE("cuda: a thread that waits for work does not wait for one that submits") {
  WithMock with;
  cuda::Gpu& gpu = cuda::gpu_of(Device("cuda"));
  gpu.wait_for_all();
  cuda::set_mock_busy(true);
  auto nothing = [](cuda::Stream) {};
  auto name = [] { return "work"; };
  uint64_t first = gpu.give(nothing, name);
  for (int i = 0; i < 3; ++i) gpu.give(nothing, name);  // one of the four is marked
  std::atomic<bool> submits = false, may_end = false;
  std::thread other([&] {
    auto submit = [&](cuda::Stream) {
      submits = true;
      while (!may_end) std::this_thread::yield();
    };
    gpu.give(submit, name);
  });
  while (!submits) std::this_thread::yield();
  own_stop_point = [] { cuda::set_mock_busy(false); };
  gpu.wait(first);
  own_stop_point = nullptr;
  CHECK(gpu.is_done(first));
  may_end = true;
  other.join();
}

TEST_CASE("cuda: a kernel that fails while one waits is reported, though it writes no word") {
  WithMock with;
  for (bool of_copy : {false, true}) {
    cuda::Gpu& its = cuda::gpu_of(Device("cuda"));
    uint64_t before = its.give([](cuda::Stream) {}, [] { return "before"; });
    its.wait(before);
    BufferRef memory = allocate(size_t{1} << 20, Device("cuda"));
    auto there = reinterpret_cast<cuda::Address>(memory->address);
    std::vector<char> from(size_t{1} << 20);
    cuda::set_mock_busy(true);
    uint64_t number = its.give([](cuda::Stream) {}, [] { return "a kernel that fails"; });
    if (of_copy) number = its.copy_ahead(there, from.data(), from.size(), number);
    own_stop_point = [] { mock().broken = 700; };  // when all is submitted, and one waits
    std::string error = error_in([&] { its.wait(number); });
    own_stop_point = nullptr;
    CHECK(contains(error, "cannot be used any more: a kernel that fails"));
    CHECK(contains(error_in([&] { its.wait(number); }), "a kernel that fails"));
    CHECK(its.is_done(before));
    CHECK_FALSE(its.is_done(number));
    mock().broken = 0;
    cuda::set_mock_busy(false);
    memory.reset();
    cuda::forget_gpus();
    clear_plans();
  }
}

TEST_CASE("cuda: many threads wait for work, each for its own") {
  WithMock with;
  cuda::Gpu& gpu = cuda::gpu_of(Device("cuda"));
  gpu.wait_for_all();
  for (bool fails : {false, true}) {
    cuda::set_mock_busy(true);
    std::vector<uint64_t> numbers;
    for (int i = 0; i < 8; ++i)
      numbers.push_back(gpu.give([](cuda::Stream) {}, [] { return "work"; }));
    std::atomic<int> waiting = 0, done = 0, failed = 0;
    std::vector<std::thread> threads;
    for (uint64_t number : numbers)
      threads.emplace_back([&, number] {
        ++waiting;
        try {
          gpu.wait(number);
          if (gpu.is_done(number)) ++done;
        } catch (const InternalError&) {
          ++failed;
        }
      });
    while (waiting < 8) std::this_thread::yield();
    if (fails) mock().broken = 700;
    if (!fails) cuda::set_mock_busy(false);
    for (std::thread& thread : threads) thread.join();
    CHECK(done == (fails ? 0 : 8));
    CHECK(failed == (fails ? 8 : 0));
  }
  mock().broken = 0;
  cuda::set_mock_busy(false);
  cuda::forget_gpus();
  clear_plans();
}

TEST_CASE("cuda: the user's handlers may copy while a copy waits") {
  WithMock with;
  Device gpu("cuda");
  static cuda::Gpu* its;
  static cuda::Address there;
  static int handled;
  constexpr size_t kBytes = 12 << 20;  // of several pieces
  BufferRef memory = allocate(kBytes, gpu);
  its = &cuda::gpu_of(gpu), there = reinterpret_cast<cuda::Address>(memory->address), handled = 0;
  std::vector<char> from(kBytes, 7), to(kBytes);
  its->copy_in(there, from.data(), kBytes);
  cuda::set_mock_busy(true);
  own_stop_point = [] {
    cuda::set_mock_busy(false);
    char byte = 0;
    if (handled++ == 0) its->copy_out(&byte, there, 1);
    CHECK(byte == 7);
  };
  its->copy_out(to.data(), there, kBytes);
  own_stop_point = nullptr;
  cuda::set_mock_busy(false);
  CHECK(handled == 1);
  CHECK(to == from);
}

TEST_CASE("cuda: a failed kernel is reported with what was under way") {
  WithMock with;
  Device gpu("cuda");
  Tensor x = arange(0, 4, 1, float32).to(gpu);
  eval({x});
  mock().broken = 700;
  std::string error = error_in([&] { (x + 1).to_vector<float>(); });
  mock().broken = 0;
  CHECK(contains(error, "CUDA_ERROR_MOCK"));
  CHECK(contains(error_in([&] { (x + 2).to_vector<float>(); }), "cannot be used any more"));
  cuda::forget_gpus();
  clear_plans();
  CHECK(arange(0, 2, 1, float32).to(gpu).to_vector<float>() == std::vector<float>{0, 1});
}

TEST_CASE("cuda: what a GPU refuses is an error of its own") {
  WithMock with;
  add_mock_kernels();
  cuda::forget_gpus();
  mock().context = cuda::kOutOfMemory;
  CHECK(contains(error_in([] { allocate(1, Device("cuda")); }),
                 "cuda:0: no memory is left on Mock GPU for a context"));
  mock().context = 0;
  mock().broken = 801;
  CHECK(contains(error_in([] { allocate(1, Device("cuda")); }),
                 "cuda: cuStreamWriteValue32 failed: CUDA_ERROR_MOCK: as asked"));
  mock().broken = 0;
  Device gpu("cuda");
  mock().module = cuda::kOutOfMemory;
  PlacedPlan placed{gpu, diamond(9), {}};
  CHECK(contains(error_in([&] { cuda::PlanState(cuda::gpu_of(gpu), placed); }),
                 "cuda:0: no memory for a kernel"));
  mock().module = 218;
  CHECK(contains(error_in([&] { cuda::PlanState(cuda::gpu_of(gpu), placed); }),
                 "the driver refuses a kernel"));
  mock().module = 0;
  cuda::replace_driver(nullptr);
  cuda::forget_gpus();
  CHECK(contains(error_in([&] { allocate(1, gpu); }), "cuda: no NVIDIA driver was found"));
  clear_plans();
}

TEST_CASE("cuda: PTX is assembled where an assembler is found") {
  constexpr std::string_view kEmpty =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n";
  std::string cubin = cuda::assemble(kEmpty, 90);
  if (cuda::assembler_name() == "driver") {
    CHECK(cubin.empty());
    return;
  }
  CHECK(
      cubin.starts_with("\x7f"
                        "ELF"));
  CHECK(contains(error_in([&] { cuda::assemble(".version 8.0\nnonsense", 90); }),
                 "refuses a kernel"));
}

TEST_CASE("cuda: ptxas where the process ignores its children") {
  Folder folder;
  std::string program = folder.path + "/ptxas";
  spill(program, format("#!/bin/sh\n[ -e {}/fails ] && echo no && exit 1\nprintf cubin > $5\n",
                        folder.path));
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  auto* before = std::signal(SIGCHLD, SIG_IGN);
  CHECK(cuda::run_ptxas(program, "k", 90) == "cubin");
  spill(folder.path + "/fails", "");
  CHECK(contains(error_in([&] { cuda::run_ptxas(program, "k", 90); }), "refuses a kernel: no"));
  std::signal(SIGCHLD, before);
  CHECK(contains(error_in([&] { cuda::run_ptxas(program, "k", 90); }), "refuses a kernel: no"));
  std::string tmp = std::filesystem::temp_directory_path();
  setenv("TMPDIR", (folder.path + "/nowhere").c_str(), 1);
  CHECK(cuda::run_ptxas(program, "k", 90).empty());
  setenv("TMPDIR", tmp.c_str(), 1);
}

#if __has_include(<cuda.h>) && __has_include(<cublasLt.h>)
#include <cuda.h>

template <class R, class... A, class S, class... B>
static constexpr bool are_alike(R (*)(A...), S (*)(B...)) {
  if constexpr (sizeof...(A) != sizeof...(B))
    return false;
  else
    return sizeof(R) == sizeof(S) && ((sizeof(A) == sizeof(B)) && ...) &&
           ((std::is_pointer_v<A> == std::is_pointer_v<B>) && ...);
}

TEST_CASE("cuda: declarations are those of cuda.h") {
#define TN_ALIKE(name, params)                                       \
  static_assert(are_alike(std::add_pointer_t<cuda::Result params>(), \
                          static_cast<decltype(&::name)>(nullptr)));
  using cuda::Address, cuda::Context, cuda::DeviceNumber, cuda::EventHandle, cuda::Function,
      cuda::Graph, cuda::GraphExec, cuda::GraphNode, cuda::KernelNode, cuda::MemoryPool,
      cuda::Module, cuda::Result, cuda::Stream;
  TN_DRIVER_FUNCTIONS(TN_ALIKE)
  static_assert(sizeof(KernelNode) == sizeof(CUDA_KERNEL_NODE_PARAMS));
  static_assert(offsetof(KernelNode, params) == offsetof(CUDA_KERNEL_NODE_PARAMS, kernelParams));
  CHECK(cuda::kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuda::kNotReady == CUDA_ERROR_NOT_READY);
  CHECK(cuda::kMultiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  CHECK(cuda::kMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  CHECK(cuda::kMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  CHECK(cuda::kMostSharedBytes == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  CHECK(cuda::kFunctionSharedBytes == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  CHECK(cuda::kPoolReleaseThreshold == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
  CHECK(cuda::kThreadsOfEach == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  CHECK(cuda::kRegistersOfEach == CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  CHECK(cuda::kSharedBytesOfEach == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  CHECK(cuda::kFunctionRegisters == CU_FUNC_ATTRIBUTE_NUM_REGS);
  CHECK(cuda::kFunctionSharedShare == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  CHECK(cuda::kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
  CHECK(cuda::kEventWithTiming == CU_EVENT_DEFAULT);
  CHECK(cuda::kEventNoTiming == CU_EVENT_DISABLE_TIMING);
  CHECK(cuda::kWaitGreaterOrEqual == CU_STREAM_WAIT_VALUE_GEQ);
  CHECK(cuda::kCaptureRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(cuda::kJitErrorLog == CU_JIT_ERROR_LOG_BUFFER);
  CHECK(cuda::kJitErrorLogBytes == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
}
#endif

TEST_CASE("cuda: tiles are small where there are few results") {
  constexpr int kAll[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  auto chosen = [&](int64_t m, int64_t n, int64_t shared_bytes = 228 << 10, int64_t k = 4096,
                    int64_t block = 704, bool is_plain = false) {
    cuda::TiledProduct product{m, n, 1, k, block, {4, 8, 8, 16}, true, is_plain};
    return std::string(cuda::choose_form(kAll, product, 132, shared_bytes).name);
  };
  CHECK(chosen(128, 256) == "16");
  CHECK(chosen(784, 256) == "32");
  CHECK(chosen(100352, 64) == "128x64");
  CHECK(chosen(4096, 4096) == "128x256");
  CHECK(chosen(4096, 4096, 164 << 10) == "128");  // of an A100
  CHECK(chosen(4096, 4096, 100 << 10) == "128x64");
  // Long sums are brought in long pieces, which must not reach over the end of a block.
  CHECK(chosen(128, 256, 228 << 10, 784, 800) == "16deep");
  CHECK(chosen(128, 256, 228 << 10, 1276, 640) == "16deep");
  CHECK(chosen(128, 256, 228 << 10, 10, 32) == "16");
  // Plain matrices whose sums are one block are brought whole, if all tiles fit at once.
  CHECK(chosen(128, 256, 228 << 10, 784, 800, true) == "16whole");
  CHECK(chosen(128, 256, 228 << 10, 10, 32, true) == "16whole");
  CHECK(chosen(256, 784, 228 << 10, 128, 128, true) == "32whole");
  CHECK(chosen(128, 256, 228 << 10, 1276, 640, true) == "16deep");
  CHECK(chosen(256, 784, 48 << 10, 128, 128, true) == "32");
}

TEST_CASE("cuda: what lies side by side is copied 16 bytes at a time") {
  alignas(16) static const float data[4] = {};
  int64_t extent[] = {1, 1, 8, 64}, rows[] = {0, 0, 512, 64}, inner[] = {0, 0, 0, 1};
  int64_t ones[] = {1, 1, 1, 32}, odd[] = {0, 0, 510, 62};
  cuda::TileAxes k{ones, inner};
  CHECK(cuda::way_of(data, 4, {extent, rows}, k, {0}, true, true) == kVectorsAlongK);
  CHECK(cuda::way_of(data, 4, {extent, rows}, k, {0}, true, false) == kAlongK);
  CHECK(cuda::way_of(data, 4, {extent, rows}, k, {6}, true, true) == kAlongK);
  CHECK(cuda::way_of(data + 1, 4, {extent, rows}, k, {0}, true, true) == kAlongK);
  CHECK(cuda::way_of(data, 4, {extent, odd}, k, {0}, true, true) == kAlongK);
  CHECK(cuda::way_of(data, 4, k, {extent, rows}, {0}, true, true) == kVectorsAcross);
  CHECK(cuda::way_of(data, 4, k, {extent, odd}, {0}, true, true) == kAcross);
  CHECK(cuda::way_of(data, 4, {extent, rows}, {extent, rows}, {0}, true, true) == kAcross);
}
