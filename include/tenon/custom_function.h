#pragma once
// custom_function: a typed function with user-defined rules for derivatives and batches.
#include <array>

#include "tenon/transforms.h"

namespace tn {

namespace typed {

struct NoRule {};

template <class F, class V, class J, class B>
struct CustomFunction : CallableAs<CustomFunction<F, V, J, B>, F> {
  F f;
  V vjp_rule;
  J jvp_rule;
  B vmap_rule;
  std::source_location place;

  CustomFunction(F function, V v, J j, B b, std::source_location at)
      : f(std::move(function)),
        vjp_rule(std::move(v)),
        jvp_rule(std::move(j)),
        vmap_rule(std::move(b)),
        place(at) {}

  /// With a rule `(arguments..., cotangent, result)`, which returns the cotangent of the only
  /// argument or a tuple of them. A null tensor is zero.
  template <class Rule>
  auto vjp(Rule rule) const {
    return CustomFunction<F, Rule, J, B>(f, std::move(rule), jvp_rule, vmap_rule, place);
  }
  /// With a rule `(arguments..., tangents...)`, which returns the tangent of the result.
  template <class Rule>
  auto jvp(Rule rule) const {
    return CustomFunction<F, V, Rule, B>(f, vjp_rule, std::move(rule), vmap_rule, place);
  }
  /// With a rule `(size, batched, arguments...)` for tensors: `batched[i]` says whether argument i
  /// has the batch as axis 0. It returns the result and whether that has it.
  template <class Rule>
  auto vmap(Rule rule) const {
    return CustomFunction<F, V, J, Rule>(f, vjp_rule, jvp_rule, std::move(rule), place);
  }

  template <class... A>
  auto call(const std::source_location& at, A&&... args) const {
    check_callable<F, Value<A>...>();
    flat::Place here(at);
    using Run = typed::Run<F, Value<A>...>;
    auto run = SharedPtr<Run>::make("custom_function", f, std::forward<A>(args)...);
    Tensors in = run->in.tensors;
    Tensors made = flat::custom_function(run->function(), rules<Value<A>...>(run))(in);
    typename Run::Result result = filled(*run->out, made.data());
    run->forget_tensors();  // rules need the structure only
    return result;
  }

 private:
  template <class... A>
  flat::CustomRules rules(const SharedPtr<Run<F, A...>>& run) const {
    flat::CustomRules made;
    using Result = typename Run<F, A...>::Result;
    constexpr bool has_vjp = std::is_invocable_v<const V&, A&..., Result, Result>;
    constexpr bool has_jvp = std::is_invocable_v<const J&, A&..., A&...>;
    static_assert(has_vjp || std::is_same_v<V, NoRule>,
                  "a rule for vjp takes the arguments of the function, then the cotangent of its "
                  "result and the result: (x, y, cotangent, result)");
    static_assert(has_jvp || std::is_same_v<J, NoRule>,
                  "a rule for jvp takes the arguments of the function, then as many tangents: "
                  "(x, y, tangent of x, tangent of y)");
    if constexpr (has_vjp)
      made.vjp = [run, rule = vjp_rule](Tensors in, Tensors ct, Tensors out) {
        UserCode own;
        auto back = run->arguments(in).with([&](A&... arg) {
          return rule(arg..., filled(*run->out, ct.data()), filled(*run->out, out.data()));
        });
        Value<decltype(back)> trees(std::move(back));
        return tensors_of(trees, "custom_function", "the cotangent", true);
      };
    if constexpr (has_jvp)
      made.jvp = [run, rule = jvp_rule](Tensors in, Tensors t) {
        UserCode own;
        Pack<A...> args = run->arguments(in), tangents = run->arguments(t);
        auto tangent = args.with([&](A&... arg) {
          return tangents.with([&](A&... along) { return rule(arg..., along...); });
        });
        Value<decltype(tangent)> tree(std::move(tangent));
        return tensors_of(tree, "custom_function", "the tangent", true);
      };
    if constexpr (!std::is_same_v<B, NoRule>) {
      static_assert((std::is_same_v<A, Tensor> && ...), "a rule for vmap takes tensors");
      static_assert(std::is_invocable_v<const B&, int64_t, std::array<bool, sizeof...(A)>&, A&...>,
                    "a rule for vmap takes the size of the batch, which arguments are batched, and "
                    "the arguments: (size, batched, x, y)");
      made.vmap = [run, rule = vmap_rule](Tensors in, const std::vector<bool>& batched,
                                          int64_t size) {
        UserCode own;
        std::array<bool, sizeof...(A)> which = {};
        for (size_t i = 0; i < sizeof...(A); ++i) which[i] = batched[i];
        std::pair<Tensor, bool> result =
            run->arguments(in).with([&](A&... arg) { return rule(size, which, arg...); });
        return std::pair(Tensors{result.first}, std::vector<bool>{result.second});
      };
    }
    return made;
  }
};

}  // namespace typed

/// `f` with user-defined rules. Missing rules are derived from the others, or from `f` itself.
///
///     auto clipped = tn::custom_function([](tn::Tensor x) { return tn::clip(x, -1, 1); })
///                        .vjp([](tn::Tensor, tn::Tensor ct, tn::Tensor) { return ct; });
///     tn::grad([&](tn::Tensor x) { return clipped(x) * 3; })(tn::array(7.0));   // 3
template <typed::IsFunction F>
auto custom_function(F f, std::source_location place = std::source_location::current()) {
  using typed::NoRule;
  return typed::CustomFunction<F, NoRule, NoRule, NoRule>(std::move(f), {}, {}, {}, place);
}

}  // namespace tn
