// Functions of one worker, in C++.
#include <doctest/doctest.h>

#include "sharding/shard.h"
#include "tenon/distributed.h"
#include "tenon/nn.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

std::string error_of(auto&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("shard_map: parts, collectives and gradients") {
  Mesh mesh = make_mesh({{"data", 4}});
  auto centered = [](const Tensor& x) {
    CHECK(x.dim(0) == 2);
    Tensor total = distributed::all_sum(sum(x, {0}), distributed::axis("data"));
    return std::pair(x - total / 8, total);
  };
  auto f = shard_map(centered, mesh, {"data"}, {"data", ShardSpec()});
  Tensor x = reshape(arange(16.0F), {8, 2});
  auto [rows, total] = f(x);
  CHECK(layout(rows) == "f32[8,2] @[data,-]");
  CHECK(layout(total) == "f32[2] @[-]");
  CHECK(rows.to(Device()).to_vector<float>()[0] == -7);
  CHECK(total.to(Device()).to_vector<float>() == std::vector<float>{56, 64});
  Tensor slope = grad([&](const Tensor& v) { return sum(square(f(v).first)); })(x);
  CHECK(slope.to(Device()).to_vector<float>()[0] == -14);
  Tensor batch = vmap([&](const Tensor& v) { return f(v).second; })(stack({x, x * 2}));
  CHECK(batch.to(Device()).to_vector<float>() == std::vector<float>{56, 64, 112, 128});
  auto index =
      shard_map([](const Tensor& v) { return reshape(distributed::axis_index("data"), {1}) + v; },
                mesh, {ShardSpec()}, {"data"});
  CHECK(index(zeros({1}, DType::i32)).to(Device()).to_vector<int32_t>() ==
        std::vector<int32_t>{0, 1, 2, 3});
}

TEST_CASE("workers are counted once somebody asks") {
  worker_stats();
  MeshScope on(make_mesh({{"data", 2}}));
  sum(shard(ones({4, 3}), "data")).eval();
  std::vector<WorkerStats> list = worker_stats();
  REQUIRE(list.size() >= 2);
  CHECK(list[1].worker == 1);
  CHECK(list[1].collectives > 0);
  CHECK(list[1].bytes >= 4);
  CHECK(list[1].running >= list[1].communicating);
}

TEST_CASE("shard_map: a worker runs the function as it is") {
  Graph graph = parse_graph(
      "func @main(%x: f32[8,6]) {\n"
      "  %0 = exp %x\n"
      "  %1 = to_local %0 {mesh=\"data=4\", mesh_axes=\"data\", axes=[0]}\n"
      "  %2 = sum %1 {axis=[0]}\n"
      "  %3 = all_sum %2 {mesh_axis=\"data\", workers=4}\n"
      "  %4 = subtract %1, %3\n"
      "  %5 = from_local %4 {mesh=\"data=4\", mesh_axes=\"data\", axes=[0]}\n"
      "  %6 = sin %5\n"
      "  return %6\n"
      "}\n");
  CHECK(to_text(sharding::shard(graph, parse_mesh("data=4"), {}).local.graph) ==
        "func @main(%x: f32[2,6]) -> f32[2,6] {\n"
        "  %0 = exp %x : f32[2,6]\n"
        "  %1 = sum %0 {axis=[0]} : f32[6]\n"
        "  %2 = all_sum %1 {mesh_axis=\"data\", workers=4} : f32[6]\n"
        "  %3 = subtract %0, %2 : f32[2,6]\n"
        "  %4 = sin %3 : f32[2,6]\n"
        "  return %4\n"
        "}\n");
  CHECK(error_of([&] {
          sharding::shard(graph, parse_mesh("data=2"), {});
        }).starts_with("shard: the graph has collectives of its own: all_sum"));
}

namespace {

struct Counter : nn::Module<Counter> {
  Tensor total = zeros({2});
  bool sums = true, fails = false;

  Tensor forward(const Tensor& x) {
    Tensor own = sum(x, {0});
    total = total + (sums ? distributed::all_sum(own, distributed::axis("data")) : own);
    if (fails) fail_here();
    return x * 2;
  }
  static void fail_here() { reshape(ones({2}), {3}); }
  static void fields(auto& m, auto&& f) { f("total", m.total, nn::buffer); }
};

struct Counters : nn::Module<Counters> {
  Counter first, second;
  Tensor forward(const Tensor& x) { return second(first(x)); }
  static void fields(auto& m, auto&& f) { f("first", m.first), f("second", m.second); }
};

struct Normed : nn::Module<Normed> {
  nn::BatchNorm norm{2};
  Tensor forward(const Tensor& x) { return norm(x); }
  static void fields(auto& m, auto&& f) { f("norm", m.norm); }
};

std::vector<float> on_host(const Tensor& x) { return x.to(Device()).to_vector<float>(); }

}  // namespace

TEST_CASE("shard_map: what the function assigns to modules is carried out") {
  Mesh mesh = make_mesh({{"data", 2}});
  Tensor x = reshape(arange(8.0F), {4, 2});
  Counters model;
  auto f = shard_map([&](const Tensor& v) { return model(v); }, mesh, {"data"}, {"data"});
  for (int i = 1; i <= 2; ++i) {
    CHECK(on_host(f(x))[7] == 28);
    CHECK(on_host(model.first.total) == std::vector<float>{i * 12.0F, i * 16.0F});
    CHECK(on_host(model.second.total) == std::vector<float>{i * 24.0F, i * 32.0F});
  }
  // A module of the function's own, which ends with it, and one that is an argument.
  auto own = shard_map([](const Tensor& v) { return Counter()(v); }, mesh, {"data"}, {"data"});
  CHECK(on_host(own(x))[7] == 14);
  auto given = shard_map([](Counter m, const Tensor& v) { return m(v); }, mesh,
                         {ShardSpec(), "data"}, {"data"});
  CHECK(on_host(given(model.first, x))[7] == 14);
  CHECK(on_host(model.first.total) == std::vector<float>{24, 32});
}

TEST_CASE("shard_map: a module stays as it was where the function fails") {
  Mesh mesh = make_mesh({{"data", 2}});
  Tensor x = reshape(arange(8.0F), {4, 2});
  Counter model;
  auto f = shard_map([&](const Tensor& v) { return model(v); }, mesh, {"data"}, {"data"});
  model.fails = true;
  CHECK(error_of([&] { f(x); }).find("reshape") != std::string::npos);
  CHECK(on_host(model.total) == std::vector<float>{0, 0});
  model.fails = false, model.sums = false;
  CHECK(error_of([&] { f(x); })
            .starts_with("shard_map: the function assigns to total of a module, and the value "
                         "differs by worker along 'data'"));
  CHECK(on_host(model.total) == std::vector<float>{0, 0});
  Normed normed;
  auto g = shard_map([&](const Tensor& v) { return normed(v); }, mesh, {"data"}, {"data"});
  CHECK(
      error_of([&] { g(x); })
          .starts_with("shard_map: the function assigns to norm.running_mean of a module, and the "
                       "value differs by worker"));
  CHECK(on_host(normed.norm.running_mean) == std::vector<float>{0, 0});
  auto alone = shard_map([&](const Tensor& v) { return normed.norm(v); }, mesh, {"data"}, {"data"});
  CHECK(error_of([&] { alone(x); }).starts_with("BatchNorm: training updates its running"));
  CHECK(on_host(normed.norm.running_mean) == std::vector<float>{0, 0});
  normed.eval();
  CHECK(on_host(g(x)).size() == 8);
}

TEST_CASE("shard_map: errors") {
  Mesh mesh = make_mesh({{"data", 2}});
  auto same = [](const Tensor& x) { return x; };
  CHECK(error_of([&] {
          shard_map(same, mesh, {"data", "data"}, {"data"})(ones({4}));
        }).starts_with("shard_map: 2 layouts for 1 arguments"));
  CHECK(error_of([&] {
          shard_map(same, mesh, {"data"}, {})(ones({4}));
        }).starts_with("shard_map: 0 layouts for 1 results"));
  CHECK(error_of([&] {
          shard_map(same, mesh, {stored("data")}, {"data"})(ones({4}));
        }).starts_with("shard_map: tn::stored describes storage"));
  auto printing = [](const Tensor& x) {
    print("{}", {x});
    return x;
  };
  CHECK(error_of([&] {
          shard_map(printing, mesh, {"data"}, {"data"})(ones({4}));
        }).starts_with("shard_map: print is not allowed inside"));
  CHECK(error_of([&] {
          distributed::axis("data");
        }).starts_with("workers: no mesh with an axis 'data' is active here"));
  auto rank = [](const Tensor& x) { return x * distributed::axis("data").rank(); };
  CHECK(error_of([&] {
          shard_map(rank, mesh, {"data"}, {"data"})(ones({4}));
        }).starts_with("workers: the rank along 'data' is not known at trace time"));
}
