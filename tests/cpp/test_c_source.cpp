// Kernels printed as C, compiled by gcc and clang: no warnings, the bits of the interpreter.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "backend/source/c_printer.h"
#include "base/error.h"
#include "c_library.h"
#include "loop/builder.h"
#include "loop/interpreter.h"
#include "loop/interpreter_program.h"
#include "random_kernel.h"

using namespace tn;
using namespace tn::loop;

namespace {

using Entry = void(void* const* buffers, const uint64_t* arguments);

/// A kernel behind the signature that all share.
std::string entry_c(const Kernel& kernel, size_t number) {
  std::string function = format("kernel_{}", number);
  std::vector<std::string> args;
  for (size_t i = 0; i < kernel.buffers.size(); ++i) args.push_back(format("buffers[{}]", i));
  if (kernel.arguments > 0) args.push_back("arguments");
  return source::kernel_c(kernel, function) +
         format(
             "void entry_{0}(void *const *buffers, const uint64_t *arguments);\n"
             "void entry_{0}(void *const *buffers, const uint64_t *arguments) {{\n"
             "  (void)buffers, (void)arguments;\n  {1}({2});\n}}\n",
             number, function, join(args, ", "));
}

std::string source_of(const std::vector<Kernel>& kernels) {
  std::string text(source::c_prelude());
  for (size_t i = 0; i < kernels.size(); ++i) text += "\n" + entry_c(kernels[i], i);
  return text;
}

void check_kernels(const std::vector<Kernel>& kernels, const std::string& flags,
                   int64_t below = 0) {
  std::string source = source_of(kernels);
  for (const std::string& compiler : c_compilers()) {
    CAPTURE(compiler);
    CLibrary library(compiler, source, flags);
    for (size_t i = 0; i < kernels.size(); ++i) {
      uint32_t seed = static_cast<uint32_t>(i) + 11;
      RandomBuffers expected(kernels[i], seed, below), actual(kernels[i], seed, below);
      std::vector<Scalar> scalars(static_cast<size_t>(kernels[i].arguments), Scalar(0.75));
      std::vector<uint64_t> arguments(scalars.size());
      for (const Value& v : kernels[i].values)
        if (v.op == Op::argument)
          arguments[static_cast<size_t>(v.a)] =
              std::bit_cast<uint64_t>(machine::element_bits(Scalar(0.75), v.type));
      run(*prepare(kernels[i]), expected.pointers.data(), scalars.data());
      library.find<Entry>(format("entry_{}", i))(actual.pointers.data(), arguments.data());
      std::string different = first_difference(kernels[i], expected, actual);
      INFO(to_text(kernels[i]));
      CHECK(different == "");
    }
  }
}

std::vector<Kernel> golden_kernels() {
  std::vector<Kernel> kernels;
  for (auto& entry : std::filesystem::directory_iterator("tests/golden/loop")) {
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    Kernel kernel = parse_kernel(text.str());
    bool symbolic = std::ranges::any_of(
        kernel.axes, [](const KernelAxis& axis) { return !axis.extent.is_const(); });
    if (!symbolic) kernels.push_back(std::move(kernel));
  }
  return kernels;
}

}  // namespace

TEST_CASE("a C compiler is here to test with") { CHECK(c_compilers().size() > 0); }

TEST_CASE("C source: random kernels have the interpreter's bits") {
  std::vector<Kernel> kernels;
  for (uint32_t seed = 0; seed < 400; ++seed) kernels.push_back(random_kernel(seed));
  check_kernels(kernels, "-O1 -Wno-tautological-compare");
}

TEST_CASE("C source: the golden kernels") { check_kernels(golden_kernels(), "", 4); }

TEST_CASE("C source: sizes must be numbers") {
  Kernel kernel = parse_kernel(R"(kernel f(x: f32[B]) -> (y: f32[B]) {
  symbols B in 1..64
  axes p0:B par
  v0 = load x[p0] : f32
  store y[p0] = v0
})");
  CHECK_THROWS_WITH_AS(source::kernel_c(kernel, "f"), doctest::Contains("has the size B"), Error);
}
