// Runs of plans on CUDA devices, against a mock of the driver.
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cuda_runtime.h"
#include "backend/cuda/plan_state.h"
#include "backend/cuda/prebuilt/prebuilt.h"
#include "compiler/compile_graph.h"
#include "errors.h"
#include "eval/eval.h"
#include "ir/graph.h"
#include "mock_plans.h"
#include "observe/event_recorder.h"
#include "runtime/device.h"
#include "tenon/tenon.h"

using namespace tn;

TEST_CASE("cuda: a plan is a graph from its second run on, and changed where values change") {
  WithMock with;
  add_mock_kernels();
  Device gpu("cuda");
  constexpr int64_t n = 9;
  auto placed = std::make_shared<const PlacedPlan>(PlacedPlan{gpu, diamond(n), {}});
  mock().launches = mock().graph_launches = mock().graphs_built = mock().nodes_set = 0;
  Tensor host = arange(0, n, 1, float32);
  auto bound = [](const Tensor& t) { return bound_of(t.node()->slots()[0]); };
  Tensor x = host.to(gpu), other = (host + 1).to(gpu);
  eval({x, other});
  auto run = [&](const Tensor& in, double s) {
    Scalar scalar(s);
    Bound out;
    Bound given = bound(in);
    cuda::runtime().run(placed, {&given, 1}, &scalar, {&out, 1}, nullptr);
    HostView view(out);
    return std::vector<float>(view.data<float>(), view.data<float>() + n);
  };
  auto expected = [&](float first, float s) {
    std::vector<float> all;
    for (int64_t i = 0; i < n; ++i) {
      float v = first + static_cast<float>(i);
      all.push_back(5 * (s * ((2 * v + 1) + 3 * v)));
    }
    return all;
  };
  CHECK(run(x, 2) == expected(0, 2));
  CHECK(mock().launches == 6);
  CHECK(mock().graphs_built == 0);
  for (int i = 0; i < 5; ++i) CHECK(run(x, 2) == expected(0, 2));
  CHECK(mock().launches == 6);
  CHECK(mock().graph_launches == 5);
  CHECK(mock().graphs_built == 1);
  CHECK(mock().nodes_set == 0);
  for (int i = 0; i < 4; ++i) CHECK(run(x, 3 + i) == expected(0, static_cast<float>(3 + i)));
  CHECK(mock().graphs_built == 1);
  CHECK(mock().nodes_set == 4);  // the number alone
  int set = mock().nodes_set;
  for (int i = 0; i < 8; ++i) {  // operands that alternate have a graph each
    CHECK(run(other, 6) == expected(1, 6));
    CHECK(run(x, 6) == expected(0, 6));
  }
  CHECK(mock().graphs_built == 2);
  CHECK(mock().nodes_set <= set + 1);
}

TEST_CASE("cuda: a plan of one kernel is a graph too, changed for other addresses") {
  WithMock with;
  add_mock_kernels();
  Device gpu("cuda");
  auto plan = diamond(9);
  plan->steps.erase(plan->steps.begin() + 1, plan->steps.end());
  PlacedPlan placed{gpu, plan, {}};
  cuda::Gpu& its = cuda::gpu_of(gpu);
  cuda::PlanState state(its, placed);
  BufferRef memory = allocate(4 * 512, gpu);
  auto* at = static_cast<char*>(memory->address);
  mock().launches = mock().graph_launches = mock().graphs_built = 0;
  for (int run = 0; run < 6; ++run) {
    void* address[] = {at, at + 512 * (1 + run % 3)};
    auto* in = static_cast<float*>(cuda::mock_memory(reinterpret_cast<uint64_t>(at)));
    for (int i = 0; i < 9; ++i) in[i] = static_cast<float>(run);
    state.submit({address, nullptr, 0}, its.stream);
    auto* out = static_cast<float*>(cuda::mock_memory(reinterpret_cast<uint64_t>(address[1])));
    CHECK(*out == 2.F * static_cast<float>(run) + 1);
  }
  CHECK(mock().launches == 1);
  CHECK(mock().graph_launches == 5);
  CHECK(mock().graphs_built == 1);
}

TEST_CASE("cuda: a kernel that has been compiled takes the place of the interpreted one") {
  WithMock with;
  add_mock_kernels();
  struct Later final : cuda::Promotion {
    int runs = 0;
    std::shared_ptr<const cuda::CudaKernel> made;
    void ran() noexcept override {
      ++runs;
      its->give([](cuda::Stream) {}, [] { return "nothing"; });  // the lock is free
    }
    cuda::Gpu* its = nullptr;
    bool is_ready() const override { return made != nullptr; }
    std::shared_ptr<const cuda::CudaKernel> compiled() const override { return made; }
  };
  Device gpu("cuda");
  constexpr int64_t n = 5;
  std::shared_ptr<Plan> plan = diamond(n);
  auto interpreted = std::make_shared<cuda::CudaKernel>(*affine(2, 1, n));
  auto later = std::make_shared<Later>();
  later->its = &cuda::gpu_of(gpu);
  interpreted->promotion = later;
  std::get<KernelStep>(plan->steps[0].what).code = interpreted;
  auto placed = std::make_shared<const PlacedPlan>(PlacedPlan{gpu, plan, {}});
  Tensor x = arange(0, n, 1, float32).to(gpu);
  eval({x});
  auto first = [&] {
    Scalar scalar(1.0);
    Bound out, given = bound_of(x.node()->slots()[0]);
    cuda::runtime().run(placed, {&given, 1}, &scalar, {&out, 1}, nullptr);
    return HostView(out).data<float>()[0];
  };
  for (int run = 1; run <= 3; ++run) {
    CHECK(first() == 5);  // 5 (2 x + 1 + 3 x)
    CHECK(later->runs == run);
  }
  later->made = affine(2, 7, n);
  for (int run = 1; run <= 3; ++run) CHECK(first() == 35);
  CHECK(later->runs == 3);
}

TEST_CASE("cuda: graphs that could not be made or changed are made anew") {
  WithMock with;
  add_mock_kernels();
  Device gpu("cuda");
  PlacedPlan placed{gpu, diamond(9), {}};
  cuda::Gpu& its = cuda::gpu_of(gpu);
  cuda::PlanState state(its, placed);
  BufferRef memory = allocate(5 * 512, gpu);
  auto* at = static_cast<char*>(memory->address);
  void* address[] = {at, at + 512, at + 1024, at + 1536, at + 2048};
  auto run = [&](double s) {
    Scalar scalar(s);
    auto* in = static_cast<float*>(cuda::mock_memory(reinterpret_cast<uint64_t>(at)));
    for (int i = 0; i < 9; ++i) in[i] = 1;
    state.submit({address, &scalar, reinterpret_cast<cuda::Address>(at) + 2304}, its.stream);
    return *static_cast<float*>(cuda::mock_memory(reinterpret_cast<uint64_t>(address[4])));
  };
  CHECK(run(1) == 30);
  mock().instantiate = cuda::kOutOfMemory;
  CHECK_THROWS(run(1));
  mock().instantiate = 0;
  CHECK(run(1) == 30);
  CHECK(run(2) == 60);
  mock().set_params = 1, mock().instantiate = cuda::kOutOfMemory;
  CHECK_THROWS(run(3));
  mock().set_params = mock().instantiate = 0;
  for (int s : {2, 3, 2, 4}) CHECK(run(s) == 30.F * static_cast<float>(s));
}

TEST_CASE("cuda: a run that fails says whether it has overwritten what it was given") {
  WithMock with;
  add_mock_kernels();
  Device gpu("cuda");
  auto plan = diamond(9);
  plan->donated = {9 * 4};
  plan->blocks[0].input = 0;
  plan->first_overwrite = 4;
  auto placed = std::make_shared<const PlacedPlan>(PlacedPlan{gpu, plan, {}});
  Plan outer;
  outer.inputs = 1, outer.scalars = 1, outer.outputs = plan->outputs;
  auto parts = std::make_shared<Plan::Parts>();
  parts->list.push_back({placed, {0}, {1}, {0}, {36}});
  parts->is_whole = true;
  outer.parts = parts;
  Scalar scalar(2.0);
  Bound out;
  auto fails = [&](size_t first_overwrite) {
    plan->first_overwrite = first_overwrite;
    Tensor host = arange(0, 9, 1, float32);
    eval({host});
    Bound given = copy_to(gpu, bound_of(host.node()->slots()[0]), 36);
    mock().launches_left = 1, mock().instantiate = cuda::kOutOfMemory;
    bool overwritten = false;
    CHECK_THROWS(run(outer, {&given, 1}, &scalar, {&out, 1}, &overwritten));
    mock().launches_left = -1, mock().instantiate = cuda::kSuccess;
    return overwritten;
  };
  CHECK(fails(4));
  CHECK(!fails(plan->steps.size()));
}

TEST_CASE("cuda: those who watch see the steps of a device and copies") {
  WithMock with;
  add_mock_kernels();
  Device gpu("cuda");
  auto placed = std::make_shared<const PlacedPlan>(PlacedPlan{gpu, diamond(9), {}});
  Scalar scalar(2.0);
  Bound out;
  Tensor host = arange(0, 9, 1, float32);
  eval({host});
  StepRecorder recorder;
  Bound given = copy_to(gpu, bound_of(host.node()->slots()[0]), 36);
  for (int i = 0; i < 2; ++i) cuda::runtime().run(placed, {&given, 1}, &scalar, {&out, 1}, nullptr);
  HostView view(out);
  recorder.stop();
  std::vector<std::string> names;
  for (const Event& event : recorder.steps) {
    names.emplace_back(event.name());
    CHECK(event.nanoseconds > 0);
  }
  std::vector<std::string> steps{"u", "v", "w", "t", "copy of t"}, expected{"copy to the device"};
  for (int i = 0; i < 2; ++i) expected.insert(expected.end(), steps.begin(), steps.end());
  expected.emplace_back("copy to the host");
  CHECK(names == expected);
}

TEST_CASE("cuda: a plan that ran on a GPU which is no more runs on the next") {
  WithMock with;
  add_mock_kernels();
  Device gpu("cuda");
  auto placed = std::make_shared<const PlacedPlan>(PlacedPlan{gpu, diamond(9), {}});
  Tensor host = ones({9}, float32).eval();
  auto run = [&] {
    Scalar scalar(2.0);
    Bound out, given = copy_to(gpu, bound_of(host.node()->slots()[0]), 36);
    cuda::runtime().run(placed, {&given, 1}, &scalar, {&out, 1}, nullptr);
    HostView view(out);
    return *view.data<float>();
  };
  CHECK(run() == 60);
  const cuda::Gpu* former = &cuda::gpu_of(gpu);
  auto state = [&] { return static_cast<cuda::PlanState*>(placed->state.get()); };
  CHECK(&state()->gpu() == former);
  cuda::forget_gpus();
  CHECK(run() == 60);
  CHECK(&state()->gpu() == &cuda::gpu_of(gpu));
  CHECK(&cuda::gpu_of(gpu) != former);
}

TEST_CASE("cuda: what may run beside each other is not ordered") {
  WithMock with;
  add_mock_kernels();
  Device gpu("cuda");
  PlacedPlan placed{gpu, diamond(9), {}};
  cuda::PlanState state(cuda::gpu_of(gpu), placed);
  REQUIRE(state.is_device_only());
  std::vector<std::vector<size_t>> after;
  for (const cuda::Item& item : state.items()) after.push_back(item.after);
  // w follows u and v; t overwrites u after w has read it.
  CHECK(after == std::vector<std::vector<size_t>>{{}, {}, {1, 0}, {2}, {3}});
}

TEST_CASE("cuda: products that cuBLASLt may compute wait for each other, others do not") {
  if (cuda::product_ptx().empty()) return;
  WithMock with;
  Device gpu("cuda");
  auto orders = [&](int k, Products products) {
    std::string text = format(
        "func @main(%x: f32[256,{0}], %y: f32[{0},256], %z: f32[{0},256]) {{\n"
        "  %0 = dot %x, %y {{lhs_contract=[1], rhs_contract=[0]}}\n"
        "  %1 = dot %x, %z {{lhs_contract=[1], rhs_contract=[0]}}\n"
        "  return %0, %1\n}}\n",
        k);
    CompileOptions options{.effort = Effort::e1, .target = cuda::target_of(90)};
    options.products = products;
    PlacedPlan placed{gpu, compile(parse_graph(text), options), {}};
    cuda::PlanState state(cuda::gpu_of(gpu), placed);
    REQUIRE(state.items().size() == 2);
    return state.items()[1].after.size();
  };
  CHECK(orders(256, Products::highest) == 0);
  CHECK(orders(1024, Products::highest) == 1);
  CHECK(orders(1024, Products::exact) == 0);
}
