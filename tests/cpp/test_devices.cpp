// Devices of tensors, on two emulated ones: memory that the host cannot read, work done later.
#include <doctest/doctest.h>

#include <cstdlib>

#include "backend/launcher.h"
#include "errors.h"
#include "runtime/device.h"
#include "tenon/tenon.h"

using namespace tn;

/// Before the emulated devices look for it.
[[gnu::constructor(200)]] static void ask_for_devices() {
  setenv("TENON_EMULATED_DEVICES", "2", 0);
}

TEST_CASE("devices: names") {
  CHECK(devices().size() == 3);
  CHECK(devices()[0] == Device());
  CHECK(Device("emu") == Device("emu:0"));
  CHECK(to_text(Device("emu:1")) == "emu:1");
  CHECK(default_device() == Device("cpu"));
  std::string error = error_in([] { Device("emu:2"); });
  CHECK(error.starts_with("device: no such device: 'emu:2'\n  at "));
  CHECK(error.ends_with("\n  hint: the devices are cpu, emu:0, emu:1"));
}

TEST_CASE("devices: where tensors are made") {
  Device a("emu:0"), b("emu:1");
  CHECK(zeros({2}).device() == Device());
  CHECK(zeros({2}, float32, a).device() == a);
  CHECK(arange(3, {}, 1, float32, "emu:1").device() == b);
  {
    DeviceScope scope(a);
    CHECK(ones({2}).device() == a);
    CHECK(array({1.f, 2.f}).device() == a);
    CHECK(random::normal({3}).device() == a);
    CHECK(eye(2, {}, 0, float32, b).device() == b);
    CHECK(ones({2}, float32, Device()).device() == Device());
  }
  CHECK(ones({2}).device() == Device());
}

TEST_CASE("devices: results are where operands are") {
  Device a("emu:0"), b("emu:1");
  Tensor x = array({1.f, 2.f, 3.f}).to(a);
  CHECK((x * 2 + 1).device() == a);
  CHECK((x * Tensor(0.5f)).to_vector<float>() == std::vector<float>{0.5f, 1, 1.5f});
  CHECK(sum(x).item<double>() == 6);
  CHECK(sort(x, 0, true).device() == a);  // which that device leaves to the host
  CHECK(sort(x, 0, true).to_vector<float>() == std::vector<float>{3, 2, 1});
  std::string mixed = error_in([&] { x + ones({3}, float32, b); });
  CHECK(mixed.find("add: operands are on emu:0 and emu:1: f32[3]@emu:0 and f32[3]@emu:1") == 0);
  CHECK(error_in([&] { x.data<float>(); }).find("the elements are on emu:0") != std::string::npos);
}

TEST_CASE("devices: moving is differentiable, and compiled like any op") {
  Device a("emu:0");
  auto f = [a](const Tensors& w) { return Tensors{sum(exp(w[0].to(a)) * 2)}; };
  Tensor w = array({0.f, 1.f});
  Tensor g = grad(f)({w})[0];
  CHECK(g.device() == Device());
  CHECK(g.to_vector<float>() == (exp(w) * 2).to_vector<float>());

  auto there = compile(grad(f));
  CHECK(there({w})[0].to_vector<float>() == g.to_vector<float>());
  CHECK(contains(there.explain({w}), "emu:0"));

  auto norm = compile([](const Tensors& x) { return Tensors{softmax(x[0], Axes(-1))}; });
  Tensor x = random::normal({8, 33});
  Tensor on_a = norm({x.to(a)})[0];
  CHECK(on_a.device() == a);
  CHECK(on_a.to_vector<float>() == norm({x})[0].to_vector<float>());
}

TEST_CASE("devices: errors of work that is done later arrive at the reader") {
  Tensor x = arange(4, {}, 1, float32, "emu:0");
  Tensor places = array({1, 9}).to("emu:0");
  eval({x});  // what is computed in one run fails together
  Tensor taken = take(x, places);
  async_eval({taken});
  CHECK(contains(error_in([&] { taken.to_vector<float>(); }), "9"));
  CHECK(sum(x).item<double>() == 6);
}

TEST_CASE("devices: a donated number of the host is no memory of a device") {
  Device device("emu:0");
  Plan plan;
  plan.blocks = {{8, 0}};
  for (Device from : {Device(), device}) {
    Bound given{allocate(8, from), 0};
    BufferRef block;
    take_blocks(plan, device, {&given, 1}, &block);
    CHECK(block->device == device);
    CHECK((block->address == given.buffer->address) == (from == device));
  }
}
