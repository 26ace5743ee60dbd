// Executables with code for GPUs, and memory that other libraries share, against a mock of the
// driver.
#include <doctest/doctest.h>

#include <algorithm>

#include "backend/cuda/cuda_library.h"
#include "backend/cuda/cuda_runtime.h"
#include "backend/cuda/lending.h"
#include "backend/cuda/own_kernels.h"
#include "backend/cuda/prebuilt/prebuilt.h"
#include "base/bytes.h"
#include "base/interrupt.h"
#include "compiler/compiler.h"
#include "errors.h"
#include "eval/eval.h"
#include "executable_models.h"
#include "functions/executable.h"
#include "ir/interned.h"
#include "ir/node.h"
#include "mock_plans.h"
#include "runtime/device.h"
#include "tenon/matmul_precision.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

/// A mock of a GPU of some compute capability.
struct WithGpu : WithMock {
  explicit WithGpu(int major) {
    mock().major = major;
    cuda::forget_gpus();
    cuda::assembles_own = false;
  }
  ~WithGpu() {
    mock().major = 0;
    mock().kernels.erase("part0");
    cuda::forget_gpus();
    clear_plans();
    cuda::assembles_own = true;
  }
};

/// As in libtenon_rt.
struct WithoutCompiler {
  const Compiler* kept = std::exchange(compiler, nullptr);
  ~WithoutCompiler() { compiler = kept; }
};

Executable doubled() {
  return compile_ahead([](const Tensors& x) { return Tensors{x[0] * 2 + 1}; },
                       {{.shape = {4}, .name = "x"}}, {.name = "doubled"});
}

std::vector<Target> named(const std::vector<std::string>& names) {
  return targets_named(names, "test");
}

std::shared_ptr<const Program> program_in(const std::string& file, Device device = {}) {
  return Program::read(tnx::File::over(file, "f.tnx"), {.trust = true, .device = device});
}

void add_doubled_kernel() {
  mock().kernels["part0"] = {2, [](const uint64_t* p, int64_t, int64_t) {
                               for (int i = 0; i < 4; ++i)
                                 floats_at(p[1])[i] = 2 * floats_at(p[0])[i] + 1;
                             }};
}

/// Without evaluation, which needs the compiler.
Bound result_on(const Program& program, Device device) {
  RecordScope scope;
  BufferRef host = allocate(4 * sizeof(float));
  for (int i = 0; i < 4; ++i) host.data<float>()[i] = static_cast<float>(i);
  ProgramValue in{on_device(intern(DType::f32, Shape{4}), device),
                  copy_to(device, {host, 0}, host.bytes())};
  return program.run({&in, 1}, {})[0].value;
}
std::vector<float> run_on(const Program& program, Device device) {
  HostView view(result_on(program, device));
  return {view.data<float>(), view.data<float>() + 4};
}

}  // namespace

TEST_CASE("cuda: executables hold code for GPUs, and run it without a compiler") {
  WithGpu gpu(8);
  add_doubled_kernel();
  std::string file = saved(doubled(), named({"native", "sm_80", "ptx_80"}));
  auto sections = tnx::File::over(file);
  CHECK(sections->has(tnx::Kind::plan, "cuda"));
  CHECK(sections->has(tnx::Kind::code, "sm_80"));
  CHECK(sections->has(tnx::Kind::code, "ptx_80"));
  CHECK_FALSE(sections->has(tnx::Kind::code, "library"));  // it calls no library
  WithoutCompiler runtime;
  auto program = program_in(file, Device("cuda"));
  CHECK(program->target == "sm_80");
  CHECK(run_on(*program, Device("cuda")) == std::vector<float>{1, 3, 5, 7});
  CHECK(std::ranges::count(mock().log, "part0") > 0);
  auto on_cpu = program_in(file);
  CHECK(run_on(*on_cpu, Device()) == std::vector<float>{1, 3, 5, 7});
}

TEST_CASE("cuda: machine code serves its generation of GPUs, and text all later ones") {
  WithGpu gpu(9);
  add_doubled_kernel();
  std::string both = saved(doubled(), named({"sm_80", "ptx_80"}));
  std::string one = saved(doubled(), named({"native", "sm_80"}));
  std::string level(name_of(host_target()));
  WithoutCompiler runtime;
  CHECK(program_in(both, Device("cuda"))->target == "ptx_80");
  CHECK(run_on(*program_in(both, Device("cuda")), Device("cuda")) ==
        std::vector<float>{1, 3, 5, 7});
  CHECK(error_in([&] { run_on(*program_in(one, Device("cuda")), Device("cuda")); }) ==
        "load: doubled: there is no code for cuda:0 (sm_90) in the file: it has " + level +
            ", sm_80\n  hint: save it with code for this GPU, save(path, targets=[...]), or for "
            "all, ptx_80");
  CHECK(contains(error_in([&] { program_in(both); }),
                 "load: f.tnx: it has code for ptx_80, sm_80 only"));
}

TEST_CASE("cuda: the whole library compiles for GPUs that a file has no code for") {
  std::string file = saved(doubled(), named({"native", "sm_80"}));
  WithMock with;
  auto program = program_in(file);
  CHECK(run_on(*program, Device("cuda")) == std::vector<float>{1, 3, 5, 7});
}

TEST_CASE("cuda: files bring the library kernels that the runtime does not have") {
  if (cuda::sort_ptx().empty()) return;
  WithGpu gpu(8);
  Executable sorted = compile_ahead([](const Tensors& x) { return Tensors{sort(x[0], 0)}; },
                                    {{.shape = {4}, .name = "x"}}, {.name = "sorted"});
  std::string file = saved(sorted, named({"native", "sm_80"}));
  auto sections = tnx::File::over(file);
  std::string code = sections->read(tnx::Kind::code, "library");
  CHECK(contains(code, "sort_tiles"));
  CHECK_FALSE(contains(code, "conv_f32_large"));
  CHECK(cuda::take_library_code(code));
  tnx::Writer other;
  for (const tnx::SectionInfo& s : sections->sections()) {
    if (s.kind == tnx::Kind::weights) continue;  // there are none
    std::string bytes = sections->read(s.kind, s.name);
    if (s.name == "library") {
      ByteWriter strange;
      strange(std::string_view("another")), strange(uint64_t{0});
      bytes = std::move(strange.bytes);
    }
    other.add(s.kind, s.name, std::move(bytes));
  }
  WithoutCompiler runtime;
  CHECK(error_in([&] { run_on(*program_in(other.bytes(), Device("cuda")), Device("cuda")); }) ==
        "load: f.tnx: another version of tenon wrote its library kernels for sm_80\n  hint: save "
        "it again with this version");
}

TEST_CASE("cuda: functions that the host computes in part have no code for GPUs in files") {
  CHECK(contains(error_in([] {
                   compile_ahead([](const Tensors& x) { return Tensors{cholesky(x[0])}; },
                                 {{.shape = {4, 4}, .name = "x"}},
                                 {.name = "f", .plan = {.targets = {"sm_80"}}});
                 }),
                 "f(): files hold no code for sm_80 of a function with cholesky: the host "
                 "computes it"));
}

TEST_CASE("cuda: a compiled function has no target that is a GPU") {
  CHECK(contains(error_in([] {
                   compile([](const Tensors& x) { return x; }, {.plan = {.targets = {"sm_90"}}});
                 }),
                 "target_hardware: sm_90 is for saved files only: a compiled function runs on the "
                 "device of its arguments"));
}

TEST_CASE("cuda: files keep the precision of products") {
  set_matmul_precision("exact");
  Executable made = compile_ahead([](const Tensors& x) { return Tensors{matmul(x[0], x[0])}; },
                                  {{.shape = {4, 4}}});
  set_matmul_precision("highest");
  auto program = program_in(saved(made, named({"native"})));
  CHECK(program->options().products == Products::exact);
  CHECK(program->plan({})->products == Products::exact);
  auto usual = program_in(saved(doubled(), named({"native"})));
  set_matmul_precision("high");
  CHECK(usual->options().products == Products::highest);
  set_matmul_precision("highest");
}

TEST_CASE("cuda: memory of a GPU that is lent is used again behind the borrower's stream") {
  WithMock with;
  Device gpu("cuda");
  cuda::Gpu& its = cuda::gpu_of(gpu);
  Tensor x = arange(0, 4, 1, float32).to(gpu);
  eval({x});
  Bound value = bound_of(slot_of(x));
  auto* other = reinterpret_cast<cuda::Stream>(uint64_t{0x700});
  mock().recorded.clear(), mock().waiting.clear();
  CHECK(cuda::lend(value, 0x700) == value.buffer->address);
  CHECK(mock().recorded == std::vector{its.stream});
  CHECK(mock().waiting == std::vector{other});
  cuda::lend(value, cuda::kNoStream);
  CHECK(mock().waiting.size() == 1);
  mock().recorded.clear(), mock().waiting.clear();
  uint64_t before = its.submitted();
  cuda::wait_for_stream(gpu, cuda::kLegacyStream);
  CHECK(mock().recorded.size() >= 1);
  CHECK(mock().waiting == std::vector{its.stream});
  CHECK(its.submitted() == before + 1);  // so that copies ahead wait for it too
  mock().waiting.clear();
  int synchronized = mock().synchronized;
  cuda::wait_for_stream(gpu, 0x700);  // its library may have destroyed it
  CHECK(mock().synchronized == synchronized + 1);
  CHECK(mock().waiting.empty());
}

TEST_CASE("cuda: calls on a caller's memory come after what is on the caller's stream") {
  WithGpu with(8);
  add_doubled_kernel();
  Device gpu("cuda");
  cuda::Gpu& its = cuda::gpu_of(gpu);
  auto program = program_in(saved(doubled(), named({"native", "sm_80"})));
  BufferRef memory = allocate(4 * sizeof(float), gpu);  // the caller's
  std::vector<float> elements{1, 2, 3, 4};
  std::memcpy(cuda::mock_memory(reinterpret_cast<cuda::Address>(memory->address)), elements.data(),
              4 * sizeof(float));
  auto* stream = reinterpret_cast<cuda::Stream>(uint64_t{0x700});
  mock().recorded.clear(), mock().waiting.clear();
  uint64_t before = its.submitted();
  cuda::follow(gpu, 0x700);
  CHECK(mock().recorded.front() == stream);
  CHECK(mock().waiting == std::vector{its.stream});
  CHECK(its.submitted() == before + 1);  // so that copies ahead wait for it too
  int allocated = mock().allocations;
  BufferRef view = cuda::view_of(gpu, memory->address, 4 * sizeof(float));
  CHECK(view->read_only);
  CHECK(view->address == memory->address);
  RecordScope scope;
  ProgramValue in{on_device(intern(DType::f32, Shape{4}), gpu), {view, 0}};
  Bound result = program->run({&in, 1}, {})[0].value;
  CHECK(mock().allocations == allocated + 1);  // of the result alone
  HostView read(result);
  CHECK(std::vector<float>(read.data<float>(), read.data<float>() + 4) ==
        std::vector<float>{3, 5, 7, 9});
  CHECK(cuda::view_of(gpu, nullptr, 0)->bytes == 0);
}

TEST_CASE("cuda: memory of others is given back when no work uses it") {
  WithMock with;
  Device gpu("cuda");
  cuda::Gpu& its = cuda::gpu_of(gpu);
  BufferRef lender = allocate(64, gpu);
  static int released;
  released = 0;
  auto borrow = [&] {
    return cuda::borrow(gpu, lender->address, 64, &released,
                        [](void* n) { ++*static_cast<int*>(n); });
  };
  BufferRef borrowed = borrow();
  CHECK(borrowed->read_only);
  CHECK(borrowed->device == gpu);
  its.wait(borrowed->ready);
  borrowed.reset();
  CHECK(released == 1);
  cuda::set_mock_busy(true);
  borrowed = borrow();
  borrowed.reset();
  CHECK(released == 1);  // its work is under way
  cuda::set_mock_busy(false);
  its.wait_for_all();
  borrowed = borrow();  // gives back what is due, as each call that submits
  CHECK(released == 2);
}

TEST_CASE("cuda: the work that a GPU failed in is named, also when it is not marked yet") {
  WithMock with;
  auto error_after = [](int others) {
    cuda::Gpu& gpu = cuda::gpu_of(Device("cuda"));
    gpu.wait(gpu.give([](cuda::Stream) {}, [] { return "before"; }));
    cuda::set_mock_busy(true);
    for (int i = 0; i < others; ++i)
      gpu.give([](cuda::Stream) {}, [i] { return format("work {}", i); });
    mock().broken = 700;
    std::string error = error_in([&] {
      gpu.give([](cuda::Stream) { throw_internal("cuLaunchKernel fails"); }, [] { return "last"; });
    });
    mock().broken = 0;
    cuda::set_mock_busy(false);
    cuda::forget_gpus();
    clear_plans();
    return error;
  };
  CHECK(contains(error_after(0), "cannot be used any more: last\n"));
  CHECK(contains(error_after(2), "cannot be used any more: work 0; or work 1; or last\n"));
  CHECK(contains(error_after(5),
                 "work 0; or work 1; or work 2; or one of 3 that were submitted later\n"));
}

TEST_CASE("cuda: what names work that is done may give back memory of others") {
  WithMock with;
  cuda::Gpu& gpu = cuda::gpu_of(Device("cuda"));
  static int released;
  released = 0;
  auto give = [&] {
    auto give_back = [&gpu](void* count) {
      gpu.release_later(count, [](void* n) { ++*static_cast<int*>(n); });
    };
    std::shared_ptr<void> memory(&released, give_back);
    return gpu.give([](cuda::Stream) {}, [memory] { return "work"; });
  };
  gpu.wait_for_all();
  cuda::set_mock_busy(true);
  uint64_t number = give();
  own_stop_point = [] { cuda::set_mock_busy(false); };
  gpu.wait(number);  // forgets it, and so does work that is submitted later
  own_stop_point = nullptr;
  CHECK(released == 1);
  for (int i = 0; i < 9; ++i) give();
  CHECK(released > 1);
}

TEST_CASE("cuda: convolutions whose windows reach too far for kernels are refused") {
  if (cuda::convolution_ptx().empty()) return;
  Tensor made = conv(zeros({1, 1, 4}), ones({1, 1, 1}), Ints{1}, Offsets{(int64_t{1} << 31) - 1});
  Node& node = *made.node();
  std::vector<TypeRef> in, out = {type_of(made)};
  for (int i = 0; i < node.ins; ++i) in.push_back(node.inputs()[i].node->slots()[0].type);
  const LibraryKernel* kernel = cuda::library_kernel(*node.op, in, cuda::target_of(90));
  REQUIRE(kernel);
  const void* from[2] = {};
  void* to[1] = {};
  CHECK(contains(
      error_in([&] { kernel->run({node.attrs->data, in, out, from, to}); }),
      "conv: windows reach 6442450944 places along an axis, and GPUs count to 2147483647"));
}

TEST_CASE("cuda: an executable that is compiled for GPUs runs on the one of its arguments") {
  WithGpu with(9);
  mock().devices = 2;
  add_doubled_kernel();
  {
    auto program = program_in(saved(doubled(), named({"native"})));
    for (const char* name : {"cuda:0", "cuda:1", "cuda:0"})
      CHECK(result_on(*program, Device(name)).buffer->device == Device(name));
  }
  mock().devices = 1;
}
