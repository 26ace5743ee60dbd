#include "backend/cuda/product_tail.h"

#include <cmath>

namespace tn::cuda {
namespace {

using loop::Op;
using loop::Value;
using loop::ValueId;

/// Expressions of a kernel. Every question is answered for the value behind conversions.
class Expressions {
 public:
  explicit Expressions(const loop::Kernel& kernel) : kernel_(kernel) {}

  const Value& operator[](ValueId v) const { return kernel_.values[static_cast<size_t>(v)]; }

  ValueId behind_casts(ValueId v) const {
    while ((*this)[v].op == Op::cast && is_float((*this)[v].type) &&
           is_float((*this)[(*this)[v].a].type))
      v = (*this)[v].a;
    return v;
  }
  bool is_constant(ValueId v, double wanted) const {
    const Value& x = (*this)[behind_casts(v)];
    return x.op == Op::constant && std::abs(x.literal.real - wanted) <= 1e-6 * std::abs(wanted);
  }
  /// The other operand of a sum, product or maximum that `is_one` holds for one operand of.
  template <class F>
  std::optional<ValueId> other(Op op, ValueId v, F is_one) const {
    const Value& x = (*this)[behind_casts(v)];
    if (x.op != op) return {};
    if (is_one(x.a)) return behind_casts(x.b);
    if (is_one(x.b)) return behind_casts(x.a);
    return {};
  }
  std::optional<ValueId> times(ValueId v, double factor) const {
    return other(Op::mul, v, [&](ValueId x) { return is_constant(x, factor); });
  }

  /// x of max(x, 0).
  std::optional<ValueId> of_relu(ValueId v) const {
    return other(Op::max, v, [&](ValueId x) { return is_constant(x, 0); });
  }
  /// x of x·sigmoid(2·sqrt(2/π)·(x + 0.044715·x³)).
  std::optional<ValueId> of_gelu_tanh(ValueId v) const {
    auto is_sigmoid = [&](ValueId x) { return (*this)[behind_casts(x)].op == Op::sigmoid; };
    std::optional<ValueId> x = other(Op::mul, v, is_sigmoid);
    if (!x) return {};
    const Value& product = (*this)[behind_casts(v)];
    ValueId sigmoid = behind_casts(is_sigmoid(product.a) ? product.a : product.b);
    std::optional<ValueId> sum = times((*this)[sigmoid].a, 1.5957691216057308);
    auto is_x = [&](ValueId y) { return behind_casts(y) == *x; };
    std::optional<ValueId> cubic = sum ? other(Op::add, *sum, is_x) : std::nullopt;
    std::optional<ValueId> cube = cubic ? times(*cubic, 0.044715) : std::nullopt;
    std::optional<ValueId> square = cube ? other(Op::mul, *cube, is_x) : std::nullopt;
    std::optional<ValueId> last = square ? other(Op::mul, *square, is_x) : std::nullopt;
    return last && is_x(*last) ? x : std::nullopt;
  }

 private:
  const loop::Kernel& kernel_;
};

bool is_column(const loop::Kernel& kernel, PolyId index) {
  constexpr uint32_t kColumns = 2;  // behind batch and rows
  std::optional<AtomId> atom = kernel.polys.as_atom(index);
  return atom && kernel.polys.atom(*atom).kind == AtomKind::axis &&
         kernel.polys.atom(*atom).a == kColumns;
}

}  // namespace

std::optional<ProductTail> tail_of(const loop::Kernel& kernel, int32_t product) {
  if (kernel.stores.size() != 1 || kernel.axes.size() != 3) return {};
  const loop::Store& store = kernel.stores[0];
  if (store.mask != loop::kNone || store.combine != loop::Combine::set || store.scattered)
    return {};
  Expressions all(kernel);
  ProductTail tail{.result = store.buffer};
  ValueId v = all.behind_casts(store.value);
  if (auto x = all.of_relu(v))
    tail.activation = Activation::relu, v = *x;
  else if (auto y = all.of_gelu_tanh(v))
    tail.activation = Activation::gelu_tanh, v = *y;
  auto is_product = [&](ValueId x) {
    const Value& load = all[all.behind_casts(x)];
    return load.op == Op::load && load.buffer == product && load.mask == loop::kNone &&
           load.index == store.index;
  };
  auto type_of = [&](int32_t buffer) { return kernel.buffers[static_cast<size_t>(buffer)].type; };
  if (!is_product(v)) {
    std::optional<ValueId> bias = all.other(Op::add, v, is_product);
    if (!bias) return {};
    const Value& load = all[*bias];
    if (load.op != Op::load || load.mask != loop::kNone || !is_column(kernel, load.index) ||
        type_of(load.buffer) != type_of(product))
      return {};
    tail.bias = load.buffer;
  } else if (tail.activation == Activation::none) {
    return {};
  }
  if (type_of(tail.result) != type_of(product)) return {};
  return tail;
}

std::optional<ProductTail> tail_of(const Step& step) {
  const loop::Kernel& kernel = *step.library()->after.kernel;
  size_t result = step.library()->in.size(), own = result + 1;  // among the buffers of the step
  auto is_result = [&](int32_t buffer) {
    return step.buffers[own + static_cast<size_t>(buffer)] == step.buffers[result];
  };
  for (int32_t b = 0; b < static_cast<int32_t>(kernel.buffers.size()); ++b) {
    std::optional<ProductTail> tail = is_result(b) ? tail_of(kernel, b) : std::nullopt;
    if (tail && is_result(tail->result)) return tail;
  }
  return {};
}

}  // namespace tn::cuda
