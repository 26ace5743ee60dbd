#pragma once
// compile: a typed function that is traced once per combination of argument types and then runs as
// one plan.
//
//     auto gelu = tn::compile([](tn::Tensor x) { return x * (1 + tn::erf(x / 1.41421356)) / 2; });
//     tn::Tensor y = gelu(x);
#include "tenon/compiled_call.h"

namespace tn {

namespace typed {

/// Reports about a compiled function for arguments of given types.
template <class Self, class P>
struct Inspected;
template <class Self, class... P>
struct Inspected<Self, Parameters<P...>> {
  /// A stage of the compilation for arguments of these types, as text: "graph", "optimized",
  /// "loops", "kernels", "plan", "memory" or "decisions".
  std::string show(std::string_view stage, const Value<P>&... args) const {
    return static_cast<const Self*>(this)->show_stage(stage, args...);
  }
  /// The plan for arguments of these types, with the decisions of the compiler, as text.
  std::string explain(const Value<P>&... args) const {
    return static_cast<const Self*>(this)->explain_call(args...);
  }
};
template <class Self>
struct Inspected<Self, Unknown> {
  template <class... A>
  std::string show(std::string_view stage, const A&... args) const {
    return static_cast<const Self*>(this)->show_stage(stage, args...);
  }
  template <class... A>
  std::string explain(const A&... args) const {
    return static_cast<const Self*>(this)->explain_call(args...);
  }
};
template <class Self, class F>
using InspectedAs = Inspected<Self, ParametersFor<F>>;

}  // namespace typed

/// A function that runs as a plan. Copies share their plans; calls may come from any thread.
template <class F>
class CompiledFunction : public typed::CallableAs<CompiledFunction<F>, F>,
                         public typed::InspectedAs<CompiledFunction<F>, F> {
 public:
  explicit CompiledFunction(F f, std::source_location at = std::source_location::current())
      : place(at), f_(std::move(f)) {}
  CompiledFunction(F f, const CompileSettings& settings,
                   std::source_location at = std::source_location::current())
      : place(at),
        f_(std::move(f)),
        core_(settings, at),
        donated_(settings.donated < 0 ? 0 : static_cast<size_t>(settings.donated)) {}

  CallStats stats() const { return core_.stats(); }
  /// Why the function was traced, each time: "argument 0.shape[0] was 8, now 16".
  std::vector<std::string> why_recompiled() const { return core_.why_recompiled(); }

  // For the library.
  std::source_location place;  // of calls without one
  template <class... A>
  auto call(const std::source_location& at, A&&... args) const {
    return run(at, typed::as_value(std::forward<A>(args))...);
  }
  template <class... A>
  std::string show_stage(std::string_view stage, const A&... args) const {
    return with_call([&](auto& call) { return core_.show(stage, call); }, args...);
  }
  template <class... A>
  std::string explain_call(const A&... args) const {
    return with_call([&](auto& call) { return core_.explain(call); }, args...);
  }

 private:
  template <class... A>
  auto run(const std::source_location& at, A&&... args) const {
    typed::check_callable<F, std::remove_cvref_t<A>...>();
    typed::CompiledCall<F, std::remove_cvref_t<A>...> call(f_, donated_, at,
                                                           std::forward<A>(args)...);
    core_(call);
    return call.take();
  }
  template <class G, class... A>
  std::string with_call(G&& use, const A&... args) const {
    return [&](const typed::Value<A>&... values) {
      typed::CompiledCall<F, typed::Value<A>...> call(f_, 0, place, values...);
      return use(call);
    }(args...);
  }

  F f_;
  flat::CompiledFunction core_;
  size_t donated_ = 0;
};

/// `f` compiled when it is first called with arguments of some types and structure, and run from
/// then on without calling it. Arguments and results are trees (tree.h); a number among them is a
/// constant, so that the function is traced again for another one. Tensors that it closes over are
/// constants. Under a transform, and inside another compiled function, it is inlined as a call of
/// its graph.
///
///     auto step = tn::compile([](Params p, tn::Tensor x, tn::Tensor y) {
///       auto [l, g] = tn::value_and_grad(loss)(p, x, y);
///       return std::tuple{l, Params{p.w - 0.1 * g.w, p.b - 0.1 * g.b}};
///     });
///     auto [l, next] = step(params, x, y);
template <typed::IsFunction F>
CompiledFunction<F> compile(F f, std::source_location place = std::source_location::current()) {
  return CompiledFunction<F>(std::move(f), place);
}
template <typed::IsFunction F>
CompiledFunction<F> compile(F f, const CompileSettings& settings,
                            std::source_location place = std::source_location::current()) {
  return CompiledFunction<F>(std::move(f), settings, place);
}
template <typed::IsFunction F>
CompiledFunction<F> compile(F f, int optimization_level,
                            std::source_location place = std::source_location::current()) {
  CompileSettings settings;
  settings.optimization_level = optimization_level;
  return compile(std::move(f), settings, place);
}

/// From here on compiled functions call the function itself, or (false) no more. Returns what was
/// said before. `TENON_DISABLE_COMPILE=1` in the environment says so from the start.
bool disable_compile(bool disabled = true);
bool is_compile_disabled();

}  // namespace tn
