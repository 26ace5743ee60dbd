#include "c_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "backend/source/c_printer.h"
#include "base/error.h"

namespace tn {

namespace fs = std::filesystem;

static std::string entry_c(const loop::Kernel& kernel, size_t number) {
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

std::string kernels_c(const std::vector<loop::Kernel>& kernels) {
  std::string text;
  for (size_t i = 0; i < kernels.size(); ++i) text += "\n" + entry_c(kernels[i], i);
  return source::c_prelude(text) + text;
}

static bool is_installed(const std::string& command) {
  return std::system((command + " --version > /dev/null 2>&1").c_str()) == 0;
}

std::vector<std::string> c_compilers() {
  std::vector<std::string> found;
  if (is_installed("gcc")) found.push_back("gcc");
  for (const char* clang : {"clang-19", "clang"})
    if (is_installed(clang)) {
      found.push_back(clang);
      break;
    }
  return found;
}

static fs::path make_folder() {
  std::string name = (fs::temp_directory_path() / "tenon-c-XXXXXX").string();
  if (!mkdtemp(name.data())) fail("c library: no folder for temporary files in {}", name);
  return name;
}

CLibrary::CLibrary(const std::string& compiler, const std::string& source,
                   const std::string& flags) {
  fs::path folder = make_folder();
  std::string in = folder / "kernels.c", out = folder / "kernels.so", said = folder / "said";
  std::ofstream(in) << source;
  // On CPUs with AVX10, -march=native is itself what clang 19 warns of.
  std::string warnings = "-Wall -Wextra -Werror -Wno-invalid-feature-combination";
  std::string command = format("{} {} {} -shared -fPIC {} -o {} {} 2> {}", compiler,
                               source::kCFlags, warnings, flags, out, in, said);
  bool compiled = std::system(command.c_str()) == 0;
  std::stringstream errors;
  errors << std::ifstream(said).rdbuf();
  if (compiled) handle_ = dlopen(out.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  if (!compiled) fail("{}:\n{}", command, errors.str().substr(0, 4000));
  if (!handle_) fail("{}: {}", command, dlerror());
}

CLibrary::~CLibrary() {
  if (handle_) dlclose(handle_);
}

void* CLibrary::symbol(const std::string& name) const {
  void* at = dlsym(handle_, name.c_str());
  if (!at) fail("c library: no function {}", name);
  return at;
}

}  // namespace tn
