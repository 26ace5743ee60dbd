// Collectives between the threads of a mesh: several under way at once, joined, and abandoned.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <thread>

#include "base/interrupt.h"
#include "workers/thread_transport.h"

using namespace tn;
using namespace tn::workers;

namespace {

/// Runs `work` as each worker of a group, each on a thread. Whether all say that it went well.
bool all_of_group(ThreadGroup& group, const std::function<bool(ThreadTransport&)>& work) {
  std::vector<std::thread> threads;
  std::vector<char> right(static_cast<size_t>(group.size()));
  for (int rank = 0; rank < group.size(); ++rank)
    threads.emplace_back([&, rank] {
      ThreadTransport own(group, rank);
      right[static_cast<size_t>(rank)] = work(own);
    });
  for (std::thread& thread : threads) thread.join();
  return std::ranges::all_of(right, [](char ok) { return ok != 0; });
}

float value(int rank, size_t i) {
  return static_cast<float>((i * 37 + static_cast<size_t>(rank) * 101) % 1009) * 0.37f;
}

/// The order that workers/rank_fold.h promises.
float tree_sum(int first, int last, size_t i) {
  if (last - first == 1) return value(first, i);
  int middle = first + static_cast<int>(std::bit_floor(static_cast<unsigned>(last - first - 1)));
  return tree_sum(first, middle, i) + tree_sum(middle, last, i);
}

std::vector<float> operand(int rank, size_t count, size_t offset = 0) {
  std::vector<float> x(count);
  for (size_t i = 0; i < count; ++i) x[i] = value(rank, i + offset);
  return x;
}

bool is_sum(const std::vector<float>& x, int size, size_t offset = 0) {
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i] != tree_sum(0, size, i + offset)) return false;
  return true;
}

CollectiveCall sum_of(std::vector<float>& x, std::vector<float>& y) {
  return {.kind = Collective::all_reduce,
          .element = Element::f32,
          .count = static_cast<int64_t>(x.size()),
          .in = x.data(),
          .out = y.data()};
}

}  // namespace

TEST_CASE("threads: sums in place and into other memory have one order") {
  for (int size : {1, 2, 3, 8})
    for (size_t count : {0, 1, 63, 1000, 30'001, 2'200'000}) {
      if (count > 1'000'000 && size > 2) continue;
      CAPTURE(size);
      CAPTURE(count);
      ThreadGroup group(size);
      CHECK(all_of_group(group, [&](ThreadTransport& own) {
        std::vector<float> x = operand(own.rank(), count), y(count);
        own.run(sum_of(x, y));
        own.run(sum_of(x, x));
        return is_sum(y, size) && x == y;
      }));
    }
}

TEST_CASE("threads: several sums are under way at once, small and large ones") {
  for (int size : {2, 3, 8}) {
    ThreadGroup group(size, 1000);  // more than there are cores: no worker spins
    CHECK(all_of_group(group, [&](ThreadTransport& own) {
      bool ok = true;
      for (size_t turn = 0; turn < 50; ++turn) {
        std::vector<float> x[Transport::kMostStarted], gathered(static_cast<size_t>(size));
        uint64_t open[Transport::kMostStarted];
        for (size_t k = 0; k < std::size(x); ++k) {
          x[k] = operand(own.rank(), (k + turn) % 3 ? 10 * (k + 1) : 9'000, k);
          open[k] = own.start(sum_of(x[k], x[k]));
          // Others see what was there at the start; one that has a core may be far ahead.
          if (own.rank() == static_cast<int>(k) % size) std::this_thread::yield();
        }
        for (size_t k = 0; k < std::size(x); ++k) {
          own.complete(open[k]);
          ok &= is_sum(x[k], size, k);
        }
        float mine = value(own.rank(), turn);
        own.run({.kind = Collective::all_gather,
                 .element = Element::f32,
                 .count = 1,
                 .in = &mine,
                 .out = gathered.data()});
        for (int k = 0; k < size; ++k) ok &= gathered[static_cast<size_t>(k)] == value(k, turn);
      }
      return ok;
    }));
  }
}

TEST_CASE("threads: joined sums have the bits of single ones") {
  for (size_t last : {5, 20'000})
    for (int size : {1, 2, 3, 8}) {
      ThreadGroup group(size);
      CHECK(all_of_group(group, [&](ThreadTransport& own) {
        std::vector<float> a = operand(own.rank(), 7), b = operand(own.rank(), 301, 7),
                           c = operand(own.rank(), last, 400), out(b.size()), none;
        CallPiece pieces[] = {{a.data(), a.data(), 7},
                              {none.data(), none.data(), 0},
                              {b.data(), out.data(), 301},
                              {c.data(), c.data(), static_cast<int64_t>(last)}};
        own.run({.kind = Collective::all_reduce,
                 .element = Element::f32,
                 .count = 308 + static_cast<int64_t>(last),
                 .pieces = pieces});
        return is_sum(a, size) && is_sum(out, size, 7) && is_sum(c, size, 400);
      }));
    }
}

TEST_CASE("threads: a worker that fails completes what others have begun") {
  for (size_t count : {10, 50'000})
    for (int late : {0, 1, 2}) {
      ThreadGroup group(3);
      std::atomic<int> begun = 0, completed = 0, stopped = 0;
      all_of_group(group, [&](ThreadTransport& own) {
        std::vector<float> x = operand(own.rank(), count), y = operand(own.rank(), count);
        uint64_t first = own.start(sum_of(x, x));
        ++begun;
        while (begun < 3) std::this_thread::yield();
        if (own.rank() == late) {
          own.stop(), own.abandon(first);
          return true;  // its memory is gone
        }
        own.complete(first), completed += is_sum(x, 3);
        try {
          own.run(sum_of(y, y));
        } catch (const Stopped&) {
          ++stopped;
        }
        return true;
      });
      CHECK(stopped == 2);
      CHECK(completed == 2);  // all have begun it
      group.reset();
      CHECK(all_of_group(group, [&](ThreadTransport& own) {
        std::vector<float> x = operand(own.rank(), count);
        own.run(sum_of(x, x));
        return is_sum(x, 3);
      }));
    }
}
