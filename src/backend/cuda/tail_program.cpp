#include "backend/cuda/tail_program.h"

#include <algorithm>

#include "loop/analysis.h"

namespace tn::cuda {
namespace {

using loop::Op;
using loop::Value;
using loop::ValueId;

constexpr int kBatch = 0, kRows = 1, kColumns = 2;  // axes of a kernel behind a product

/// Writes the program. A value is a chain of operations from the result of the product on, or from
/// nothing on, beside it: each has one operand that is a load or a number, or a value beside it.
class TailWriter {
 public:
  TailWriter(const Step& step, const loop::Kernel& kernel) : step_(step), kernel_(kernel) {
    for (const Value& v : kernel.values) {
      bool any = v.op == Op::load && is_product(v.buffer);
      loop::for_each_operand(kernel, v, [&](ValueId operand) { any = any || is_main(operand); });
      is_main_.push_back(any);
    }
  }

  std::optional<TailOfStep> write() {
    const loop::Store& store = kernel_.stores[0];
    made_.result = place_of(store.buffer);
    made_.program.keeps_product = !is_product(store.buffer);
    if (!is_plain(store.index) || !write_main(store.value)) return {};
    return made_;
  }

 private:
  const Value& at(ValueId v) const { return kernel_.values[static_cast<size_t>(v)]; }
  size_t place_of(int32_t buffer) const {
    return step_.library()->in.size() + 1 + static_cast<size_t>(buffer);
  }
  bool is_product(int32_t buffer) const {
    return step_.buffers[place_of(buffer)] == step_.buffers[step_.library()->in.size()];
  }
  int64_t extent(size_t axis) const { return kernel_.axes[axis].extent.value(); }

  struct Strides {
    int64_t row, column;
  };
  /// Nothing where an index is anything but strides along rows and columns.
  std::optional<Strides> strides_of(PolyId index) const {
    const Poly& poly = kernel_.polys[index];
    auto row = loop::stride_along(kernel_, index, kRows);
    auto column = loop::stride_along(kernel_, index, kColumns);
    if (!row || !column || poly.c0 != 0) return {};
    if (poly.terms.size() != (*row != 0 ? 1u : 0u) + (*column != 0 ? 1u : 0u)) return {};
    return Strides{*row, *column};
  }
  /// Of the element that the product makes.
  bool is_plain(PolyId index) const {
    auto strides = strides_of(index);
    return strides && (strides->row == extent(kColumns) || extent(kRows) == 1) &&
           (strides->column == 1 || extent(kColumns) == 1);
  }

  bool add(TailOp op, int operand, bool is_beside, float number = 0, float least = 0) {
    TailProgram& program = made_.program;
    if (program.steps == kTailSteps) return false;
    program.step[program.steps++] = {op, operand, is_beside, number, least};
    return true;
  }
  std::optional<int> load(const Value& v) {
    auto strides = strides_of(v.index);
    if (v.mask != loop::kNone || !strides || is_product(v.buffer)) return {};
    TailProgram& program = made_.program;
    TailLoad wanted{nullptr, strides->row, strides->column};
    for (int l = 0; l < program.loads; ++l) {
      const TailLoad& known = program.load[l];
      if (made_.loads[l] == place_of(v.buffer) && known.row == wanted.row &&
          known.column == wanted.column)
        return l;
    }
    if (program.loads == kTailLoads) return {};
    made_.loads[program.loads] = place_of(v.buffer);
    program.load[program.loads] = wanted;
    return program.loads++;
  }
  static bool is_leaf(const Value& v) { return v.op == Op::load || v.op == Op::constant; }
  bool add_leaf(TailOp op, const Value& v, bool is_beside) {
    if (v.type != DType::f32) return false;
    if (v.op == Op::constant)
      return add(op, kTailNumber, is_beside, static_cast<float>(v.literal.real));
    std::optional<int> operand = load(v);
    return operand && add(op, *operand, is_beside);
  }

  /// Whether `v` depends on the product.
  bool is_main(ValueId v) const { return is_main_[static_cast<size_t>(v)]; }
  /// What `op` of x and an operand is; nothing where programs have no such operation.
  static std::optional<TailOp> tail_op(Op op, bool x_is_first) {
    switch (op) {
      case Op::add:
        return kTailAdd;
      case Op::mul:
        return kTailMultiply;
      case Op::sub:
        return x_is_first ? kTailSubtract : kTailSubtractFrom;
      case Op::max:
        return x_is_first ? std::optional(kTailLargest) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

  /// x becomes `v`.
  bool write_main(ValueId id) {
    const Value& v = at(id);
    if (v.type != DType::f32) return false;
    if (v.op == Op::load) return is_product(v.buffer) && v.mask == loop::kNone && is_plain(v.index);
    if (v.op == Op::select) return write_select(v);
    if (loop::facts(v.op).operands != 2) return false;
    bool is_first = is_main(v.a);
    ValueId other = is_first ? v.b : v.a;
    std::optional<TailOp> op = tail_op(v.op, is_first);
    if (!op || is_main(other) || !write_main(is_first ? v.a : v.b)) return false;
    if (is_leaf(at(other))) return add_leaf(*op, at(other), false);
    return write_beside(other) && add(*op, kTailBeside, false);
  }

  /// x where a number is less than what does not depend on the product, else another number.
  bool write_select(const Value& v) {
    const Value &test = at(v.a), &other = at(v.c);
    if (test.op != Op::lt || other.op != Op::constant || other.type != DType::f32) return false;
    const Value& least = at(test.a);
    if (least.op != Op::constant || least.type != DType::f32 || is_main(test.b)) return false;
    return write_main(v.b) && write_beside(test.b) &&
           add(kTailKeepAbove, kTailNumber, false, static_cast<float>(other.literal.real),
               static_cast<float>(least.literal.real));
  }

  /// y becomes `v`, which does not depend on the product.
  bool write_beside(ValueId id) {
    const Value& v = at(id);
    if (v.type != DType::f32) return false;
    if (is_leaf(v)) return add_leaf(kTailSet, v, true);
    if (loop::facts(v.op).operands != 2) return false;
    bool is_first = is_leaf(at(v.b));
    std::optional<TailOp> op = tail_op(v.op, is_first);
    ValueId leaf = is_first ? v.b : v.a;
    return op && is_leaf(at(leaf)) && write_beside(is_first ? v.a : v.b) &&
           add_leaf(*op, at(leaf), true);
  }

  const Step& step_;
  const loop::Kernel& kernel_;
  std::vector<bool> is_main_;  // by value
  TailOfStep made_;
};

}  // namespace

TailProgram TailOfStep::at(void* const* buffers) const {
  TailProgram made = program;
  made.out = static_cast<float*>(buffers[result]);
  for (int l = 0; l < made.loads; ++l)
    made.load[l].first = static_cast<const float*>(buffers[loads[l]]);
  return made;
}

std::optional<TailOfStep> tail_program_of(const Step& step) {
  constexpr size_t kMostValues = 32;
  const loop::Kernel& kernel = *step.library()->after.kernel;
  if (kernel.stores.size() != 1 || kernel.axes.size() != 3 || kernel.values.size() > kMostValues)
    return {};
  const loop::Store& store = kernel.stores[0];
  auto is_fixed = [](const loop::KernelAxis& axis) { return axis.extent.is_const(); };
  bool is_plain = store.mask == loop::kNone && store.combine == loop::Combine::set &&
                  !store.scattered && std::ranges::all_of(kernel.axes, is_fixed) &&
                  kernel.axes[kBatch].extent.is(1) &&
                  kernel.buffers[static_cast<size_t>(store.buffer)].type == DType::f32;
  return is_plain ? TailWriter(step, kernel).write() : std::nullopt;
}

}  // namespace tn::cuda
