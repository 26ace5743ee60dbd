// Targets: names, what runs here, and the code generators behind them.
#include <doctest/doctest.h>

#include "loop/kernel.h"
#include "plan/backend.h"

using namespace tn;

TEST_CASE("targets: every target has a name of its own that leads back to it") {
  for (const Backend* backend : backends())
    for (const TargetName& known : backend->names()) {
      CAPTURE(known.name);
      CHECK(target_named(known.name, "test") == known.target);
      CHECK(&backend_of(known.target) == backend);
      CHECK(!name_of(known.target).empty());
      CHECK((name_of(known.target) == known.name) == !known.is_product);
    }
  CHECK(name_of({DeviceKind::cpu, 99}).empty());
}

TEST_CASE("targets: this machine runs its own target and every lower one") {
  CHECK(target_named("native", "test") == host_target());
  for (const TargetName& known : backend_of(host_target()).names())
    CHECK(runs_here(known.target) == (known.target <= host_target()));
}

TEST_CASE("targets: of several names each target is there once, the lowest first") {
  std::vector<Target> made = targets_named({"zen4", "haswell", "x86-64-v3", "nehalem"}, "test");
  REQUIRE(made.size() == 3);
  CHECK(name_of(made[0]) == "x86-64-v2");
  CHECK(name_of(made[1]) == "x86-64-v3");
  CHECK(name_of(made[2]) == "x86-64-v4");
}

TEST_CASE("targets: what a generator makes, its backend reads") {
  Target target = host_target();
  const CodeGenerator& generator = generator_of(target);
  loop::Kernel kernel = loop::parse_kernel(
      "kernel f(x: f32[8]) -> (z: f32[8]) {\n axes p0:8 par\n v0 = load x[p0] : f32\n "
      "store z[p0] = v0\n}");
  KernelRequest request{&kernel};
  for (const TargetName& known : backend_of(host_target()).names()) {
    if (known.is_product) continue;
    CAPTURE(known.name);
    CHECK(generator.why_interpreted(request, known.target).empty());
    CHECK(!generator.assembly(request, known.target).empty());
    std::string bytes = generator.compile_to_bytes({&request, 1}, known.target)[0];
    CHECK(backend_of(known.target).code_from_bytes(bytes) != nullptr);
    CHECK(backend_of(known.target).code_from_bytes(bytes.substr(1)) == nullptr);
  }
}
