#pragma once
// Gradients of a large batch from small ones.
#include <optional>

#include "tenon/ops.h"
#include "tenon/tree_functions.h"
#include "tenon/typed.h"

namespace tn::optim {

// For the library.
[[noreturn]] void fail_no_batches();
/// Evaluates what a batch gave, so that what it needed is released before the next.
void settle(const Tensors& totals);

/// The mean of `f(batch...)` over micro-batches of the same size: of losses, gradients, any tree.
///
/// That is what `f` of the whole batch gives, within rounding, for losses that are means over
/// examples; it needs the memory of one micro-batch. A batch that is a tuple has the arguments.
///
///     auto [loss, gradients] = tn::optim::accumulate(loss_and_grad, tn::data::batches(x, y, 32));
template <class F, class B>
auto accumulate(F&& f, B&& batches) {
  auto call = [&](auto&& batch) {
    if constexpr (requires { std::tuple_size<std::remove_cvref_t<decltype(batch)>>::value; })
      return std::apply(f, batch);
    else
      return f(batch);
  };
  std::optional<typed::Value<decltype(call(*batches.begin()))>> total;
  int64_t count = 0;
  for (auto&& batch : batches) {
    auto made = call(batch);
    if (total)
      total = tree::map([](const Tensor& a, const Tensor& b) { return add(a, b); }, *total, made);
    else
      total.emplace(std::move(made));
    settle(tree::leaves(*total));
    ++count;
  }
  if (!total) fail_no_batches();
  return tree::map([&](const Tensor& x) { return divide(x, count); }, std::move(*total));
}

}  // namespace tn::optim
