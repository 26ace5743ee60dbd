// `tenon env`: what the library found and what decides how it runs.
#include <unistd.h>

#include <array>
#include <fstream>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/output.h"
#include "runtime/memory_use.h"
#include "runtime/threads.h"
#include "storage/disk_cache.h"

namespace tn {

struct Variable {
  std::string_view name, meaning;
};
constexpr std::array kVariables = {
    Variable{"TENON_AUTO_COMPILE", "1: sequences of ops that run often are compiled"},
    Variable{"TENON_AUTO_SHARD", "1: axis 0 of new tensors is divided among the workers"},
    Variable{"TENON_CACHE", "0: no cache on disk"},
    Variable{"TENON_CACHE_DIR", "the folder of the disk cache (~/.cache/tenon)"},
    Variable{"TENON_CACHE_SIZE", "the limit of the disk cache, as in 500M (2G)"},
    Variable{"TENON_COMPILE", "1: every sequence of ops is compiled before its first run"},
    Variable{"TENON_CONFIG", "a YAML file that configures signals (tn.signal)"},
    Variable{"TENON_CPU_LEVEL", "v2, v3 or v4: no newer instructions are used (the best)"},
    Variable{"TENON_CUDA_ASSEMBLER", "nvjitlink, ptxas or driver: what assembles kernels of GPUs"},
    Variable{"TENON_CUDA_MOCK", "1: a GPU that the host plays, in builds with tests"},
    Variable{"TENON_CUDA_PRODUCTS", "own: no cuBLASLt; products on GPUs have the CPU's bits"},
    Variable{"TENON_CUDA_SYNC", "1: waits for every step on a GPU and names the one that fails"},
    Variable{"TENON_DEBUG", "1: reports why there is no disk cache"},
    Variable{"TENON_COLLECTIVE_TIMEOUT", "seconds without progress that end all workers (300)"},
    Variable{"TENON_DEBUG_COMPILE", "1: logs what is compiled, when and why"},
    Variable{"TENON_DEBUG_INDICES", "1: compiled functions check indices, and are interpreted"},
    Variable{"TENON_DEBUG_NANS", "1: a NaN among computed values is an error; inf: infinities too"},
    Variable{"TENON_DEVICE", "the default device of new tensors (cpu)"},
    Variable{"TENON_DISABLE_COMPILE", "1: compiled functions run op by op"},
    Variable{"TENON_EMULATED_DEVICES", "the number of emulated devices, in builds with tests (0)"},
    Variable{"TENON_ERROR_SITES", "a file: lines of the sources that raised errors, for tests"},
    Variable{"TENON_HEARTBEAT_TIMEOUT", "seconds without a sign of life that end workers (10)"},
    Variable{"TENON_HOST", "the machine of this worker, for those that MPI starts (its name)"},
    Variable{"TENON_HOTPATH_THRESHOLD", "runs after which TENON_AUTO_COMPILE compiles (10)"},
    Variable{"TENON_INSTRUCTION_LOG", "a file: logs every op that runs and every compilation"},
    Variable{"TENON_INSTRUCTION_LOG_MB", "the size at which the log is moved to FILE.1 (64)"},
    Variable{"TENON_LAUNCH_TIME", "when the times of logs begin; set by `tenon launch`"},
    Variable{"TENON_MPIRUN", "the mpirun of `tenon launch --hosts` (mpirun)"},
    Variable{"TENON_MPI_LIBRARY", "the library of MPI (that of the launcher)"},
    Variable{"TENON_NUM_THREADS", "the number of threads (the cores)"},
    Variable{"TENON_NUM_WORKERS", "threads that are workers, and on which new tensors lie"},
    Variable{"TENON_PYTHON", "the Python of `tenon compile` and `tenon launch` (python3)"},
    Variable{"TENON_RANK", "the number of this worker; set by `tenon launch`"},
    Variable{"TENON_RESTART", "how often the program was restarted; set by `tenon launch`"},
    Variable{"TENON_SIZE", "the number of workers; set by `tenon launch`"},
    Variable{"TENON_TRACE", "5:FOLDER: set by python -m tenon.trace for the program it runs"},
    Variable{"TENON_WORLD_MEMORY", "the memory that workers share; set by `tenon launch`"},
    Variable{"TENON_WORKER_PROCESS", "the process of this worker; others are none; set by workers"},
    Variable{"TENON_WATCH", "1: tenon.top and tenon.trace may attach to the process"},
};

std::vector<StrayVariable> stray_variables() {
  constexpr std::string_view kPrefix = "TENON_";  // says nothing about what is meant
  std::vector<std::string_view> known;
  for (const Variable& v : kVariables) known.push_back(v.name.substr(kPrefix.size()));
  std::vector<StrayVariable> stray;
  for (char** at = environ; *at; ++at) {
    std::string_view name = *at;
    name = name.substr(0, name.find('='));
    if (!name.starts_with(kPrefix)) continue;
    std::string_view own = name.substr(kPrefix.size());
    if (std::ranges::find(known, own) != known.end()) continue;
    std::string_view near = nearest_name(own, known);
    stray.push_back({std::string(name), near.empty() ? "" : std::string(kPrefix).append(near)});
  }
  return stray;
}

std::string level_name(CpuLevel level) {
  return at_level<std::string>(level, "x86-64-v2", "x86-64-v3", "x86-64-v4");
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

namespace {

#ifdef __clang__
constexpr const char* kCompiler = __VERSION__;
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

Json facts() {
  DiskCache& cache = DiskCache::shared();
  Json variables = Json::object();
  for (const Variable& v : kVariables)
    if (const char* value = std::getenv(std::string(v.name).c_str()))
      variables[std::string(v.name)] = value;
  return Json{{"version", TENON_VERSION},         {"compiler", kCompiler},
              {"llvm", TENON_LLVM_VERSION},       {"cpu", cpu_model()},
              {"level", level_name(cpu_level())}, {"best_level", level_name(best_cpu_level())},
              {"threads", num_threads()},         {"memory_limit", memory_limit()},
              {"cache", cache.directory()},       {"cache_fault", cache.fault()},
              {"variables", std::move(variables)}};
}

std::string facts_text(const Json& facts) {
  auto text = [&](const char* key) { return facts[key].get<std::string>(); };
  std::string level = text("level"), best = text("best_level"), fault = text("cache_fault");
  std::vector<std::vector<std::string>> rows = {
      {"version", text("version")},
      {"built by", format("{}, LLVM {}", text("compiler"), text("llvm"))},
      {"processor", text("cpu")},
      {"level", level == best ? level : format("{}, of {}", level, best)},
      {"threads", facts["threads"].dump()},
      {"memory", bytes_text(facts["memory_limit"].get<size_t>())},
      {"cache", fault.empty() ? text("cache") : "none: " + fault}};
  std::string out = table(rows) + "\n";
  rows.clear();
  for (const Variable& v : kVariables) {
    std::string name(v.name);
    bool is_set = facts["variables"].contains(name);
    rows.push_back(
        {name, is_set ? facts["variables"][name].get<std::string>() : "-", std::string(v.meaning)});
  }
  return out + table(rows);
}

}  // namespace

void add_env(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* env = app.add_subcommand(
      "env", "Version, processor, threads, cache, and the environment variables that are read");
  env->add_flag("--json", *json, "As JSON");
  env->callback([json] {
    Json found = facts();
    if (*json) return write_json(found);
    std::string text = facts_text(found);
    for (const StrayVariable& v : stray_variables())
      text += format("unknown environment variable {}{}\n", v.name,
                     v.nearest.empty() ? "" : format("; did you mean {}?", v.nearest));
    write_out(text);
  });
}

}  // namespace tn
