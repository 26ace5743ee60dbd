// Tensors on meshes, from C++: blocks, layouts, and the transport between threads.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "base/interrupt.h"
#include "errors.h"
#include "tenon/nn.h"
#include "tenon/optim.h"
#include "tenon/tenon.h"
#include "workers/thread_transport.h"

namespace tn {

namespace {

std::vector<float> values(const Tensor& x) { return x.to(Device()).to_vector<float>(); }

using workers::Collective;
using workers::CollectiveCall;
using workers::ThreadGroup;
using workers::ThreadTransport;

/// Runs `work` as each worker of a group, each on a thread.
void together(ThreadGroup& group, FunctionRef<void(ThreadTransport&)> work) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < group.size(); ++rank)
    threads.emplace_back([&, rank] {
      ThreadTransport own(group, rank);
      work(own);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("mesh: threads exchange what collectives say") {
  for (int size : {1, 2, 3, 8})
    for (int64_t count : {1, 5, 30'000}) {  // each worker folds all of it, or a part
      ThreadGroup group(size);
      std::vector<char> right(static_cast<size_t>(size));
      together(group, [&](ThreadTransport& own) {
        auto n = static_cast<size_t>(count), all = n * static_cast<size_t>(size);
        std::vector<float> in(all), out(all);
        std::iota(in.begin(), in.end(), static_cast<float>(own.rank()));
        CollectiveCall call{
            .element = Element::f32, .count = count, .in = in.data(), .out = out.data()};
        bool ok = true;
        auto run = [&](Collective kind) { call.kind = kind, own.run(call); };
        float ranks = static_cast<float>(size * (size - 1)) / 2;
        run(Collective::all_reduce);
        for (size_t i = 0; i < n; ++i)
          ok &= out[i] == ranks + static_cast<float>(size) * static_cast<float>(i);
        run(Collective::all_gather);
        auto of_place = [&](size_t i) { return i / n + i % n; };
        for (size_t i = 0; i < all; ++i) ok &= out[i] == static_cast<float>(of_place(i));
        run(Collective::all_to_all);
        for (size_t i = 0; i < all; ++i)
          ok &= out[i] == static_cast<float>(of_place(i) + static_cast<size_t>(own.rank()) * n);
        run(Collective::reduce_scatter);
        for (size_t i = 0; i < n; ++i) {
          auto at = static_cast<float>(i + static_cast<size_t>(own.rank()) * n);
          ok &= out[i] == ranks + static_cast<float>(size) * at;
        }
        call.peer = size - 1;
        run(Collective::broadcast);
        for (size_t i = 0; i < n; ++i)
          ok &= out[i] == static_cast<float>(i) + static_cast<float>(size - 1);
        run(Collective::barrier);
        right[static_cast<size_t>(own.rank())] = ok;
      });
      CHECK(std::ranges::all_of(right, [](char ok) { return ok != 0; }));
    }
}

TEST_CASE("mesh: a worker that stops makes the others stop") {
  ThreadGroup group(3);
  std::atomic<int> stopped = 0;
  together(group, [&](ThreadTransport& own) {
    if (own.rank() == 1) return group.stop();
    try {
      own.run({});
    } catch (const Stopped&) {
      ++stopped;
    }
  });
  CHECK(stopped == 2);
  group.reset();
  together(group, [&](ThreadTransport& own) { own.run({}); });
}

TEST_CASE("mesh: a call that has begun is completed before a stop") {
  ThreadGroup group(2);
  std::atomic<bool> is_done = false, has_left = false, left_early = false;
  std::atomic<int> stopped = 0;
  together(group, [&](ThreadTransport& own) {
    CollectiveCall call;
    group.together(own.rank(), call, [&] {
      if (own.rank() == 0) return is_done.store(true);
      while (!is_done) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      group.stop();  // by a worker of another group
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      left_early = has_left.load();
    });
    has_left = true;
    try {
      own.run({});
    } catch (const Stopped&) {
      ++stopped;
    }
  });
  CHECK(!left_early);
  CHECK(stopped == 2);
}

TEST_CASE("mesh: a stop lets all workers of a group begin a call, or none") {
  for (int round = 0; round < 60; ++round) {
    ThreadGroup group(3);
    std::atomic<int> begun = 0;
    std::thread other([&] {
      for (int i = 0; i < round % 12; ++i) std::this_thread::yield();
      group.stop();
    });
    together(group, [&](ThreadTransport& own) {
      CollectiveCall call;
      try {
        for (;;) group.together(own.rank(), call, [&] { ++begun; });
      } catch (const Stopped&) {  // by the other thread
      }
    });
    other.join();
    CHECK(begun % 3 == 0);
  }
}

TEST_CASE("mesh: work that fails leaves no worker behind") {
  ThreadGroup group(2);
  std::atomic<int> failed = 0;
  together(group, [&](ThreadTransport& own) {
    CollectiveCall call;
    try {
      group.together(own.rank(), call, [&] {
        if (own.rank() == 0) throw std::bad_alloc();
      });
    } catch (const std::bad_alloc&) {
      ++failed;
    }
    own.run({});
  });
  CHECK(failed == 1);
}

TEST_CASE("mesh: tensors are divided among workers") {
  Mesh mesh = make_mesh({{"data", 2}, {"model", 2}});
  CHECK(to_text(mesh) == "data=2, model=2");
  Tensor a = reshape(arange(32.0F), {8, 4});
  Tensor x = [&] {
    MeshScope on(mesh);
    return shard(a, {"data", "model"});
  }();
  CHECK(layout(x) == "f32[8,4] @[data,model]");
  CHECK(is_mesh(x.device()));
  CHECK(mesh_of(x.device()) == mesh);
  CHECK(values(x) == values(a));
  CHECK(values(blocks(x)[3]) == values(slice(a, {4, 2}, {8, 4})));
  CHECK(values(gather(x + 1)) == values(a + 1));
  CHECK(layout(matmul(x, transpose(x))) == "f32[8,8] @[data,-]");
  CHECK(layout(a) == "f32[8,4] on cpu");
  CHECK(layout(shard(x, stored("data"))) == "f32[8,4] @[data,-] stored(data)");
}

TEST_CASE("mesh: gradients have the same bits on any number of workers") {
  Tensor a = sin(reshape(arange(96.0F), {16, 6})), w = cos(reshape(arange(18.0F), {6, 3}));
  auto loss = [](const Tensor& v, const Tensor& data) {
    return sum(square(tanh(matmul(data, v))));
  };
  std::vector<float> first;
  for (int count : {1, 2, 4, 8}) {
    MeshScope on(make_mesh({{"data", count}}, 8));
    std::vector<float> now = values(grad(loss)(w, shard(a, "data")));
    if (first.empty()) first = now;
    CHECK(now == first);
  }
}

TEST_CASE("mesh: parameters are divided by their names") {
  MeshScope on(make_mesh({{"data", 2}, {"model", 2}}));
  nn::Sequential model(nn::Linear(4, 8), nn::Linear(8, 6));
  nn::shard(model.parameters(), {{"layers.1.weight", {"", "model"}}, {"*", stored("data")}});
  std::vector<std::string> found;
  for (auto& [name, w] : model.parameters()) found.push_back(name + " " + layout(w));
  std::ranges::sort(found);
  CHECK(found == std::vector<std::string>{"layers.0.bias f32[8] @[data] stored(data)",
                                          "layers.0.weight f32[8,4] @[data,-] stored(data)",
                                          "layers.1.bias f32[6] @[data] stored(data)",
                                          "layers.1.weight f32[6,8] @[-,model]"});
  // What fails changes nothing.
  nn::Sequential other(nn::Linear(4, 8), nn::Linear(8, 3));
  CHECK(contains(error_in([&] { nn::shard(other.parameters(), {{"*", "data"}}); }),
                 ": shard: axis 'data' cannot divide dimension 0 into 2 equal parts"));
  for (auto& [name, w] : other.parameters()) CHECK(layout(w).find("data") == std::string::npos);
  // What is loaded is divided as what was there.
  nn::Sequential whole(nn::Linear(4, 8), nn::Linear(8, 6));
  model.load_state_dict(whole.state_dict());
  std::vector<std::string> loaded;
  for (auto& [name, w] : model.parameters()) loaded.push_back(name + " " + layout(w));
  std::ranges::sort(loaded);
  CHECK(loaded == found);
  CHECK(values(model.parameters().begin()->tensor) == values(whole.parameters().begin()->tensor));
  CHECK_THROWS_WITH_AS(nn::shard(model.parameters(), {{"2.*", "data"}}),
                       doctest::Contains("no parameter is called '2.*'"), UserError);
}

TEST_CASE("mesh: the state of an optimizer stays divided when it is loaded") {
  MeshScope on(make_mesh({{"data", 2}}));
  optim::AdamW optimizer(0.01);
  optimizer.load_state_dict({{"moments.w.m", shard(zeros({4}), "data")}});
  optimizer.load_state_dict({{"moments.w.m", array<float>({1, 2, 3, 4}, {4}).to(Device())}});
  Tensor now = optimizer.state_dict().at("moments.w.m");
  CHECK(layout(now) == "f32[4] @[data]");
  CHECK(values(now) == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("mesh: what cannot be a mesh or a layout is refused") {
  CHECK_THROWS_WITH_AS(make_mesh({}), doctest::Contains("1 to 8 axes"), UserError);
  CHECK_THROWS_WITH_AS(make_mesh({{"a", 2}, {"a", 2}}),
                       doctest::Contains("two axes are called 'a'"), UserError);
  CHECK_THROWS_WITH_AS(make_mesh({{"a b", 2}}), doctest::Contains("the name of an axis is a word"),
                       UserError);
  CHECK_THROWS_WITH_AS(make_mesh({{"a", 3}, {"b", -1}}), doctest::Contains("do not fill a mesh"),
                       UserError);
  CHECK_THROWS_WITH_AS(
      make_mesh({{"a", -1}, {"b", -1}}),
      doctest::Contains("at most one axis may have the size -1; 'b' is the second"), UserError);
  CHECK_THROWS_WITH_AS(make_mesh({{"a", 256}, {"b", 256}, {"c", 256}}),
                       doctest::Contains("too many workers: at least 65536, the maximum is 256"),
                       UserError);
  auto by_hand = [](std::vector<MeshAxis> axes) {
    Mesh mesh;
    mesh.axes = std::move(axes);
    return error_in([&] { MeshScope on(mesh); });
  };
  CHECK(contains(by_hand({}), "mesh: a mesh must have 1 to 8 axes, not 0"));
  CHECK(contains(by_hand({{"data", 0, 0}}),
                 "mesh: axis 'data' must have 1 to 256 workers, or -1: 0"));
  CHECK(contains(by_hand({{"data", -4, 1}}),
                 "mesh: axis 'data' must have 1 to 256 workers, or -1: -4"));
  CHECK(contains(by_hand({{"data", 4, 1}}), "mesh: axis 'data' has 4 workers and 1 parts"));
  CHECK(contains(by_hand({{"data", 2, 2}, {"data", 2, 2}}), "two axes are called 'data'"));
  CHECK(contains(by_hand({{"", 2, 2}}), "the name of an axis is a word: ''"));
  CHECK_THROWS_WITH_AS(mesh_of(Device()), doctest::Contains("mesh: cpu is not a mesh"), UserError);
  CHECK_THROWS_WITH_AS(shard(ones({4}), "data"), doctest::Contains("there is no mesh"), UserError);
  CHECK(contains(error_in([] { shard(ones({4}), "data"); }), "tn::MeshScope on(tn::make_mesh("));
}

}  // namespace tn
