// The thread pool: chunks, exceptions, fork, numbers of threads.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "backend/cpu/cpu_level.h"
#include "base/error.h"
#include "runtime/threads.h"

using namespace tn;

namespace {

struct ThreadCount {
  int before = num_threads();
  explicit ThreadCount(int count) { set_num_threads(count); }
  ~ThreadCount() { set_num_threads(before); }
};

int64_t sum_of_chunks(int64_t chunks) {
  std::atomic<int64_t> sum{0};
  parallel_for(chunks, [&](int64_t chunk) { sum += chunk + 1; });
  return sum;
}

}  // namespace

TEST_CASE("cpu level: never above the machine, variants chosen by level") {
  CHECK(cpu_level() <= best_cpu_level());
  CHECK(at_level(CpuLevel::v2, 2, 3, 4) == 2);
  CHECK(at_level(CpuLevel::v3, 2, 3, 4) == 3);
  CHECK(at_level(CpuLevel::v4, 2, 3, 4) == 4);
}

TEST_CASE("threads: every chunk runs once, for any number of threads") {
  for (int count : {1, 2, 3, 8}) {
    ThreadCount threads(count);
    CHECK(num_threads() == count);
    for (int64_t chunks : {0, 1, 2, 3, 7, 64, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(chunks));
      parallel_for(chunks, [&](int64_t chunk) { ++runs[static_cast<size_t>(chunk)]; });
      for (auto& n : runs) CHECK(n == 1);
    }
  }
  CHECK_THROWS_AS(set_num_threads(0), UserError);
}

TEST_CASE("threads: chunks cover a range evenly") {
  CHECK(chunks_for(0, 10) == 0);
  CHECK(chunks_for(1, 10) == 1);
  CHECK(chunks_for(10, 10) == 1);
  CHECK(chunks_for(11, 10) == 2);
  for (int64_t n : {1, 7, 100}) {
    int64_t at = 0;
    for (int64_t c = 0; c < 7; ++c) {
      CHECK(chunk_range(n, 7, c).begin == at);
      at = chunk_range(n, 7, c).end;
    }
    CHECK(at == n);
  }
}

TEST_CASE("threads: many small loops from several threads at once") {
  ThreadCount threads(3);
  std::atomic<int> wrong{0};
  std::vector<std::thread> users;
  for (int u = 0; u < 4; ++u)
    users.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) wrong += sum_of_chunks(i % 9) != (i % 9) * (i % 9 + 1) / 2;
    });
  for (std::thread& user : users) user.join();
  CHECK(wrong == 0);
}

TEST_CASE("threads: parked workers come back") {
  ThreadCount threads(2);
  for (int i = 0; i < 5; ++i) {
    usleep(5000);
    CHECK(sum_of_chunks(100) == 5050);
  }
}

TEST_CASE("threads: a slow thread keeps no more than the chunk it began") {
  ThreadCount threads(3);
  std::thread::id caller = std::this_thread::get_id();
  for (int i = 0; i < 20; ++i) {
    std::atomic<int> others{0};
    std::atomic<bool> slow{false};
    parallel_for(30, [&](int64_t) {
      if (std::this_thread::get_id() != caller && !slow.exchange(true))
        while (others < 29) std::this_thread::yield();
      else
        ++others;
    });
    CHECK(others == (slow ? 29 : 30));
  }
}

TEST_CASE("threads: a nested loop runs inside its chunk") {
  ThreadCount threads(2);
  std::atomic<int64_t> sum{0};
  parallel_for(8, [&](int64_t) { sum += sum_of_chunks(10); });
  CHECK(sum == 8 * 55);
}

TEST_CASE("threads: an exception reaches the caller, and the pool goes on") {
  for (int count : {1, 2, 4}) {
    ThreadCount threads(count);
    for (int64_t bad : {0, 5, 99}) {
      auto loop = [&] {
        parallel_for(100, [&](int64_t chunk) {
          if (chunk == bad) throw std::runtime_error("chunk");
        });
      };
      CHECK_THROWS_WITH_AS(loop(), "chunk", std::runtime_error);
      CHECK(sum_of_chunks(100) == 5050);
    }
  }
}

TEST_CASE("threads: a child of fork makes its own workers") {
  ThreadCount threads(2);
  CHECK(sum_of_chunks(100) == 5050);
  pid_t child = fork();
  if (child == 0) _exit(sum_of_chunks(100) == 5050 ? 0 : 1);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(sum_of_chunks(100) == 5050);
}
