#pragma once
// LoopIR: one kernel is a nest of loops over axes and a list of scalar values computed at their
// points.
//
// Three rules carry the design:
//   - a value knows the set of axes it varies over; that set decides in which loop it is computed;
//   - a view is not a value: it is a substitution in the index of a load;
//   - there are no branches: a load has a mask (a conjunction of `poly >= 0`) and reads 0 where it
//   is false.
// Arithmetic is exact to the letter: no contraction, no reassociation, `fma` only where written.
// Elements are bool, integers, f32 and f64; narrower floats exist in memory and are cast after the
// load and before the store; a complex number is two reals side by side in memory.
#include <memory>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "ir/poly.h"
#include "loop/op.h"
#include "tenon/shape.h"

namespace tn::loop {

struct OpFacts {
  std::string_view name;
  int8_t operands;
  bool math = false;      // a macro: loop/math.h defines it by the other operations
  bool compares = false;  // the result is bool
  bool narrow = false;    // has a shorter form for results that are rounded to narrow floats
};
const OpFacts& facts(Op op);

std::string_view name_of(Monoid monoid);

enum class AxisKind : uint8_t { par, red, scan };
struct KernelAxis {
  Dim extent;
  AxisKind kind = AxisKind::par;
};
using AxisSet = uint32_t;

using ValueId = int32_t;
using MaskId = int32_t;
inline constexpr int32_t kNone = -1;

/// One scalar value at a point of the axes in `axes`.
struct Value {
  Op op = Op::constant;
  DType type = DType::f32;
  Monoid monoid = Monoid::add;  // reduce, scan
  bool reverse = false;         // scan: from the last point to the first
  bool exclusive = false;       // scan: without the point itself
  bool narrow = false;          // math: the shorter form, of an op on narrow floats
  AxisSet axes = 0;
  AxisSet over = 0;  // reduce, scan: the axes it runs along
  ValueId a = kNone, b = kNone, c = kNone;
  int32_t buffer = kNone;  // load
  PolyId index{};          // load, index
  MaskId mask = kNone;     // load
  Scalar literal = {};     // constant
};

/// How a store combines with what is there. Anything but `set` needs the buffer initialised by an
/// earlier step.
enum class Combine : uint8_t { set, add, mul, max, min };

struct Store {
  int32_t buffer;
  PolyId index{};
  ValueId value;
  MaskId mask = kNone;
  Combine combine = Combine::set;
  bool scattered =
      false;  // the index holds loaded values: points may collide, so they run in order
};

struct BufferParam {
  std::string name;
  DType type;  // a real type: c64 appears as f32 with indices doubled
  Dim size;    // in elements of `type`
  bool written = false;
};

/// A conjunction: every polynomial is >= 0.
using Mask = std::vector<PolyId>;

struct Kernel {
  std::string name;
  std::vector<KernelAxis> axes;  // outermost first; axis k of a polynomial is axes[k]
  std::vector<Value> values;     // operands before users
  std::vector<Store> stores;
  std::vector<BufferParam> buffers;
  std::vector<Mask> masks;
  int arguments = 0;  // scalars given at run time
  PolyTable polys;
};

/// The canonical text; what prints, parses.
///
///     kernel softplus(x: f32[24]) -> (y: f32[24]) {
///       axes p0:24 par
///       v0 = load x[p0] : f32
///       v1 = exp v0 : f32
///       v2 = log1p v1 : f32
///       store y[p0] = v2
///     }
std::string to_text(const Kernel& kernel);
Kernel parse_kernel(std::string_view text);
/// Checks types, axis sets, operand order and indices; an internal error names what is wrong.
void verify(const Kernel& kernel);

}  // namespace tn::loop
