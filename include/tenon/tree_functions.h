#pragma once
// Functions of trees (tree.h): their tensors as a list, and trees made from others.
//
//     Params next = tn::tree::map([](auto& w, auto& g) { return w - 0.1 * g; }, params, gradients);
//     int64_t count = tn::tree::reduce([](int64_t n, auto& w) { return n + w.size(); }, params, 0);
#include <array>
#include <ranges>

#include "tenon/callback.h"
#include "tenon/tree.h"

namespace tn::tree {

[[noreturn]] void fail_leaves(std::string_view by, size_t wanted, size_t given);
/// Moves `leaves` into the places of a tree, which has so many.
void fill(std::string_view by, Tensors leaves, const Callback<void(Visitor&)>& tree);

/// The tensors of trees, from left to right.
template <class... T>
Tensors leaves(const T&... trees) {
  Contents contents("tree::leaves");
  (tree::visit(const_cast<T&>(trees), contents), ...);  // which only looks
  return std::move(contents.tensors);
}

/// The same for a call of `by`, which errors name.
Tensors leaves_in(std::string_view by, const std::source_location& at,
                  const Callback<void(Visitor&)>& trees);
template <class... T>
Tensors leaves_at(std::string_view by, const std::source_location& at, const T&... trees) {
  return leaves_in(by, at, [&](Visitor& v) {
    size_t i = 0;
    (tree::visit(const_cast<T&>(trees), v, {.name = argument_name(i++)}), ...);
  });
}

/// `like` with other tensors in its places.
template <class T>
T unflatten(T like, Tensors leaves) {
  fill("tree::unflatten", std::move(leaves), [&](Visitor& v) { tree::visit(like, v); });
  return like;
}

/// A tree of `f(tensor, ...)` for each tensor, with the matching tensors of further trees.
template <class F, class T, class... U>
T map(F&& f, T tree, const U&... rest) {
  Tensors made = leaves(tree);
  std::array<Tensors, sizeof...(U)> others{leaves(rest)...};
  (check_like(
       "tree::map", "a tree", [&](Visitor& v) { tree::visit(tree, v); },
       [&](Visitor& v) { tree::visit(const_cast<U&>(rest), v); }),
   ...);
  for (size_t i = 0; i < made.size(); ++i)
    made[i] = std::apply([&](const auto&... other) { return f(made[i], other[i]...); }, others);
  return unflatten(std::move(tree), std::move(made));
}

/// The paths of the tensors, in order: "blocks[3].weight".
std::vector<std::string> paths_in(const Callback<void(Visitor&)>& tree);

/// `map` of a function that is also given the path of each tensor.
template <class F, class T>
T map_with_path(F&& f, T tree) {
  std::vector<std::string> paths = paths_in([&](Visitor& v) { tree::visit(tree, v); });
  size_t i = 0;
  return map([&](const Tensor& leaf) { return f(paths[i++], leaf); }, std::move(tree));
}

/// `f(f(f(initial, a), b), ...)` over the tensors, of the type that `f` returns.
template <class F, class T, class R>
auto reduce(F&& f, const T& tree, R initial) {
  std::decay_t<std::invoke_result_t<F&, R, const Tensor&>> value(std::move(initial));
  for (const Tensor& leaf : leaves(tree)) value = f(std::move(value), leaf);
  return value;
}

}  // namespace tn::tree

namespace tn {

/// What has tensors: not a number, nor a function.
template <class T>
concept HasTensors = std::same_as<T, Tensor> || tree::HasFields<T> ||
                     requires(T& t) { t.as_visit(); } || requires { std::tuple_size<T>::value; } ||
                     (std::ranges::range<T> && !std::same_as<T, std::initializer_list<Tensor>> &&
                      !std::is_convertible_v<const T&, std::string_view>);

/// Computes the tensors of trees (a tensor, a model, a struct with `fields`) in one run.
template <HasTensors T>
void eval(const T& tree, std::source_location at = std::source_location::current()) {
  eval(tree::leaves_at("eval", at, tree), at);
}
template <HasTensors T, HasTensors U>
void eval(const T& first, const U& second,
          std::source_location at = std::source_location::current()) {
  eval(tree::leaves_at("eval", at, first, second), at);
}
template <HasTensors T, HasTensors U, HasTensors V>
void eval(const T& first, const U& second, const V& third,
          std::source_location at = std::source_location::current()) {
  eval(tree::leaves_at("eval", at, first, second, third), at);
}

/// Starts to compute the tensors of a tree and returns; reading a value waits for it.
template <HasTensors T>
void async_eval(const T& tree, std::source_location at = std::source_location::current()) {
  async_eval(tree::leaves_at("async_eval", at, tree));
}

}  // namespace tn
