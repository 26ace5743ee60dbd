#include "backend/cuda/assembler.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "backend/cuda/driver.h"
#include "base/error.h"

extern char** environ;

namespace tn::cuda {
namespace {

/// nvJitLink, whose functions have the version in their names.
struct JitLink {
  using Handle = struct HandleOfJitLink*;
  int (*create)(Handle*, uint32_t, const char**) = nullptr;
  int (*add_data)(Handle, int, const void*, size_t, const char*) = nullptr;
  int (*complete)(Handle) = nullptr;
  int (*cubin_size)(Handle, size_t*) = nullptr;
  int (*cubin)(Handle, void*) = nullptr;
  int (*log_size)(Handle, size_t*) = nullptr;
  int (*log)(Handle, char*) = nullptr;
  int (*destroy)(Handle*) = nullptr;
  std::string version;  // "13.0"; "": there is none
};

template <class F>
bool find(void* library, const std::string& name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name.c_str()));
  return function;
}

bool find_all(void* library, const std::string& suffix, JitLink& link) {
  auto name = [&](const char* base) { return format("__nvJitLink{}_{}", base, suffix); };
  return find(library, name("Create"), link.create) &&
         find(library, name("AddData"), link.add_data) &&
         find(library, name("Complete"), link.complete) &&
         find(library, name("GetLinkedCubinSize"), link.cubin_size) &&
         find(library, name("GetLinkedCubin"), link.cubin) &&
         find(library, name("GetErrorLogSize"), link.log_size) &&
         find(library, name("GetErrorLog"), link.log) &&
         find(library, name("Destroy"), link.destroy);
}

JitLink load_jit_link() {
  const char* const names[] = {"libnvJitLink.so.13", "libnvJitLink.so.12"};
  JitLink link;
  void* library = find_library(names, std::size(names), "nvjitlink");
  if (!library) return link;
  for (int major : {13, 12})
    for (int minor = 9; minor >= 0; --minor)
      if (find_all(library, format("{}_{}", major, minor), link)) {
        link.version = format("{}.{}", major, minor);
        return link;
      }
  return {};
}

std::string log_of(const JitLink& link, JitLink::Handle handle) {
  size_t size = 0;
  if (link.log_size(handle, &size) != 0 || size == 0) return "";
  std::string text(size, '\0');
  link.log(handle, text.data());
  return text.substr(0, text.find('\0'));
}

/// Whether text is for this architecture alone: "sm_90a".
bool is_for_one(std::string_view ptx, int architecture) {
  return ptx.substr(0, 1024).find(format(".target sm_{}a", architecture)) != ptx.npos;
}

std::string arch_name(std::string_view ptx, int architecture) {
  return format("sm_{}{}", architecture, is_for_one(ptx, architecture) ? "a" : "");
}

std::string link_ptx(const JitLink& link, std::string_view ptx, int architecture) {
  constexpr int kPtx = 2;
  std::string arch = format("-arch={}", arch_name(ptx, architecture));
  const char* options[] = {arch.c_str(), "-O3"};
  JitLink::Handle handle = nullptr;
  if (link.create(&handle, std::size(options), options) != 0) return "";
  struct Close {
    const JitLink& link;
    JitLink::Handle& handle;
    ~Close() { link.destroy(&handle); }
  } close{link, handle};
  std::string text(ptx);  // with a zero at its end
  size_t bytes = 0;
  if (link.add_data(handle, kPtx, text.c_str(), text.size() + 1, "kernel") != 0 ||
      link.complete(handle) != 0 || link.cubin_size(handle, &bytes) != 0)
    throw_internal(format("cuda: nvJitLink refuses a kernel: {}", log_of(link, handle)));
  std::string made(bytes, '\0');
  if (link.cubin(handle, made.data()) != 0)
    throw_internal(format("cuda: nvJitLink gives no code: {}", log_of(link, handle)));
  return made;
}

/// Where ptxas is; "": nowhere.
std::string find_ptxas() {
  std::vector<std::string> folders;
  if (const char* path = std::getenv("PATH")) {
    std::stringstream all(path);
    for (std::string folder; std::getline(all, folder, ':');) folders.push_back(folder);
  }
  folders.emplace_back("/usr/local/cuda/bin");
  for (const std::string& folder : folders)
    if (std::string file = format("{}/ptxas", folder); access(file.c_str(), X_OK) == 0) return file;
  return "";
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Runs a program whose messages go to a file; returns whether it succeeded. That is not known, and
/// taken to be so, where the process leaves no children to wait for: it ignores SIGCHLD, or another
/// thread waits for all.
bool run_program(const std::vector<std::string>& words, const std::string& messages) {
  std::vector<char*> args;
  for (const std::string& word : words) args.push_back(const_cast<char*>(word.c_str()));
  args.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  int failed = posix_spawn(&child, args[0], &actions, nullptr, args.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) return false;
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return errno == ECHILD;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

struct Assembler {
  JitLink link;
  std::string ptxas, name = "driver";
};

/// TENON_CUDA_ASSEMBLER=ptxas or driver leaves out those before it.
Assembler find_assembler() {
  Assembler made;
  const char* wanted = std::getenv("TENON_CUDA_ASSEMBLER");
  std::string_view only = wanted ? wanted : "";
  if (only.empty() || only == "nvjitlink") made.link = load_jit_link();
  if (only != "driver") made.ptxas = find_ptxas();
  if (!made.link.version.empty())
    made.name = format("nvJitLink {}", made.link.version);
  else if (!made.ptxas.empty())
    made.name = format("ptxas ({})", made.ptxas);
  return made;
}

const Assembler& assembler() {
  static const Assembler only = find_assembler();
  return only;
}

}  // namespace

std::string run_ptxas(const std::string& program, std::string_view ptx, int architecture) {
  std::error_code error;
  std::string folder = (std::filesystem::temp_directory_path(error) / "tenon-ptx-XXXXXX").string();
  if (error || !mkdtemp(folder.data())) return "";
  struct Remove {
    const std::string& folder;
    ~Remove() {
      std::error_code none;
      std::filesystem::remove_all(folder, none);
    }
  } remove{folder};
  std::string source = folder + "/kernel.ptx", out = folder + "/kernel.cubin",
              messages = folder + "/messages";
  std::ofstream file(source, std::ios::binary);
  file << ptx;
  file.close();
  if (!file) return "";  // the disk is full
  bool done = run_program(
      {program, format("-arch={}", arch_name(ptx, architecture)), "-O3", source, "-o", out},
      messages);
  std::string made = read_file(out);
  if (!done || made.empty())
    throw_internal(format("cuda: ptxas refuses a kernel: {}", read_file(messages)));
  return made;
}

std::string assemble(std::string_view ptx, int architecture) {
  const Assembler& with = assembler();
  // nvJitLink makes products of warp groups wait for each other: attention took 1.8 times as long.
  bool links = !with.link.version.empty() && !is_for_one(ptx, architecture);
  if (links) return link_ptx(with.link, ptx, architecture);
  return with.ptxas.empty() ? "" : run_ptxas(with.ptxas, ptx, architecture);
}

const std::string& assembler_name() { return assembler().name; }

}  // namespace tn::cuda
