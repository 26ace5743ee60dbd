#include "backend/cuda/own_kernels.h"

#include <algorithm>
#include <climits>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/plan_state.h"
#include "base/at_fork.h"
#include "base/error.h"
#include "runtime/later.h"
#include "runtime/own_thread.h"
#include "runtime/threads.h"

namespace tn::cuda {
namespace {

using Image = std::shared_ptr<const KernelImage>;
using Key = std::pair<std::string, int>;  // the name of a kernel, and the architecture

struct OwnCode {
  std::mutex mutex;
  PerProcess<std::condition_variable> changed;
  std::map<const char*, std::string> brought;  // PTX of files, by what the library has for it
  std::map<Key, Image> images;
  std::set<Key> making;  // what some thread assembles
  std::set<Key> asked;   // to be assembled in the background
};
OwnCode& own_code() {
  static auto& only = guarded_for_process<OwnCode>(kInnermost);
  // A child of fork has not the threads that were assembling.
  static const bool registered = (in_child_after_fork([] { only.making.clear(); }), true);
  (void)registered;
  return only;
}
[[maybe_unused]] OwnCode& own_code_at_load = own_code();

/// PTX with one of its kernels: assembling all of them would take seconds.
std::string only_kernel(std::string_view ptx, std::string_view name) {
  constexpr std::string_view kBegin = ".visible .entry ", kEnd = "\n}\n";
  std::string made;
  size_t at = 0;
  for (size_t begin; (begin = ptx.find(kBegin, at)) != std::string_view::npos;) {
    size_t end = ptx.find(kEnd, begin);
    end = end == std::string_view::npos ? ptx.size() : end + kEnd.size();
    made += ptx.substr(at, begin - at);
    std::string_view its = ptx.substr(begin + kBegin.size(), end - begin - kBegin.size());
    if (its.substr(0, its.find('(')) == name) made += ptx.substr(begin, end - begin);
    at = end;
  }
  return made += ptx.substr(at);
}

std::string text_of(const OwnKernel& kernel) {
  OwnCode& all = own_code();
  std::unique_lock lock(all.mutex);
  auto brought = all.brought.find(kernel.ptx.data());
  std::string_view text = brought == all.brought.end() ? kernel.ptx : brought->second;
  lock.unlock();  // what was brought stays
  return only_kernel(text, kernel.name);
}

Image make_image(const OwnKernel& kernel, int architecture) {
  std::string text = text_of(kernel);
  bool assembles = assemble_own && assembles_own;
  return std::make_shared<const KernelImage>(
      KernelImage{assembles ? assemble_own(text, architecture) : std::move(text)});
}

Image image_of(const OwnKernel& kernel, int architecture) {
  OwnCode& all = own_code();
  for (;;) {  // again where the thread that was making it has failed
    make_own_code({&kernel, 1}, architecture);
    std::lock_guard lock(all.mutex);
    auto known = all.images.find({kernel.name, architecture});
    if (known != all.images.end()) return known->second;
  }
}

void make_later(const OwnKernel& kernel, int architecture) {
  if (!run_later) return;
  auto job = [kernel, architecture] {
    OnOwnThread alone;
    try {
      make_own_code({&kernel, 1}, architecture);
    } catch (const std::exception&) {  // kernels are compiled, which reports it
    }
  };
  run_later(std::move(job), false);
}

}  // namespace

void make_own_code(std::span<const OwnKernel> wanted, int architecture) {
  OwnCode& all = own_code();
  std::vector<const OwnKernel*> missing;
  missing.reserve(wanted.size());
  auto end = [&](const OwnKernel& kernel, Image made) {
    std::lock_guard lock(all.mutex);
    if (made) all.images.try_emplace({kernel.name, architecture}, std::move(made));
    all.making.erase({kernel.name, architecture});
    all.changed->notify_all();
  };
  auto is_made = [&](const OwnKernel& kernel) {
    return !all.making.contains({kernel.name, architecture});
  };
  try {
    std::unique_lock lock(all.mutex);
    for (const OwnKernel& kernel : wanted)
      if (Key key{kernel.name, architecture};
          !all.images.contains(key) && all.making.insert(std::move(key)).second)
        missing.push_back(&kernel);
    lock.unlock();
    parallel_for(static_cast<int64_t>(missing.size()), [&](int64_t i) {
      const OwnKernel& kernel = *missing[static_cast<size_t>(i)];
      end(kernel, make_image(kernel, architecture));
    });
  } catch (...) {
    for (const OwnKernel* kernel : missing) end(*kernel, nullptr);
    throw;
  }
  std::unique_lock lock(all.mutex);
  all.changed->wait(lock, [&] { return std::ranges::all_of(wanted, is_made); });
}

std::shared_ptr<const KernelImage> own_image_now(std::string_view ptx, const std::string& name,
                                                 int architecture) {
  OwnCode& all = own_code();
  OwnKernel kernel{ptx, name};
  bool assembles = assemble_own && assembles_own;
  {
    std::lock_guard lock(all.mutex);
    auto known = all.images.find({name, architecture});
    if (known != all.images.end())
      return assembles && known->second->is_ptx() ? nullptr : known->second;
    if (assembles && !all.asked.insert({name, architecture}).second) return nullptr;
  }
  std::string code = text_of(kernel);
  if (assembles) {
    std::optional<std::string> kept = find_own(code, architecture);
    if (!kept) return make_later(kernel, architecture), nullptr;
    code = std::move(*kept);
  }
  auto made = std::make_shared<const KernelImage>(KernelImage{std::move(code)});
  std::lock_guard lock(all.mutex);
  return all.images.try_emplace({name, architecture}, std::move(made)).first->second;
}

void take_own_code(std::string_view ptx, std::string_view code) {
  OwnCode& all = own_code();
  std::lock_guard lock(all.mutex);
  all.brought.try_emplace(ptx.data(), code);
}

std::string_view own_name(DType type) {
  switch (type) {
    case DType::b1:
    case DType::u8:
      return "u8";
    case DType::i8:
      return "i8";
    case DType::u16:
      return "u16";
    case DType::i16:
      return "i16";
    case DType::u32:
      return "u32";
    case DType::i32:
      return "i32";
    case DType::u64:
      return "u64";
    case DType::i64:
      return "i64";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    default:
      return "";
  }
}

void launch_own(std::string_view ptx, const std::string& name, int64_t blocks, int64_t shared_bytes,
                void* params, int threads) {
  if (blocks == 0) return;
  if (call_place.wanted) return void(call_place.wanted->push_back({ptx, name}));
  Gpu& gpu = *call_place.gpu;
  invariant(blocks <= INT_MAX, "cuda:{}: {} would need {} blocks", gpu.index, name, blocks);
  CudaKernel kernel;
  kernel.image = image_of({ptx, name}, architecture_of(gpu.target));
  kernel.entries.push_back({name, 1, 1, shared_bytes, {}});
  void* list[] = {params};
  check(gpu.driver,
        gpu.driver.cuLaunchKernel(functions_of(gpu, kernel)[0], static_cast<unsigned>(blocks), 1, 1,
                                  static_cast<unsigned>(threads), 1, 1,
                                  static_cast<unsigned>(shared_bytes), call_place.stream, list,
                                  nullptr),
        name);
}

}  // namespace tn::cuda
