#include "backend/cuda/own_kernels.h"

#include <climits>
#include <map>
#include <mutex>
#include <set>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/plan_state.h"
#include "base/error.h"
#include "runtime/later.h"

namespace tn::cuda {
namespace {

struct OwnCode {
  std::mutex mutex;
  std::map<const char*, std::string> brought;  // PTX of files, by what the library has for it
  std::map<std::pair<std::string, int>, std::shared_ptr<const KernelImage>> images;
  std::set<std::pair<std::string, int>> asked;  // to be assembled in the background
};
OwnCode& own_code() {
  static auto& only = *new OwnCode;
  return only;
}

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

/// Under the lock.
std::string text_of(const OwnCode& all, std::string_view ptx, const std::string& name) {
  auto brought = all.brought.find(ptx.data());
  return only_kernel(brought == all.brought.end() ? ptx : brought->second, name);
}

void assemble_later(std::string text, const std::string& name, int architecture) {
  if (!run_later) return;
  auto job = [text = std::move(text), name, architecture] {
    try {
      auto made =
          std::make_shared<const KernelImage>(KernelImage{assemble_own(text, architecture)});
      if (made->is_ptx()) return;
      std::lock_guard lock(own_code().mutex);
      own_code().images.try_emplace({name, architecture}, std::move(made));
    } catch (const std::exception&) {  // kernels are compiled, which reports it
    }
  };
  run_later(std::move(job), false);
}

/// Made once per kernel and architecture. Calls are under the lock of a GPU's stream, and there may
/// be several GPUs.
std::shared_ptr<const KernelImage> image_of(std::string_view ptx, const std::string& name,
                                            int architecture) {
  OwnCode& all = own_code();
  std::lock_guard lock(all.mutex);
  std::shared_ptr<const KernelImage>& image = all.images[{name, architecture}];
  if (image) return image;
  std::string text = text_of(all, ptx, name);
  bool assembles = assemble_own && assembles_own;
  image = std::make_shared<const KernelImage>(
      KernelImage{assembles ? assemble_own(text, architecture) : std::move(text)});
  return image;
}

}  // namespace

std::shared_ptr<const KernelImage> own_image_now(std::string_view ptx, const std::string& name,
                                                 int architecture) {
  OwnCode& all = own_code();
  std::unique_lock lock(all.mutex);
  auto known = all.images.find({name, architecture});
  if (known != all.images.end()) return known->second;
  bool assembles = assemble_own && assembles_own;
  if (assembles && !all.asked.insert({name, architecture}).second) return nullptr;
  std::string text = text_of(all, ptx, name);
  if (!assembles || !find_own) {
    auto made = std::make_shared<const KernelImage>(KernelImage{std::move(text)});
    return all.images[{name, architecture}] = made;
  }
  lock.unlock();
  std::optional<std::string> kept = find_own(text, architecture);
  if (!kept) return assemble_later(std::move(text), name, architecture), nullptr;
  lock.lock();
  auto made = std::make_shared<const KernelImage>(KernelImage{std::move(*kept)});
  return all.images[{name, architecture}] = made;
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
  Gpu& gpu = *call_place.gpu;
  invariant(blocks <= INT_MAX, "cuda:{}: {} would need {} blocks", gpu.index, name, blocks);
  CudaKernel kernel;
  kernel.image = image_of(ptx, name, architecture_of(gpu.target));
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
