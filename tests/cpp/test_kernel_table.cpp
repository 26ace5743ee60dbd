// Plans of effort e0 share kernels of one structure.
#include <doctest/doctest.h>

#include <set>

#include "compiler/compile_graph.h"

using namespace tn;

namespace {

struct Shared {
  size_t steps = 0;
  std::set<const void*> kernels = {}, programs = {};
};

Shared shared_in(const std::string& body) {
  Graph graph = parse_graph("func @main(%x: f32[8,8], %y: f32[8,8]) -> f32[8,8] {\n" + body + "}");
  std::shared_ptr<const Plan> plan = compile(graph, {});
  Shared found;
  for_each_part(std::span<const Step>(plan->steps), [&](const Step& step) {
    if (!step.kernel()) return;
    ++found.steps;
    found.kernels.insert(step.kernel()->kernel.get());
    found.programs.insert(step.kernel()->program.get());
  });
  return found;
}

/// Of two kernels with a call of the library between them.
size_t kernels_of(const std::string& first, const std::string& second) {
  Shared found = shared_in(first + "%s = sort %a {axis=1}\n" + second + "return %b\n");
  CHECK(found.steps == 2);
  CHECK(found.kernels.size() == found.programs.size());
  return found.kernels.size();
}

}  // namespace

TEST_CASE("plans of effort e0: steps share kernels of one structure") {
  std::string body, last = "%x";
  for (int i = 0; i < 50; ++i) {
    body += format("%s{} = sum {} {{axis=[1], keepdims=true}}\n", i, last);
    body += format("%p{} = mul {}, %s{}\n", i, last, i);
    last = format("%p{}", i);
  }
  Shared found = shared_in(body + "return " + last + "\n");
  CHECK(found.steps == 99);
  CHECK(found.kernels.size() == 4);  // the first and the last differ
  CHECK(found.programs.size() == 4);
}

TEST_CASE("plans of effort e0: the structure of a kernel is all that it depends on") {
  CHECK(kernels_of("%a = exp %x\n", "%b = exp %s\n") == 1);
  CHECK(kernels_of("%a = exp %x\n", "%b = log %s\n") == 2);
  CHECK(kernels_of("%a = sub %x, %y\n", "%b = sub %y, %s\n") == 1);
  CHECK(kernels_of("%a = sub %x, %y\n", "%b = sub %s, %s\n") == 2);
  auto scaled = [](const char* number, const char* to, const char* from) {
    return format("%{}n = constant {{value={}}} : f32[]\n%{} = mul %{}, %{}n\n", to, number, to,
                  from, to);
  };
  CHECK(kernels_of(scaled("3.0", "a", "x"), scaled("3.0", "b", "s")) == 1);
  CHECK(kernels_of(scaled("3.0", "a", "x"), scaled("4.0", "b", "s")) == 2);
  std::string turned = "%t = permute_dims %x {axes=[1,0]}\n%a = sub %x, %t\n";
  CHECK(kernels_of(turned, "%u = permute_dims %s {axes=[1,0]}\n%b = sub %s, %u\n") == 1);
  CHECK(kernels_of(turned, "%u = permute_dims %s {axes=[1,0]}\n%b = sub %u, %s\n") == 2);
  CHECK(kernels_of(turned, "%b = sub %s, %y\n") == 2);
}
