#pragma once
// The tables of library kernels of the CPU, one for each file of this folder. Where an op has
// several kernels, the first that claims the operands is taken.
#include "backend/cpu/cpu_level.h"
#include "plan/library.h"

namespace tn::cpu {

using LibraryTable = std::span<const LibraryKernel>;

LibraryTable attention_kernels();
LibraryTable convolution_kernels();
LibraryTable factor_kernels();
LibraryTable fourier_kernels();
LibraryTable host_kernels();
LibraryTable indexing_kernels();
LibraryTable product_kernels();
LibraryTable random_kernels();
LibraryTable sort_kernels();
LibraryTable window_kernels();

/// Adds a table that the runtime library is without. Called when the library is loaded.
void add_kernels(LibraryTable table);
/// Of all tables.
const LibraryKernel* library_kernel(const OpDef& op, Types in);

/// The types that tiled kernels are written for.
inline bool is_f32_or_f64(Types in) {
  return in[0]->dtype == DType::f32 || in[0]->dtype == DType::f64;
}
/// Operands are packed for the kernels of a CPU level.
PackedLayout packed_layout();
inline bool is_known(PackedLayout layout) { return layout <= static_cast<int>(CpuLevel::v4); }

}  // namespace tn::cpu
