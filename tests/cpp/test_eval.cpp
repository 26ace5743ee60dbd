// Evaluation: eager and lazy give equal bits, long chains, threads, errors.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <future>
#include <thread>

#include "errors.h"
#include "eval/eval.h"
#include "ir/node.h"
#include "run_graph.h"
#include "runtime/memory_use.h"
#include "runtime/threads.h"
#include "tenon/debug.h"
#include "tenon/tenon.h"

using namespace tn;

TEST_CASE("eval: values in and out") {
  Tensor x = array(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(x.rank() == 2);
  CHECK(x.dim(-1) == 3);
  CHECK(x.size() == 6);
  CHECK(x.bytes() == 24);
  CHECK(sum(x).item<double>() == 21);
  CHECK(sum(x, Axes(0)).to_vector<float>() == std::vector<float>{5, 7, 9});
  CHECK(matmul(x, permute_dims(x)).to_vector<float>() == std::vector<float>{14, 32, 32, 77});
  CHECK(Tensor(3).dtype() == int64);
  CHECK(Tensor(3.5).dtype() == float32);
  CHECK(Tensor(7).item<int>() == 7);
  CHECK_THROWS_AS(x.item<float>(), UserError);
  CHECK_THROWS_AS(x.data<double>(), UserError);
}

TEST_CASE("array: as many values as the shape has elements") {
  CHECK(array(std::vector<float>{1, 2, 3, 4}, {2, 2}).to_vector<float>()[3] == 4);
  CHECK(array(std::vector<double>{}, {0, 3}).size() == 0);
  std::vector<float> three{1, 2, 3};
  std::vector<bool> flags{true, false, true};
  for (const Shape& shape : {Shape{2, 2}, Shape{2}, Shape{}, Shape{0}, Shape{int64_t{1} << 40}}) {
    CHECK(contains(error_in([&] { array(three, shape); }), "array: 3 values for the shape"));
    CHECK(contains(error_in([&] { array(flags, shape); }), "array: 3 values for the shape"));
  }
  CHECK(error_in([&] { array(three, {-1, -3}); }) != "");
  CHECK(error_in([&] { array(three, {int64_t{1} << 40, int64_t{1} << 40}); }) != "");
}

TEST_CASE("eval: tensors are lazy until asked") {
  Tensor x = array({1.0f, 2.0f});
  Tensor y = x + 1;
  CHECK_FALSE(y.is_evaluated());
  CHECK(y.graph().find("add") != std::string::npos);
  y.eval();
  CHECK(y.is_evaluated());
}

TEST_CASE("eval: intermediate values that are held survive, others are freed") {
  clear_plans();
  clear_cache();
  int64_t before = active_memory();
  {
    Tensor x = array(std::vector<float>(1 << 18, 1.0f), {1 << 18});
    Tensor held = x + 1;
    Tensor y = sum((held * 2) - 1);
    CHECK(y.item<float>() == 3.0f * (1 << 18));
    CHECK(held.is_evaluated());
    CHECK(active_memory() - before < (int64_t{3} << 20));
  }
  CHECK(active_memory() == before);
}

TEST_CASE("eval: memory of foreign owners is shared and given back") {
  static int released = 0;
  std::vector<float> values = {1, 2, 3};
  released = 0;
  {
    Tensor x = from_memory(values.data(), float32, {3}, &values, [](void*) { ++released; });
    CHECK(x.data() == values.data());
    Tensor y = (x + 1).eval();
    CHECK(y.to_vector<float>() == std::vector<float>{2, 3, 4});
    Tensor view = reshape(x, {3, 1}).eval();
    CHECK(view.data() == values.data());
    x = Tensor();
    CHECK(released == 0);
  }
  CHECK(released == 1);
}

TEST_CASE("eval: a chain of a million ops builds, runs and is freed") {
  int64_t before = active_memory();
  {
    Tensor x = array({0.0f, 1.0f});
    for (int i = 0; i < 1'000'000; ++i) x = x + 1;
    CHECK(x.to_vector<float>() == std::vector<float>{1'000'000, 1'000'001});
  }
  {
    Tensor x = array({0.0f, 1.0f});
    for (int i = 0; i < 1'000'000; ++i) x = x + 1;  // never asked for
  }
  CHECK(active_memory() == before);
}

TEST_CASE("eval: a long chain under a parameter is captured and freed without recursion") {
  Tensor p = make_param(intern(DType::f32, {2}));
  Tensor x = p;
  for (int i = 0; i < 200'000; ++i) x = x + 1;
  Graph graph = capture({&p, 1}, {&x, 1}).graph;
  CHECK(graph.ops.size() >= 200'000);
}

TEST_CASE("eval: wide graphs") {
  Tensor x = array({1.0f, 2.0f});
  Tensors parts;
  for (int i = 0; i < 3000; ++i) parts.push_back(x * i);
  eval(parts);
  for (int i = 0; i < 3000; ++i)
    CHECK(parts[static_cast<size_t>(i)].to_vector<float>()[1] == 2.0f * float(i));
  Tensor all = concat(parts);
  CHECK(all.size() == 6000);
  CHECK(sum(all).item<double>() == doctest::Approx(3.0 * 2999 * 1500));
}

TEST_CASE("eval: shared subexpressions are computed once, doubling does not explode") {
  Tensor x = array({1.0});
  for (int i = 0; i < 60; ++i) x = x + x;
  CHECK(x.item<double>() == std::ldexp(1.0, 60));
}

TEST_CASE("eval: async_eval starts and values wait for it") {
  Tensor x = array(std::vector<float>(1 << 20, 2.0f), {1 << 20});
  Tensor y = tn::sqrt(x * x) + 1, z = sum(y);
  async_eval({y, z});
  CHECK(z.item<float>() == 3.0f * (1 << 20));
  CHECK(y.to_vector<float>()[77] == 3.0f);
  for (int i = 0; i < 200; ++i) async_eval({x + i});
  synchronize();
}

TEST_CASE("eval: threads compute beside each other, and each value once") {
  std::promise<void> started, released;
  std::shared_future<void> release = released.get_future().share();
  std::atomic<int> lines = 0;
  set_print_sink([&](std::string_view) {
    if (lines++ == 0) started.set_value(), release.wait();
  });
  Tensor x = array({1.0f, 2.0f}), y = x + 1;
  std::thread printing([&] { print("{}", {y}); });
  started.get_future().wait();
  CHECK((x * 3).to_vector<float>() == std::vector<float>{3, 6});  // while the other thread runs
  CHECK_FALSE(y.is_evaluated());
  std::thread waiting([&] { CHECK((y * 2).to_vector<float>() == std::vector<float>{4, 6}); });
  for (int i = 0; i < 100; ++i) CHECK((x + i).to_vector<float>()[0] == 1 + i);
  released.set_value();
  waiting.join(), printing.join();
  set_print_sink({});
  CHECK(y.to_vector<float>() == std::vector<float>{2, 3});
  CHECK(lines == 1);
}

TEST_CASE("eval: threads that wait for a value whose computation fails compute it themselves") {
  std::promise<void> started, released;
  std::shared_future<void> release = released.get_future().share();
  std::atomic<int> lines = 0;
  set_print_sink([&](std::string_view) {
    if (lines++ == 0) {
      started.set_value(), release.wait();
      throw std::runtime_error("the first reader is gone");
    }
  });
  Tensor y = array({1.0f, 2.0f}) + 1;
  std::thread printing([&] { CHECK_THROWS_AS(print("{}", {y}), std::exception); });
  started.get_future().wait();
  std::thread waiting([&] { CHECK((y * 2).to_vector<float>() == std::vector<float>{4, 6}); });
  released.set_value();
  waiting.join(), printing.join();
  set_print_sink({});
  CHECK(lines == 1);
}

TEST_CASE("eval: errors leave everything usable") {
  Tensor x = array({1.0f, 2.0f, 3.0f}), y = array({1.0f, 2.0f});
  for (int i = 0; i < 100; ++i) {
    CHECK_THROWS_AS(x + y, UserError);
    CHECK_THROWS_AS(reshape(x, {2, 2}), UserError);
    CHECK_THROWS_AS(sum(x, Axes(4)), UserError);
    CHECK((x + 1).to_vector<float>() == std::vector<float>{2, 3, 4});
  }
  CHECK_THROWS_AS(zeros({int64_t{1} << 30, int64_t{1} << 20}).eval(), UserError);
  CHECK_THROWS_AS(zeros({int64_t{1} << 40, int64_t{1} << 40}).eval(), UserError);
  CHECK((x + 1).to_vector<float>() == std::vector<float>{2, 3, 4});
}

TEST_CASE("eval: errors name the place of the call") {
  Tensor x = array({1.0f, 2.0f, 3.0f}), y = array({1.0f, 2.0f});
  auto place_in = [](auto&& call) {
    try {
      call();
    } catch (const UserError& e) {
      std::string text = e.what();
      size_t at = text.find("test_eval.cpp:");
      return at == text.npos ? -1 : std::stoi(text.substr(at + 14));
    }
    return 0;
  };
  int line = __LINE__;
  CHECK(place_in([&] { x + y; }) == line + 1);
  CHECK(place_in([&] { reshape(x, {2, 2}); }) == line + 2);
  CHECK(place_in([&] { softmax(x, Axes(3)); }) == line + 3);
}

TEST_CASE("eval: what failed for want of memory can be asked for again") {
  Tensor x = array({1.0f});
  Tensor wanted = broadcast_to(x + 1, {1 << 20}) * 2;
  int64_t former = set_memory_limit(1 << 16);
  CHECK_THROWS_AS(wanted.eval(), UserError);
  set_memory_limit(former);
  CHECK(wanted.to_vector<float>()[99] == 4);
}

TEST_CASE("eval: threads record and evaluate at once") {
  Tensor shared = array(std::vector<double>(1000, 1.0), {1000});
  Tensor pending = shared * 3 + 1;
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        Tensor x = pending + t;
        for (int k = 0; k < 5; ++k) x = tn::sqrt(x * x) + k;
        Tensor total = sum(x);
        if (i % 3 == 0) async_eval({x});
        wrong += total.item<double>() != 1000.0 * (14 + t);
        wrong += x.to_vector<double>()[i] != 14.0 + t;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(pending.to_vector<double>()[5] == 4);
}

TEST_CASE("eval: one thread and several give equal bits") {
  TypeRef type = intern(DType::f32, {257, 1031});
  Tensor x = random_tensor(type, 5);
  auto results = [&] {
    return bytes_of(Tensors{sum(tn::exp(x)), sum(x, Axes(0)), sum(x, Axes(1)), softmax(x),
                            var(x, Axes(0)), matmul(x, permute_dims(x)), cumulative_sum(x, 1),
                            sort(x)});
  };
  int threads = num_threads();
  set_num_threads(1);
  auto expected = results();
  for (int count : {2, 3, 4}) {
    set_num_threads(count);
    CHECK(results() == expected);
  }
  set_num_threads(threads);
}

TEST_CASE("eval: indexing as NumPy does it") {
  std::vector<float> values(24);
  for (size_t i = 0; i < 24; ++i) values[i] = static_cast<float>(i);
  Tensor x = array(values, {2, 3, 4});
  CHECK(index(x, {1, -1, 0}).item<float>() == 20);
  CHECK(index(x, {Index(ellipsis), Index::slice({}, {}, -2)}).to_vector<float>()[0] == 3);
  CHECK(index(x, {Index(newaxis), 0}).shape() == Shape{1, 3, 4});
  CHECK(index(x, {array<int64_t>({1, 0, 1})}).shape() == Shape{3, 3, 4});
  CHECK(index(x, {x > 20.0}).to_vector<float>() == std::vector<float>{21, 22, 23});
  CHECK_THROWS_AS(index(x, {2}), UserError);
  CHECK_THROWS_AS(index(x, {0, 0, 0, 0}), UserError);
  Tensor y = index_update(x, {0}, 7.0);
  CHECK(sum(y).item<float>() == 12 * 7 + 210);
  CHECK(sum(index_update(x, {0, 0}, 1.0, Update::add)).item<float>() == 280);
  CHECK(sum(x).item<float>() == 276);
}
