// Collectives over shared memory: threads and processes as workers.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <functional>
#include <numeric>
#include <thread>

#include "base/half.h"
#include "base/text.h"
#include "workers/rank_fold.h"
#include "workers/shared_transport.h"

using namespace tn;
using namespace tn::workers;

namespace {

/// Runs `work` as every worker of a world of threads; rethrows the text of the first error.
std::vector<std::string> with_workers(int size,
                                      const std::function<void(Transport& worker)>& work) {
  auto memory = WorldMemory::make(size);
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      SharedTransport worker(memory, rank);
      try {
        work(worker);
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

void expect_no_errors(const std::vector<std::string>& errors) {
  for (const std::string& error : errors) CHECK(error == "");
}

float value(int rank, int64_t i) {
  return static_cast<float>((i * 37 + rank * 101) % 1009) * 0.37f +
         0.001f * static_cast<float>(rank);
}

std::vector<float> operand(int rank, int64_t count) {
  std::vector<float> x(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) x[static_cast<size_t>(i)] = value(rank, i);
  return x;
}

/// The order that workers/rank_fold.h promises.
float tree_sum(const std::vector<float>& x) {
  if (x.size() == 1) return x[0];
  size_t half = std::bit_floor(x.size() - 1);
  return tree_sum({x.begin(), x.begin() + static_cast<long>(half)}) +
         tree_sum({x.begin() + static_cast<long>(half), x.end()});
}

float expected_sum(int size, int64_t i) {
  std::vector<float> terms;
  for (int rank = 0; rank < size; ++rank) terms.push_back(value(rank, i));
  return tree_sum(terms);
}

}  // namespace

TEST_CASE("workers: sums have one order for any size and number of workers") {
  for (int size : {1, 2, 3, 5, 8})
    for (int64_t count : {0, 1, 1000, 20'000, 300'001}) {
      CAPTURE(size);
      CAPTURE(count);
      expect_no_errors(with_workers(size, [&](Transport& worker) {
        std::vector<float> x = operand(worker.rank(), count), y(x.size());
        CollectiveCall call{.kind = Collective::all_reduce,
                            .element = Element::f32,
                            .count = count,
                            .in = x.data(),
                            .out = y.data()};
        worker.run(call);
        int wrong = 0;
        for (int64_t i = 0; i < count; ++i)
          wrong += y[static_cast<size_t>(i)] != expected_sum(size, i);
        if (wrong) throw std::runtime_error(format("{} sums are wrong", wrong));
      }));
    }
}

TEST_CASE("workers: gather, scatter, exchange and broadcast") {
  for (int size : {1, 2, 3, 8})
    for (int64_t count : {0, 1, 700, 300'000}) {
      CAPTURE(size);
      CAPTURE(count);
      expect_no_errors(with_workers(size, [&](Transport& worker) {
        int rank = worker.rank();
        auto all = static_cast<size_t>(size * count);
        std::vector<float> x = operand(rank, count), gathered(all), pieces(all), y(all), part(x);
        worker.run({.kind = Collective::all_gather,
                    .element = Element::f32,
                    .count = count,
                    .in = x.data(),
                    .out = gathered.data()});
        for (int k = 0; k < size; ++k)
          for (int64_t i = 0; i < count; ++i) {
            auto at = static_cast<size_t>(k * count + i);
            if (gathered[at] != value(k, i)) throw std::runtime_error("all_gather is wrong");
            pieces[at] = value(rank, i) + static_cast<float>(k);  // for worker k
          }
        worker.run({.kind = Collective::all_to_all,
                    .element = Element::f32,
                    .count = count,
                    .in = pieces.data(),
                    .out = y.data()});
        worker.run({.kind = Collective::reduce_scatter,
                    .fold = Fold::max,
                    .element = Element::f32,
                    .count = count,
                    .in = pieces.data(),
                    .out = part.data()});
        for (int64_t i = 0; i < count; ++i) {
          float most = -1;
          for (int k = 0; k < size; ++k) {
            float sent = value(k, i) + static_cast<float>(rank);
            if (y[static_cast<size_t>(k * count + i)] != sent)
              throw std::runtime_error("all_to_all is wrong");
            most = std::max(most, sent);
          }
          if (part[static_cast<size_t>(i)] != most)
            throw std::runtime_error("reduce_scatter is wrong");
        }
        worker.run({.kind = Collective::broadcast,
                    .element = Element::f32,
                    .count = count,
                    .peer = size - 1,
                    .in = x.data(),
                    .out = x.data()});
        for (int64_t i = 0; i < count; ++i)
          if (x[static_cast<size_t>(i)] != value(size - 1, i))
            throw std::runtime_error("broadcast is wrong");
      }));
    }
}

TEST_CASE("workers: narrow types are folded in f32 and rounded once") {
  std::vector<uint16_t> ones(3, float_to_bfloat16(1)), small(3, float_to_bfloat16(0.00390625f));
  std::vector<const void*> in = {ones.data(), small.data(), small.data()};
  std::vector<uint16_t> out(3);
  fold(Fold::sum, Element::bf16, in, out.data(), 3);
  CHECK(bfloat16_to_float(out[1]) == 1.0078125f);  // 1 if it were rounded after each addition
}

TEST_CASE("workers: messages between two workers") {
  for (int64_t count : {0, 5, 40'000})
    expect_no_errors(with_workers(3, [&](Transport& worker) {
      int next = (worker.rank() + 1) % 3, before = (worker.rank() + 2) % 3;
      for (int turn = 0; turn < 3; ++turn) {
        std::vector<float> x = operand(worker.rank(), count), y(x.size());
        CollectiveCall call{.element = Element::f32, .count = count};
        call.in = x.data(), call.out = y.data();
        auto send = [&] { call.peer = next, worker.send(call); };
        auto receive = [&] { call.peer = before, worker.receive(call); };
        if (worker.rank() == 0)
          send(), receive();
        else
          receive(), send();
        for (int64_t i = 0; i < count; ++i)
          if (y[static_cast<size_t>(i)] != value(before, i))
            throw std::runtime_error("a message is wrong");
      }
    }));
}

TEST_CASE("workers: calls that differ are reported by every worker") {
  auto errors = with_workers(3, [](Transport& worker) {
    std::vector<float> x(10), y(10);
    CollectiveCall call{.kind = Collective::all_reduce,
                        .element = Element::f32,
                        .count = worker.rank() == 1 ? 9 : 10,
                        .in = x.data(),
                        .out = y.data(),
                        .place = "train.py:31"};
    worker.run({});  // a barrier
    worker.run(call);
  });
  for (const std::string& error : errors) {
    CHECK(error.find("workers disagree: worker ") == 0);
    CHECK(error.find("all_reduce #2 of 9 elements of type float32 (train.py:31)") != error.npos);
    CHECK(error.find("all_reduce #2 of 10 elements of type float32 (train.py:31)") != error.npos);
  }
}

TEST_CASE("workers: tensors of different shapes are reported, whatever their counts") {
  auto errors = with_workers(2, [](Transport& worker) {
    std::vector<float> x(6), y(6);
    CollectiveCall call{.kind = Collective::all_reduce,
                        .element = Element::f32,
                        .count = 6,
                        .in = x.data(),
                        .out = y.data()};
    call.shape = worker.rank() ? CallShape{2, {2, 3}} : CallShape{1, {6}};
    worker.run(call);
  });
  for (const std::string& error : errors)
    CHECK(
        error.starts_with("workers disagree: worker 0 calls all_reduce #1 of float32[6], worker "
                          "1 calls all_reduce #1 of float32[2, 3]. All workers must"));
}

TEST_CASE("workers: their number is limited") {
  CHECK_THROWS_WITH(WorldMemory::make(0),
                    "workers: the number of workers must be between 1 and 256: 0");
}

TEST_CASE("workers: an error of one ends the calls of all") {
  auto errors = with_workers(3, [](Transport& worker) {
    worker.run({});
    if (worker.rank() == 2) {
      CollectiveCall call{.element = Element::f32, .count = 3, .peer = 0};
      float x[3] = {};
      call.in = x;
      worker.send(call);
      return;
    }
    CollectiveCall call{.element = Element::f32, .count = 2, .peer = 2};
    float y[2];
    call.out = y;
    if (worker.rank() == 0)
      worker.receive(call);
    else
      worker.run({});
  });
  CHECK(errors[2] == "");
  CHECK(errors[0] ==
        "workers disagree: worker 2 sends 3 elements of type float32, worker 0 expects 2 elements "
        "of type float32");
  CHECK(errors[1] == errors[0]);
}
