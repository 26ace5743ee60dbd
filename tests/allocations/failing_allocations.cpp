// Fails the n-th allocation of loading, compiling, evaluating and running, for many n: each must
// end in an error of the library about memory, or succeed; then the same must work as before.
//
//     tenon_allocations                        a sample of n
//     TENON_EVERY_ALLOCATION=1 tenon_allocations [SCENARIO]     all of them: hours
//
// Each batch of n runs in a child of fork, so that an abort or a hang of one is found and named,
// and what LLVM leaks when it is interrupted (backend/cpu/llvm_session.h) goes with the child.
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "backend/cpu/codegen/codegen.h"
#include "compiler/graph_cache.h"
#include "eval/eval.h"
#include "runtime/memory_use.h"
#include "runtime/threads.h"
#include "tenon/error.h"
#include "tenon/executable.h"
#include "tenon/tenon.h"

// Allocation --------------------------------------------------------------------------------------

namespace {

constexpr long kNever = -1;
/// Of this thread: how many allocations succeed before one fails.
__thread long left = kNever;
__thread long counted = 0;

bool fails() {
  ++counted;
  if (left == kNever) return false;
  --left;
  return left == kNever;
}

}  // namespace

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t bytes) {
  if (fails()) return errno = ENOMEM, nullptr;
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  if (fails()) return errno = ENOMEM, nullptr;
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
  if (fails()) return errno = ENOMEM, nullptr;
  return __libc_realloc(old, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  if (fails()) return errno = ENOMEM, nullptr;
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** result, size_t alignment, size_t bytes) {
  if (fails()) return ENOMEM;
  *result = __libc_memalign(alignment, bytes);
  return *result ? 0 : ENOMEM;
}
/// Its own allocation cannot fail: the C library ends the process.
int __cxa_thread_atexit_impl(void (*destroy)(void*), void* object, void* library);
int __cxa_thread_atexit(void (*destroy)(void*), void* object, void* library) noexcept {
  long kept = std::exchange(left, kNever);
  int result = __cxa_thread_atexit_impl(destroy, object, library);
  left = kept;
  return result;
}
void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  if (fails()) return errno = ENOMEM, MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
}
}

// Scenarios ---------------------------------------------------------------------------------------

namespace {

using namespace tn;

Tensor ramp(const Shape& shape) {
  return reshape(arange(shape.elements().value()) * 7 % 23 - 11, shape) * 0.05f;
}

std::string bytes_of(const Tensors& tensors) {
  std::string all;
  for (const Tensor& t : tensors)
    all.append(static_cast<const char*>(t.data()), static_cast<size_t>(t.bytes()));
  return all;
}

Tensors network(const Tensors& in) {
  static const Tensor w1 = ramp({8, 16}), w2 = ramp({16, 4});
  return {softmax(matmul(gelu(matmul(in[0], w1)), w2), Axes(-1)), sum(in[0], Axes(0))};
}

Tensors image_network(const Tensors& in) {
  static const Tensor w = ramp({4, 3, 3, 3});
  return {mean(relu(conv2d(in[0], w, nullptr, {1}, {1})), Axes{2, 3})};
}

Tensors ordering(const Tensors& in) {
  Tensor row = reshape(in[0], {-1});
  Tensors loop = flat::while_loop([](const Tensors& c) { return Tensors{sum(abs(c[0])) < 50}; },
                                  [](const Tensors& c) { return Tensors{c[0] * 2 + 1}; }, {row});
  return {sort(row), cumulative_sum(row, Axis(0)), loop[0],
          take(in[0], array<int64_t>({1, 0}), Axis(0))};
}

struct Scenario {
  const char* name;
  bool uses_llvm;
  bool cold;  // the first step of a process is the one that fails
  std::function<void()> prepare;
  std::function<std::string()> step;
};

Executable executable(const Function& f, const Tensors& args) {
  InputInfo in{.shape = {}, .name = "x"};
  for (Dim d : args[0].shape()) in.shape.emplace_back(d.value());
  return compile_ahead(f, {in});
}

void forget() {
  clear_plans();
  clear_graph_cache();
  cpu::clear_kernel_cache();
}

std::vector<Scenario> scenarios(const std::string& folder) {
  auto x = [] { return Tensors{ramp({6, 8})}; };
  auto image = [] { return Tensors{ramp({1, 3, 6, 6})}; };
  std::string file = folder + "/network.tnx", images = folder + "/images.tnx";
  auto compiled = [=] { return bytes_of(executable(network, x())(x())); };
  return {
      {"evaluate", false, false, forget,
       [=] {
         Tensors all = network(x());
         for (const Tensor& t : ordering(x())) all.push_back(t);
         for (const Tensor& t : image_network(image())) all.push_back(t);
         eval(all);
         return bytes_of(all);
       }},
      {"evaluate again", false, false, [] {}, [=] { return bytes_of(network(x())); }},
      {"differentiate", false, false, forget,
       [=] {
         auto loss = [](const Tensors& in) { return Tensors{sum(square(network(in)[0]))}; };
         Tensors all = grad(loss)(x());
         Tensors mapped = vmap([](const Tensors& in) { return Tensors{exp(in[0])}; })(x());
         all.push_back(mapped[0]);
         return bytes_of(all);
       }},
      {"load", false, false, forget,
       [=] {
         return bytes_of(Executable::load(file)(x())) + bytes_of(Executable::load(images)(image()));
       }},
      {"run", false, false, [] {},
       [=] {
         static const Executable f = Executable::load(file);
         return bytes_of(f(x()));
       }},
      {"save", true, false, forget,
       [=] {
         static const Executable f = executable(network, x());
         f.save(folder + "/again.tnx");
         return bytes_of(Executable::load(folder + "/again.tnx")(x()));
       }},
      {"compile", true, false, forget, compiled},
      {"compile images", true, false, forget,
       [=] { return bytes_of(executable(image_network, image())(image())); }},
      {"compile first", true, true, forget, compiled},
  };
}

// Trying ------------------------------------------------------------------------------------------

/// What a child tells, in memory that both see.
struct Report {
  long at, allocations, failed, grown;
  char fault[512];
  size_t bytes;
  char result[1 << 16];
};

const char* fault_of_step(const Scenario& s, const std::string& want, Report& report) {
  try {
    if (s.step() != want) return "another result";
    return nullptr;
  } catch (const UserError& e) {
    ++report.failed;
    if (e.fault() == Fault::memory) return nullptr;
    return std::snprintf(report.fault, sizeof report.fault, "%s", e.what()), report.fault;
  } catch (const std::bad_alloc&) {
    ++report.failed;
    return nullptr;
  } catch (const std::exception& e) {
    return std::snprintf(report.fault, sizeof report.fault, "%s", e.what()), report.fault;
  }
}

long bytes_in_use() {
  struct mallinfo2 info = mallinfo2();
  return static_cast<long>(info.uordblks + info.hblkhd);
}

/// In a child. Returns the exit code.
int try_batch(const Scenario& s, const std::string& want, const std::vector<long>& batch,
              Report& report) {
  constexpr unsigned kMostSeconds = 300;
  alarm(kMostSeconds);
  if (!s.cold) s.step();
  long before = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    report.at = batch[i];
    s.prepare();
    left = batch[i];
    const char* fault = fault_of_step(s, want, report);
    left = kNever;
    if (!fault) {
      s.prepare();
      fault = fault_of_step(s, want, report);
    }
    if (fault) {
      if (fault != report.fault) std::snprintf(report.fault, sizeof report.fault, "%s", fault);
      return 1;
    }
    if (i == batch.size() / 4) before = bytes_in_use();
  }
  if (before) report.grown = std::max(report.grown, bytes_in_use() - before);
  return 0;
}

template <class Body>
int in_child(Body body) {
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

std::vector<long> chosen(long allocations, bool all, size_t count) {
  std::vector<long> n;
  if (all || allocations <= static_cast<long>(count)) {
    for (long i = 0; i < allocations; ++i) n.push_back(i);
    return n;
  }
  std::mt19937_64 random(allocations);  // one in each of `count` intervals
  for (size_t i = 0; i < count; ++i) {
    long begin = allocations * static_cast<long>(i) / static_cast<long>(count);
    long end = allocations * static_cast<long>(i + 1) / static_cast<long>(count);
    n.push_back(begin + static_cast<long>(random() % static_cast<uint64_t>(end - begin)));
  }
  return n;
}

/// In a child: what a step gives, and how often it allocates.
int measure(const Scenario& s, Report& report) {
  if (!s.cold) s.step();
  s.prepare();
  counted = 0;
  std::string result = s.step();
  report.allocations = counted;
  report.bytes = result.size();
  if (result.size() > sizeof report.result) return 1;
  std::memcpy(report.result, result.data(), result.size());
  return 0;
}

/// Whether all is well.
bool check(const Scenario& s, Report& report, bool all) {
  report = {};
  if (int status = in_child([&] { return measure(s, report); }); status != 0)
    return std::printf("%s: fails by itself: status %d\n", s.name, status), false;
  std::string want(report.result, report.bytes);
  // A child that compiles leaks what LLVM was doing, and a first compilation happens once.
  size_t count = s.uses_llvm ? 250 : 2000, of_child = s.cold ? 1 : s.uses_llvm ? 25 : 250;
  std::vector<long> n = chosen(report.allocations, all, count);
  bool well = true;
  for (size_t i = 0; i < n.size() && well; i += of_child) {
    std::vector<long> batch(n.begin() + static_cast<long>(i),
                            n.begin() + static_cast<long>(std::min(n.size(), i + of_child)));
    int status = in_child([&] { return try_batch(s, want, batch, report); });
    well = status == 0;
    if (WIFSIGNALED(status))
      std::printf("%s: allocation %ld: signal %d\n", s.name, report.at, WTERMSIG(status));
    else if (!well)
      std::printf("%s: allocation %ld: %s\n", s.name, report.at, report.fault);
  }
  std::printf("%s: %ld allocations, %zu of them failed, %ld errors, grown by %ld bytes\n", s.name,
              report.allocations, n.size(), report.failed, report.grown);
  constexpr long kMostGrown = 192 << 10;  // nodes come in slabs of 64 KiB
  if (!s.uses_llvm && report.grown > kMostGrown)
    well = (std::printf("%s: memory is lost\n", s.name), false);
  return well;
}

}  // namespace

int main(int count, char** arguments) {
  setenv("TENON_CACHE", "0", 1);
  set_num_threads(1);
  char folder[] = "/tmp/tenon-allocations-XXXXXX";
  if (!mkdtemp(folder)) return 1;
  void* shared =
      mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  auto& told = *new (shared) Report;
  in_child([&] {  // so that this process has not begun to compile
    executable(network, {ramp({6, 8})}).save(std::string(folder) + "/network.tnx");
    executable(image_network, {ramp({1, 3, 6, 6})}).save(std::string(folder) + "/images.tnx");
    return 0;
  });
  bool all = std::getenv("TENON_EVERY_ALLOCATION"), well = true;
  for (const Scenario& s : scenarios(folder))
    if (count < 2 || std::string_view(arguments[1]) == s.name) well &= check(s, told, all);
  std::filesystem::remove_all(folder);
  return well ? 0 : 1;
}
