// Code of the own kernels of GPUs: when it is assembled, and how often.
#include <doctest/doctest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "backend/cuda/cuda_runtime.h"
#include "backend/cuda/mock/mock_driver.h"
#include "backend/cuda/own_kernels.h"
#include "backend/cuda/prebuilt/prebuilt.h"
#include "base/error.h"
#include "eval/eval.h"
#include "runtime/device.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

/// An assembler that leaves PTX as it is, and a GPU whose kernels do nothing. What is assembled
/// stays for the process, so each test has a compute capability of its own.
struct WithAssembler {
  explicit WithAssembler(int arch) {
    cuda::replace_driver(&cuda::mock_driver());
    cuda::forget_gpus();
    cuda::mock().major = arch / 10, cuda::mock().minor = arch % 10;
    kernels_before = cuda::mock().kernels;
    for (const char* name : {"sort_tiles_32", "sort_tiles_64", "running_rows_f32"})
      cuda::mock().kernels[name] = {0, [](const uint64_t*, int64_t, int64_t) {}, true};
    clear_plans();
    times.clear(), refused = "", inside = most_inside = 0, together = 1;
    cuda::assemble_own = assemble;
    set_num_threads(4);
  }
  ~WithAssembler() {
    set_num_threads(threads_before);
    cuda::assemble_own = before;
    cuda::mock().kernels = kernels_before;
    cuda::mock().major = cuda::mock().minor = 0;
    cuda::forget_gpus();
    cuda::replace_driver(nullptr);
    clear_plans();
  }

  /// Returns when as many as `together` have been under way at once.
  static std::string assemble(std::string_view ptx, int) {
    constexpr std::string_view kBegin = ".entry ";
    size_t at = ptx.find(kBegin) + kBegin.size();
    std::string name(ptx.substr(at, ptx.find('(', at) - at));
    std::unique_lock lock(mutex);
    ++times[name];
    if (name == refused) throw_internal("refused: " + name);
    most_inside = std::max(most_inside, ++inside);
    changed.notify_all();
    changed.wait_for(lock, std::chrono::minutes(1), [] { return most_inside >= together; });
    --inside;
    return std::string(ptx);
  }

  std::map<std::string, cuda::MockKernel> kernels_before;
  std::string (*before)(std::string_view, int) = cuda::assemble_own;
  int threads_before = num_threads();
  static inline std::mutex mutex;
  static inline std::condition_variable changed;
  static inline std::map<std::string, int> times;  // by name
  static inline std::string refused;
  static inline int inside = 0, most_inside = 0, together = 1;
};

using Times = std::map<std::string, int>;

/// A plan of four calls that launch three different kernels.
auto sorts_and_sums(int64_t rows) {
  Tensor x = ones({rows, 8}).to(Device("cuda")), y = ones({rows, 8}, float64).to(Device("cuda"));
  eval({x, y});
  return [=] { eval({sort(x, 1), sort(x, 0), sort(y, 1), cumsum(x, 1)}); };
}

bool is_built() {
  if (!cuda::sort_ptx().empty()) return true;
  MESSAGE("skipped: this build has no device code");
  return false;
}

}  // namespace

TEST_CASE("cuda own code: kernels of a plan are assembled at the same time, each once") {
  if (!is_built()) return;
  WithAssembler with(120);
  WithAssembler::together = 3;
  auto run = sorts_and_sums(4);
  run();
  CHECK(WithAssembler::most_inside == 3);
  Times once = {{"running_rows_f32", 1}, {"sort_tiles_32", 1}, {"sort_tiles_64", 1}};
  CHECK(WithAssembler::times == once);
  run();
  sorts_and_sums(5)();  // another plan
  CHECK(WithAssembler::times == once);
}

TEST_CASE("cuda own code: what the assembler refuses fails the run, and is tried again") {
  if (!is_built()) return;
  WithAssembler with(86);
  WithAssembler::refused = "sort_tiles_64";
  auto run = sorts_and_sums(4);
  CHECK_THROWS_WITH_AS(run(), doctest::Contains("refused: sort_tiles_64"), InternalError);
  WithAssembler::refused = "";
  run();
  Times want = {{"running_rows_f32", 1}, {"sort_tiles_32", 1}, {"sort_tiles_64", 2}};
  CHECK(WithAssembler::times == want);
}

TEST_CASE("cuda own code: two threads that need one kernel assemble it once") {
  if (!is_built()) return;
  WithAssembler with(89);
  auto first = sorts_and_sums(4), second = sorts_and_sums(5);
  std::thread other(first);
  second();
  other.join();
  for (const auto& [name, times] : WithAssembler::times) {
    CAPTURE(name);
    CHECK(times == 1);
  }
  CHECK(WithAssembler::times.size() == 3);
}
