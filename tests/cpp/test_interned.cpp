// Interned types, attributes and bodies that are counted: they live as long as something refers to
// them.
#include <doctest/doctest.h>

#include <thread>

#include "compiler/compile_graph.h"
#include "eval/eval.h"
#include "ir/graph.h"
#include "ir/interned.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

/// From here on everything is counted.
struct NoneLasts {
  size_t before = set_lasting_count(0);
  ~NoneLasts() { set_lasting_count(before); }
};

/// A size that no other test has.
int64_t next_size() {
  static int64_t size = 1'000'000;
  return ++size;
}

}  // namespace

// The type of a temporary may go with it, and so may its shape.
static_assert(std::is_same_v<decltype(std::declval<Tensor>().shape()), Shape>);
static_assert(std::is_same_v<decltype(std::declval<const Tensor&>().shape()), const Shape&>);

TEST_CASE("interned: a type goes with the last tensor of it") {
  NoneLasts none;
  int64_t n = next_size();
  size_t before = count_types();
  {
    Tensor x = zeros({n, 2}), y = x;
    std::vector<Tensor> more;  // than what compilations in the background may give back meanwhile
    for (int i = 0; i < 1000; ++i) more.push_back(zeros({next_size()}));
    CHECK(count_types() > before);
    TypeRef type = type_of(x);
    x = {};
    CHECK(type_of(y) == type);
    CHECK(type_of(zeros({n, 2})) == type);
    CHECK_FALSE(is_lasting(type));
  }
  // The last entries of the tables of a thread hold some.
  for (int i = 0; i < 4000; ++i) zeros({next_size()});
  CHECK(count_types() < before + 2000);
}

TEST_CASE("interned: scopes hold what they saw, and what was never in one lasts") {
  NoneLasts none;
  size_t before = count_types();
  {
    InternScope scope;
    TypeRef a = intern(DType::f32, {next_size()});
    CHECK(intern(a->dtype, a->shape) == a);
    {
      RecordScope inner;  // the same
      intern(DType::f32, {next_size()});
    }
    CHECK(count_types() == before + 2);
  }
  CHECK(count_types() == before);
  TypeRef kept = intern(DType::f32, {next_size()});
  CHECK(is_lasting(kept));
  {
    InternScope scope;
    LastingScope lasting;
    CHECK(is_lasting(intern(DType::f32, {next_size()})));
    RecordScope inner;
    CHECK(is_lasting(intern(DType::f32, {next_size()})));
  }
  CHECK(count_types() == before + 3);
  InternScope scope;
  CHECK(is_lasting(intern(DType::f64, {})));  // of numbers: there are few
  CHECK(is_lasting(intern(DType::f32, {Dim::symbol("rows")})));
}

TEST_CASE("interned: what a scope held may be owned by what was made in it") {
  NoneLasts none;
  size_t before = count_types();
  std::shared_ptr<const int> owner;
  TypeRef type;
  {
    InternScope scope;
    type = intern(DType::f32, {next_size()});
    owner = std::move(scope.held).owned_by(std::make_shared<const int>(3));
  }
  CHECK(*owner == 3);
  CHECK(count_types() == before + 1);
  CHECK(type->elements > 1'000'000);
  owner.reset();
  CHECK(count_types() == before);
}

TEST_CASE("interned: plans keep the types that they refer to") {
  NoneLasts none;
  int64_t n = next_size();
  std::shared_ptr<const Plan> plan;
  {
    InternScope scope;
    Tensor y = softmax(ones({n, 2})) + 1;
    plan = compile(capture({}, {&y, 1}).graph, {});
  }
  for (int i = 0; i < 3000; ++i) zeros({next_size()});
  CHECK(plan->outputs.size() == 1);
}

TEST_CASE("interned: a body goes with the last node of it, and what it refers to goes with it") {
  NoneLasts none;
  size_t types = count_types(), attrs = count_attrs(), bodies = count_bodies();
  std::thread([&] {  // whose tables end with it
    Tensor x = ones({3, next_size()});
    auto step = [](const Tensors& c, const Tensors& xs) -> flat::ScanResult {
      return {{c[0] + sum(xs[0], Axes(0))}, {}};
    };
    auto total = [&](const Tensors& in) { return flat::scan(step, {zeros({})}, {in[0]}).carry; };
    Tensor y = grad(total)({x})[0];
    CHECK(count_bodies() > bodies);
    CHECK(y.shape() == x.shape());
  })
      .join();
  CHECK(count_bodies() == bodies);
  CHECK(count_types() == types);
  CHECK(count_attrs() == attrs);
}

TEST_CASE("interned: threads hold and let go of the same types") {
  NoneLasts none;
  int64_t n = next_size();
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k)
    threads.emplace_back([=] {
      for (int i = 0; i < 3000; ++i) {
        Tensor x = ones({1, n + i % 3});
        CHECK(reshape(exp(x), {n + i % 3}).dim(0) == n + i % 3);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("interned: values are right when every shape is new") {
  NoneLasts none;
  for (int64_t n = 1; n < 400; ++n) {
    Tensor x = arange(n, {}, 1, DType::f32);
    Tensor y = sum(softmax(reshape(x, {1, n})), Axes(1)) + x;
    eval({y});
    REQUIRE(y.shape() == Shape{n});
    REQUIRE(y.to_vector<float>().back() == doctest::Approx(static_cast<double>(n)));
    auto f = [](const Tensors& in) -> Tensors { return {sum(in[0] * in[0])}; };
    Tensor g = grad(f)({x})[0];
    REQUIRE(g.to_vector<float>().back() == doctest::Approx(2 * static_cast<double>(n - 1)));
  }
}
