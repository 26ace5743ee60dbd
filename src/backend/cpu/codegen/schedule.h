#pragma once
// Schedule: in which loops the values of a kernel are computed, and along which axis vectors lie.
//
//   flat     no reductions: vectors along one par axis
//   rows     a unit is one par point; sweeps go along the inner (red) axes by vectors
//   columns  a unit is a tile of one par axis by vectors; sweeps step through the inner axes
//
// Sweep k ends with the reductions that need k others before them. Stores wait for the last sweep,
// so that a result may share the memory of an operand.
#include "backend/cpu/codegen/codegen.h"
#include "loop/analysis.h"
namespace tn::cpu {

using loop::axes_in;
using loop::is_linear_along;
using loop::stride_along;

enum class Mode : uint8_t { flat, rows, columns };

struct Sweep {
  std::vector<loop::ValueId> reductions;  // that end with it
};

struct Schedule {
  loop::Kernel kernel;  // of plain operations
  KernelForm form = KernelForm::whole;
  CpuLevel level = CpuLevel::v3;
  int vector_bits = 256;
  Mode mode = Mode::flat;
  std::vector<Dim> extents;
  std::vector<int> par, inner;  // axes, outermost first
  loop::AxisSet inner_axes = 0;
  int vector_axis = -1;   // none: scalar code
  int lanes = 1;          // of a vector
  int copies = 1;         // vectors of one iteration
  int tile_axis = -1;     // flat: the copies lie along this axis, where some loads are contiguous
  bool unrolled = false;  // a sweep has no loop; in rows its values live on in registers
  bool spread = false;    // rows: neighbours along the sweep differ in several axes
  bool ordered = false;   // scattered stores: one unit, points in order
  Dim points = 1;         // of the par axes
  Dim extent = 1;         // of the inner axes
  int64_t block = 1;      // flat, columns: elements of a unit along the vector axis
  Dim chunk_units = 1;    // two phases: units of one row
  bool two_phases = false;
  Dim units = 1;
  int ops = 0;  // of one point

  std::vector<int> depth;     // by value: the reductions before it
  std::vector<bool> needed;   // by value
  std::vector<bool> inside;   // by value: a cast that need not saturate
  std::vector<Sweep> sweeps;  // empty in flat
  std::vector<int> kept;      // rows: values that later sweeps take from scratch: number or -1
  std::vector<bool> stored_in_sweep;  // by store: inside of the last sweep, else after it

  std::vector<std::string> symbols;  // in order
  std::vector<Binding> sizes;        // likely values of the symbols

  /// What a size is likely to be: for choices that leave the results alone.
  int64_t likely(Dim size) const { return evaluate(size, sizes); }
  /// Whether the axis may have more than one point.
  bool is_wide(int axis) const { return bounds(extents[static_cast<size_t>(axis)]).hi > 1; }
  const loop::Value& value(loop::ValueId id) const {
    return kernel.values[static_cast<size_t>(id)];
  }
  /// Elements of one iteration along the vector axis.
  int64_t step() const { return tile_axis < 0 ? int64_t{lanes} * copies : lanes; }
  Dim vector_extent() const {
    return vector_axis < 0 ? Dim(1) : extents[static_cast<size_t>(vector_axis)];
  }
};

/// A unit covers `step` places of each par axis, and `count` units lie along it; innermost first.
struct UnitAxis {
  int axis;
  Dim count;
  int64_t step;
};
std::vector<UnitAxis> unit_axes(const Schedule& schedule);

/// Nothing when the kernel has no native form; `why` then says what stands against it.
std::optional<Schedule> make_schedule(const KernelRequest& request, const CodeTarget& target,
                                      std::string* why = nullptr);

}  // namespace tn::cpu
