// PTX of kernels: the assembler takes it and needs no memory for registers.
#include <cstdlib>

#include "backend/cuda/prebuilt/prebuilt.h"
#include "every_operation.h"
#include "files.h"
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
  for (uint32_t seed = 0; seed < 6; ++seed) {
    Kernel kernel = random_kernel(9000 + 37 * seed);
    CAPTURE(to_text(kernel));
    CHECK(fault_of(kernel, seed % 2 ? 80 : 90) == "");
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
