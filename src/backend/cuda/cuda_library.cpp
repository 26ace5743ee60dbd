#include "backend/cuda/cuda_library.h"

#include <algorithm>

#include "backend/cuda/cuda_attention.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cuda_convolutions.h"
#include "backend/cuda/cuda_joining.h"
#include "backend/cuda/cuda_products.h"
#include "backend/cuda/cuda_running.h"
#include "backend/cuda/cuda_scatter.h"
#include "backend/cuda/cuda_sorts.h"
#include "backend/cuda/cuda_windows.h"
#include "backend/cuda/own_kernels.h"
#include "backend/cuda/prebuilt/prebuilt.h"
#include "base/bytes.h"

namespace tn::cuda {

constinit thread_local CallPlace call_place;

namespace {

/// Kernels, and the prebuilt code that they launch.
struct Family {
  std::span<const LibraryKernel> (*table)();
  std::string_view code[2];
};
constexpr Family kFamilies[] = {
    {attention_kernels, {"attention", "attention_hopper"}},
    {attention_gradient_kernels, {"attention_gradient"}},
    {conv_kernels, {"convolution"}},
    {joining_kernels, {"joining"}},
    {product_kernels, {"product"}},
    {running_kernels, {"running"}},
    {scatter_kernels, {"scatter", "sort"}},
    {sort_kernels, {"sort"}},
    {window_kernels, {"window"}},
};

}  // namespace

const LibraryKernel* library_kernel(const OpDef& op, Types in, const Target& target) {
  // The host computes what is no loop nest.
  if (architecture_of(target) < kPrebuiltArch) return nullptr;
  for (const Family& family : kFamilies)
    for (const LibraryKernel& kernel : family.table())
      if (kernel.op == &op && (!kernel.claims || kernel.claims(in))) return &kernel;
  return nullptr;
}

std::string library_code(std::span<const LibraryKernel* const> used) {
  auto is_used = [&](std::string_view name) {
    return std::ranges::any_of(kFamilies, [&](const Family& family) {
      if (std::ranges::find(family.code, name) == std::end(family.code)) return false;
      return std::ranges::any_of(
          family.table(), [&](const LibraryKernel& k) { return std::ranges::count(used, &k) > 0; });
    });
  };
  std::vector<Prebuilt> needed;
  std::ranges::copy_if(prebuilt(), std::back_inserter(needed),
                       [&](const Prebuilt& code) { return is_used(code.name); });
  if (needed.empty()) return "";
  ByteWriter out;
  out(prebuilt_version());
  out.list(needed, [](ByteWriter& w, const Prebuilt& code) { w(code.name), w(code.ptx); });
  return std::move(out.bytes);
}

bool take_library_code(std::string_view bytes) {
  ByteReader in(bytes);
  if (in.read<std::string_view>() != prebuilt_version()) return false;
  for (auto count = in.read<uint64_t>(); count > 0; --count) {
    auto name = in.read<std::string_view>();
    auto code = in.read<std::string_view>();
    for (const Prebuilt& known : prebuilt())
      if (known.name == name) take_own_code(known.ptx, code);
  }
  return true;
}

}  // namespace tn::cuda
