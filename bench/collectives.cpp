// Sums over workers. all_reduce: threads of a mesh. all_reduce_shared: processes of `tenon launch`,
// through shared memory, here as threads. Where mpirun starts this program (bench/collectives.py),
// between machines, beside MPI's own.
// The benchmark library divides the times of rows with threads by these: times 8, a sum of 8.
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "workers/launch_environment.h"
#include "workers/machines_transport.h"
#include "workers/shared_transport.h"
#include "workers/thread_transport.h"

using namespace tn;
using namespace tn::workers;

static std::shared_ptr<WorldMemory> memory;

static CollectiveCall sum_of(std::vector<float>& x, std::vector<float>& y) {
  return {.kind = Collective::all_reduce,
          .element = Element::f32,
          .count = static_cast<int64_t>(x.size()),
          .in = x.data(),
          .out = y.data()};
}

static std::unique_ptr<ThreadGroup> threads;

static void sum_again(benchmark::State& state, Transport& worker, bool in_place) {
  std::vector<float> x(static_cast<size_t>(state.range(0) / 4)), y(x.size());
  CollectiveCall call = sum_of(x, in_place ? x : y);
  for (auto _ : state) worker.run(call);
  benchmark::DoNotOptimize(y.data());
}

static void all_reduce(benchmark::State& state) {
  ThreadTransport worker(*threads, state.thread_index());
  sum_again(state, worker, false);
}
static void all_reduce_in_place(benchmark::State& state) {
  ThreadTransport worker(*threads, state.thread_index());
  sum_again(state, worker, true);
}
static void all_reduce_shared(benchmark::State& state) {
  SharedTransport worker(memory, state.thread_index());
  sum_again(state, worker, false);
}

// The sum of every process that mpirun started, by Tenon or by the library. A process does one of
// the two: MPI can be initialized once.
static void (*sum)(std::vector<float>& x, std::vector<float>& y) = nullptr;

static void sum_by_tenon(std::vector<float>& x, std::vector<float>& y) {
  static std::unique_ptr<Transport> world = open_machines(find_launch());
  world->run(sum_of(x, y));
}

static void sum_by_library(std::vector<float>& x, std::vector<float>& y) {
  using Handle = MpiLibrary::Handle;
  using Allreduce = int (*)(const void*, void*, int, Handle, Handle, Handle);
  static std::unique_ptr<MpiLibrary> mpi = MpiLibrary::load(find_launch().libraries);
  static auto call = reinterpret_cast<Allreduce>(dlsym(RTLD_DEFAULT, "MPI_Allreduce"));
  static bool is_open_mpi = dlsym(RTLD_DEFAULT, "ompi_mpi_float");
  static Handle type =
      is_open_mpi ? reinterpret_cast<Handle>(dlsym(RTLD_DEFAULT, "ompi_mpi_float")) : 0x4c00040a;
  static Handle add =
      is_open_mpi ? reinterpret_cast<Handle>(dlsym(RTLD_DEFAULT, "ompi_mpi_op_sum")) : 0x58000003;
  static int provided = -1;
  if (provided < 0) {
    mpi->init_thread(nullptr, nullptr, 0, &provided);
    std::atexit([] { mpi->finalize(); });
  }
  call(x.data(), y.data(), static_cast<int>(x.size()), type, add, mpi->world);
}

static void sum_of_processes(benchmark::State& state) {
  std::vector<float> x(static_cast<size_t>(state.range(0) / 4), 1.5f), y(x.size());
  sum(x, y);
  for (auto _ : state) sum(x, y);
  benchmark::DoNotOptimize(y.data());
}

static const bool registered = [] {
  if (const char* by = std::getenv("BENCH_SUM_BY")) {
    sum = std::string_view(by) == "tenon" ? sum_by_tenon : sum_by_library;
    for (int64_t bytes : {4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20})
      benchmark::RegisterBenchmark("sum_of_processes", sum_of_processes)
          ->ArgName("bytes")
          ->Arg(bytes)
          // Equal on all processes, and long enough for the system to move them to cores.
          ->Iterations(std::clamp<int64_t>((1 << 30) / bytes, 64, 20'000))
          ->UseRealTime();
  }
  constexpr std::pair<const char*, void (*)(benchmark::State&)> kSums[] = {
      {"all_reduce", all_reduce},
      {"all_reduce_in_place", all_reduce_in_place},
      {"all_reduce_shared", all_reduce_shared}};
  for (auto [name, run] : kSums)
    for (int workers : {2, 4, 8}) {
      if (workers > static_cast<int>(std::thread::hardware_concurrency())) continue;
      benchmark::RegisterBenchmark(name, run)
          ->Setup([](const benchmark::State& state) {
            memory = WorldMemory::make(state.threads());
            threads = std::make_unique<ThreadGroup>(state.threads());
          })
          ->ArgName("bytes")
          ->Arg(4 << 10)
          ->Arg(4 << 20)
          ->Arg(64 << 20)
          ->Threads(workers)
          ->UseRealTime();
    }
  return true;
}();
