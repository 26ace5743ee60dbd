// `tenon doctor`: whether everything that the library relies on is as it should be.
#include <sys/statvfs.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "backend/cpu/kernels/lapack.h"
#include "backend/cuda/assembler.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cuda_library.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/output.h"
#include "runtime/memory_use.h"
#include "runtime/threads.h"
#include "storage/disk_cache.h"
#include "storage/seal.h"
#include "tenon/device.h"
#include "tenon/executable.h"
#include "tenon/tenon.h"

namespace tn {
namespace {

enum class State : uint8_t { good, poor, bad };

struct Finding {
  State state = State::good;
  std::string found, advice = {};
};

Finding check_level() {
  std::string used = level_name(cpu_level()), best = level_name(best_cpu_level());
  if (used == best) return {State::good, used};
  return {State::poor, format("{}, although the processor has {}", used, best),
          "unset TENON_CPU_LEVEL"};
}

Finding check_threads() {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  int threads = num_threads();
  std::string found = format("{} threads, {} cores", threads, cores);
  if (threads <= cores) return {State::good, found};
  return {State::poor, found, "more threads than cores wait for each other: TENON_NUM_THREADS"};
}

Finding check_huge_pages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string modes;
  std::getline(file, modes);
  if (modes.find("[never]") == modes.npos) return {State::good, modes};
  return {State::poor, modes,
          "large tensors are slower: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"};
}

Finding check_cache() {
  DiskCache& cache = DiskCache::shared();
  if (cache.directory().empty()) {
    const char* wanted = std::getenv("TENON_CACHE");
    if (wanted && *wanted) return {State::poor, cache.fault(), "unset TENON_CACHE"};
    return {State::poor, "this user has no home for it", "set TENON_CACHE_DIR, or HOME"};
  }
  if (!cache.fault().empty())
    return {State::bad, cache.fault(), "make it yours alone: chmod 700, or set TENON_CACHE_DIR"};
  std::string key = format("doctor {}", getpid());
  cache.put(key, key);
  bool kept = cache.get(key) == key;
  cache.remove(key);
  if (kept) return {State::good, cache.directory()};
  return {State::bad, cache.directory() + " keeps nothing",
          "look at its rights, the space and the quota"};
}

Finding check_key() {
  std::string seal = seal_of("doctor");
  if (!seal.empty() && seal_fits("doctor", seal)) return {State::good, "there, and its seals fit"};
  return {State::poor, "there is none, and none can be made",
          "saved executables are compiled again when they are loaded: give this user a home"};
}

Finding check_space() {
  constexpr uint64_t kEnough = uint64_t{1} << 30;
  const std::string& folder = DiskCache::shared().directory();
  struct statvfs s;
  if (folder.empty() || statvfs(folder.c_str(), &s) != 0) return {State::good, "not looked at"};
  uint64_t left = uint64_t{s.f_bavail} * s.f_frsize;
  std::string found = format("{} free at {}", bytes_text(left), folder);
  if (left >= kEnough) return {State::good, found};
  return {State::poor, found, "`tenon cache trim --to 100M` makes some"};
}

Finding check_lapack() {
  try {
    lapack::find("sgetrf_");
    return {State::good, "there"};
  } catch (const UserError& error) {
    return {State::poor, error.what(), "only tn.linalg needs it"};
  }
}

Finding check_variables() {
  std::vector<std::string> names;
  try {
    default_device();
  } catch (const Error& error) {
    std::string_view text = error.what();
    return {State::bad, std::string(text.substr(0, text.find('\n'))),
            "unset TENON_DEVICE, or name one of tn.devices()"};
  }
  for (const StrayVariable& v : stray_variables())
    names.push_back(v.nearest.empty() ? v.name : format("{} ({}?)", v.name, v.nearest));
  if (names.empty()) return {State::good, "all known"};
  return {State::poor, format("of no meaning: {}", join(names, ", ")),
          "`tenon env` lists those known"};
}

/// A small function: machine code, beside the interpreter.
Finding check_compiler() {
  auto begin = std::chrono::steady_clock::now();
  DeviceScope host({});
  try {
    auto f = compile(
        [](const Tensors& x) { return Tensors{sum(exp(matmul(x[0], x[1]) * 0.01) + x[0], 1)}; },
        CompileSettings{.check = true});
    Tensor x = random::normal({65, 65}, 0, 1, DType::f32, random::key(1));
    f({x, x})[0].eval();
  } catch (const Error& error) {
    return {State::bad, error.what(), "this is a defect: please report it with `tenon env`"};
  }
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return {State::good, format("the same bits as the interpreter, {}", seconds_text(took.count()))};
}

/// An executable that was saved and is loaded.
Finding check_files() {
  std::string path = std::filesystem::temp_directory_path() / format("tenon-{}.tnx", getpid());
  Finding found;
  DeviceScope host({});
  try {
    auto twice = [](const Tensors& x) { return Tensors{x[0] * 2}; };
    compile_ahead(twice, {{.shape = {3}}}).save(path);
    Executable f = Executable::load(path);
    bool right = f({array({1.f, 2.f, 3.f})})[0].to_vector<float>()[2] == 6;
    found = {right ? State::good : State::bad, format("saved and {}", f.stats().origin)};
  } catch (const Error& error) {
    found = {State::bad, error.what(), "TMPDIR names a folder that can be written"};
  }
  unlink(path.c_str());
  return found;
}

/// What there is for GPUs; a machine without one lacks nothing.
Finding check_cuda() {
  const cuda::LoadedDriver& driver = cuda::driver_of_machine();
  if (!driver.table)
    return {State::good, format("none: {}", driver.fault),
            "for NVIDIA GPUs install their driver, 525 or newer"};
  std::string found =
      format("driver for CUDA {}.{}", driver.version / 1000, driver.version % 1000 / 10);
  for (int i = 0; i < driver.devices; ++i) {
    char name[128] = "";
    driver.table->cuDeviceGetName(name, sizeof name, i);
    Target target = cuda::target_of_device(*driver.table, i);
    found += format("; cuda:{}: {} ({})", i, name, name_of(target));
  }
  found += format("; kernels are assembled by {}", cuda::assembler_name());
  std::string products = cuda::products_library();
  if (products.empty())
    return {State::poor, found + "; no cuBLASLt: own kernels compute products",
            "pip install nvidia-cublas"};
  return {State::good, format("{}; products by {}", found, products)};
}

struct Check {
  const char* name;
  Finding (*run)();
};

constexpr Check kChecks[] = {
    {"processor", check_level},
    {"threads", check_threads},
    {"huge pages", check_huge_pages},
    {"cache", check_cache},
    {"key", check_key},
    {"disk", check_space},
    {"LAPACK", check_lapack},
    {"variables", check_variables},
    {"compiler", check_compiler},
    {"executables", check_files},
    {"CUDA", check_cuda},
};

/// What is wrong with one thing, such as a variable, is found and ends nothing.
Finding result_of(const Check& check) {
  try {
    return check.run();
  } catch (const Error& error) {
    return {State::bad, error.what()};
  }
}

constexpr const char* kStates[] = {"ok", "poor", "BAD"};

}  // namespace

void add_doctor(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* doctor = app.add_subcommand(
      "doctor", "Check what the library relies on, and say what to do about what is wrong");
  doctor->add_flag("--json", *json, "As JSON");
  doctor->callback([json] {
    State worst = State::good;
    Json all = Json::array();
    std::vector<std::vector<std::string>> rows;
    for (const Check& check : kChecks) {
      Finding f = result_of(check);
      worst = std::max(worst, f.state);
      const char* state = kStates[static_cast<int>(f.state)];
      all.push_back(
          {{"check", check.name}, {"state", state}, {"found", f.found}, {"advice", f.advice}});
      rows.push_back({state, check.name, f.found});
      if (!f.advice.empty()) rows.push_back({"", "", "-> " + f.advice});
    }
    if (*json)
      write_json(all);
    else
      write_out(table(rows));
    if (worst == State::bad) throw CLI::RuntimeError(kUserFault);
  });
}

}  // namespace tn
