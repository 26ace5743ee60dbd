#include "backend/cpu/library/cpu_library.h"

#include <algorithm>
#include <vector>

namespace tn::cpu {
namespace {

/// All tables as one, by op.
std::vector<LibraryKernel> all_kernels() {
  std::vector<LibraryKernel> all;
  for (LibraryTable table : {attention_kernels(), convolution_kernels(), factor_kernels(),
                             fourier_kernels(), host_kernels(), indexing_kernels(),
                             product_kernels(), random_kernels(), sort_kernels(), window_kernels()})
    all.insert(all.end(), table.begin(), table.end());
  std::ranges::stable_sort(all, std::less<>(), &LibraryKernel::op);
  return all;
}

std::vector<LibraryKernel>& kernels() {
  static auto& all = *new std::vector<LibraryKernel>(all_kernels());
  return all;
}
// At load: a fork while another thread makes it would leave it half-made in the child.
[[maybe_unused]] const auto& kernels_at_load = kernels();

}  // namespace

void add_kernels(LibraryTable table) {
  std::vector<LibraryKernel>& all = kernels();
  all.insert(all.end(), table.begin(), table.end());
  std::ranges::stable_sort(all, std::less<>(), &LibraryKernel::op);
}

const LibraryKernel* library_kernel(const OpDef& op, Types in) {
  for (const LibraryKernel& kernel :
       std::ranges::equal_range(kernels(), &op, std::less<>(), &LibraryKernel::op))
    if (!kernel.claims || kernel.claims(in)) return &kernel;
  return nullptr;
}

PackedLayout packed_layout() { return static_cast<PackedLayout>(cpu_level()); }

}  // namespace tn::cpu
