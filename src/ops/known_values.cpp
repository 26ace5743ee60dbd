#include "ops/known_values.h"

#include <algorithm>

#include "ir/emit.h"
#include "ir/interned.h"
#include "ir/walk.h"
#include "runtime/device.h"
#include "tenon/ops.h"

namespace tn::ops {

bool is_unknown(const Tensor& x) {
  if (x.is_evaluated()) return false;
  Walk seen;
  std::lock_guard lock(walk_mutex());  // another thread may free the leaves
  walk({&x, 1}, seen);
  return std::any_of(seen.leaves.begin(), seen.leaves.end(),
                     [](Node* n) { return n->op == &param_leaf; });
}

Tensor values_now(std::string_view op, const Tensor& x, const Hint& hint) {
  if (is_unknown(x))
    fail(hint, "{}: its shape depends on values, which are not known while tracing: {}", op,
         *type_of(x));
  return x.to(Device()).eval();
}

bool is_known_false(const Tensor& holds) {
  return !is_unknown(holds) && !tn::all(holds).item<bool>();
}

void check_values(std::string_view op, std::string_view rule, const Tensor& x,
                  const Tensor& holds) {
  if (!is_known_false(holds)) return;
  Tensor first = tn::take(tn::reshape(x, {Dim(-1)}), tn::argmin(tn::reshape(holds, {Dim(-1)})));
  fail("{}: {}: {} ({})", op, rule, cast_to(first, DType::f64).item<double>(), *type_of(x));
}

std::optional<std::pair<int64_t, int64_t>> known_ends(const Tensor& x) {
  if (type_of(x)->elements <= 0) return {};
  Tensor ends = cast_to(tn::stack({tn::min(x), tn::max(x)}), DType::i64);
  if (is_unknown(ends)) return {};
  std::vector<int64_t> at = ends.to_vector<int64_t>();
  return std::pair(at[0], at[1]);
}

Tensor operand(BufferRef values, DType dtype, const Shape& shape) {
  RecordScope scope;
  return make_data(std::move(values), 0, intern(dtype, shape)).to(current_device());
}

}  // namespace tn::ops
