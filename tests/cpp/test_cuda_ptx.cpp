// PTX of kernels: the assembler takes it and needs no memory for registers.
#include <cstdlib>
#include <sstream>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/prebuilt/prebuilt.h"
#include "compiler/compile_graph.h"
#include "compiler/report.h"
#include "every_operation.h"
#include "files.h"
#include "ir/graph.h"
#include "simulated_kernels.h"

using namespace tn;
using namespace tn::loop;

static bool has_ptxas() { return std::system("ptxas --version > /dev/null 2>&1") == 0; }

/// What ptxas says of PTX; "" where it takes it and spills nothing.
static std::string fault_of(std::string_view ptx, int16_t arch) {
  Folder folder;
  spill(folder.path + "/k.ptx", ptx);
  std::string command =
      format("cd {} && ptxas -arch=sm_{} -v k.ptx -o k.cubin > log 2>&1", folder.path, arch);
  int status = std::system(command.c_str());
  std::string log = slurp(folder.path + "/log");
  bool spills = false;
  for (size_t at = log.find("spill stores"); at != std::string::npos;
       at = log.find("spill stores", at + 1))
    spills |= log.substr(at - 10, 10) != ", 0 bytes ";
  return status != 0 || spills ? log : "";
}

static std::string fault_of(const Kernel& kernel, int16_t arch) {
  return fault_of(cuda::generate(cuda::make_schedule({&kernel}), arch).ptx, arch);
}

TEST_CASE("cuda ptx: the assembler takes what the build compiles") {
  if (!has_ptxas()) {
    MESSAGE("skipped: there is no ptxas on this machine");
    return;
  }
  for (std::string_view ptx :
       {cuda::convolution_ptx(), cuda::joining_ptx(), cuda::product_ptx(), cuda::running_ptx(),
        cuda::scatter_ptx(), cuda::sort_ptx(), cuda::window_ptx()})
    if (!ptx.empty()) CHECK(fault_of(ptx, 90) == "");
}

TEST_CASE("cuda ptx: the assembler takes it, without spills") {
  if (!has_ptxas()) {
    MESSAGE("skipped: there is no ptxas on this machine");
    return;
  }
  for (fs::path path : {"tests/golden/cuda/kernels.tn"}) {
    std::string text = slurp(path);
    for (size_t at = text.find("\nkernel "); at != std::string::npos;
         at = text.find("\nkernel ", at + 1)) {
      Kernel kernel = parse_kernel(text.substr(at + 1, text.find("\n}", at) + 2 - at));
      CAPTURE(kernel.name);
      CHECK(fault_of(kernel, 90) == "");
    }
  }
  std::vector<int16_t> generations = {80, 90};
  if (std::system("ptxas --help | grep -q sm_120") == 0)
    generations.insert(generations.end(), {100, 120});
  for (uint32_t seed = 0; seed < 6; ++seed) {
    Kernel kernel = random_kernel(9000 + 37 * seed);
    CAPTURE(to_text(kernel));
    CHECK(fault_of(kernel, generations[seed % generations.size()]) == "");
  }
}

/// Instructions of PTX for an element, of the flat kernel that a function of `type` becomes. Signs
/// and constants are parts of others.
static double instructions_for_an_element(std::string_view type, std::string_view function) {
  std::string graph =
      format("func @main(%x: {0}[4194304], %z: {0}[4194304]) {{\n{1}}}", type, function);
  CompileOptions options{.target = cuda::target_of(90)};
  std::string text = loops_text(compilation_of(parse_graph(graph), options));
  Kernel kernel = parse_kernel(text);
  cuda::Schedule schedule = cuda::make_schedule({&kernel});
  REQUIRE(schedule.parts.size() == 1);
  REQUIRE(schedule.parts[0].mode == cuda::Mode::flat);
  std::istringstream lines(cuda::generate(schedule, 90).ptx);
  int64_t count = 0;
  for (std::string line, word; std::getline(lines, line);) {
    std::istringstream words(line);
    if (words >> word && line.ends_with(";")) {
      bool free = word.starts_with("neg.") || word.starts_with("abs.") || word.starts_with("mov.");
      count += !free && !word.starts_with(".");
    }
  }
  return static_cast<double>(count) / (schedule.parts[0].vector * schedule.parts[0].unroll);
}

// A GPU has time for about 7.5 instructions while a byte is read or written (note 38).
TEST_CASE("cuda ptx: instructions that memory leaves time for") {
  struct Row {
    const char *name, *type, *function;
    double most;
  };
  const char* gelu = "  %0 = gelu %x\n  return %0\n";
  const char* swiglu = "  %0 = silu %x\n  %1 = multiply %0, %z\n  return %1\n";
  const char* chain = R"(  %0 = constant {value=1.5} : bf16[]
  %1 = multiply %x, %0
  %2 = constant {value=0.25} : bf16[]
  %3 = add %1, %2
  %4 = multiply %3, %x
  %5 = constant {value=1} : bf16[]
  %6 = subtract %4, %5
  return %6
)";
  for (const Row& row :
       {Row{"gelu", "f32", gelu, 42}, Row{"bf16 gelu", "bf16", gelu, 26},
        Row{"bf16 swiglu", "bf16", swiglu, 31}, Row{"bf16 chain", "bf16", chain, 13}}) {
    double count = instructions_for_an_element(row.type, row.function);
    MESSAGE(std::string(row.name) << ": " << count);
    CHECK(count <= row.most);
    CHECK(count > 1);
  }
}

TEST_CASE("cuda ptx: bytes of kernels, and damaged ones") {
  Kernel kernel = random_kernel(9001);
  cuda::Generated made = cuda::generate(cuda::make_schedule({&kernel}), 80);
  std::string bytes = cuda::kernel_to_bytes(made.numbers, made.ptx);
  auto code = cuda::kernel_from_bytes(bytes);
  REQUIRE(code);
  CHECK(code->image().code == made.ptx);
  CHECK(code->numbers().entries.size() == made.numbers.entries.size());
  for (size_t length = 0; length < bytes.size(); length += 1 + bytes.size() / 50)
    CHECK(!cuda::kernel_from_bytes(bytes.substr(0, length)));
}
