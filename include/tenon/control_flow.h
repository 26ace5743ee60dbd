#pragma once
// Control flow as ops, for values that are unknown at trace time. A loop takes constant memory, and
// its body is recorded once. Operands, carries and results are trees (tree.h).
#include "tenon/ops.h"
#include "tenon/transforms.h"

namespace tn {

namespace typed {

[[noreturn]] void fail_structure(std::string_view by, std::string_view what);

/// Fails unless two trees of one type have the same structure and settings.
template <class T>
void check_structure(T& a, T& b, std::string_view by, std::string_view what) {
  if constexpr (!std::is_same_v<T, Tensor>) {
    tree::Contents of_a(by), of_b(by);
    tree::visit(a, of_a), tree::visit(b, of_b);
    const tree::Words &x = of_a.structure, &y = of_b.structure;
    if (!std::equal(x.begin(), x.end(), y.begin(), y.end())) fail_structure(by, what);
  }
}

/// An integer or a size, where a loop counts.
template <class T>
concept IsCount = IsInteger<T> || std::same_as<T, Dim>;

template <class C>
consteval void check_carry() {
  static_assert(!std::is_arithmetic_v<C>,
                "the carry is a number, which is a constant: start with a tensor, tn::array(0)");
}

/// Whether the body of a scan has the right form; reports what is wrong.
template <class C, class F, class... A>
consteval bool is_step() {
  check_callable<F, A...>();
  if constexpr (is_callable<F, A...>()) {
    using R = Result<F, A...>;
    constexpr bool kIsPair = requires { std::tuple_size<R>::value; };
    static_assert(kIsPair, "the body returns the new carry and an output: std::pair{carry, y}");
    if constexpr (kIsPair) {
      constexpr bool kKeepsType = std::is_same_v<std::tuple_element_t<0, R>, C>;
      static_assert(kKeepsType, "the body returns a carry of another type than it is given");
      return kKeepsType;
    }
  }
  return false;
}

/// From the tensors of a carry, then those of the slices, to those of the new carry and the output.
template <class Run, class C>
auto call_scan(Run& run, C& carry, size_t carries, Maybe<int64_t> length, bool reverse) {
  auto step = [&](const Tensors& before, const Tensors& x) -> flat::ScanResult {
    Tensors all = before;
    all.insert(all.end(), x.begin(), x.end());
    Tensors made = run(all);
    check_structure(carry, std::get<0>(*run.out), "scan", "the body changes the structure");
    auto middle = made.begin() + static_cast<std::ptrdiff_t>(carries);
    return {{made.begin(), middle}, {middle, made.end()}};
  };
  auto middle = run.in.tensors.begin() + static_cast<std::ptrdiff_t>(carries);
  flat::ScanResult made = flat::scan(step, {run.in.tensors.begin(), middle},
                                     {middle, run.in.tensors.end()}, length, reverse);
  made.carry.insert(made.carry.end(), made.ys.begin(), made.ys.end());
  return run.result(std::move(made.carry));
}

}  // namespace typed

/// `then(operands...)` where `pred`, one bool, is true, `otherwise(operands...)` where it is false.
/// Both are traced and must return the same types; one of them runs.
///
///     tn::Tensor y = tn::cond(tn::sum(x) > 0, [](tn::Tensor x) { return tn::sqrt(x); },
///                             [](tn::Tensor x) { return tn::zeros_like(x); }, x);
template <class Then, class Otherwise, class... A>
auto cond(const Operand& pred, const Then& then, const Otherwise& otherwise, const A&... operands) {
  using typed::Value;
  typed::check_callable<Then, Value<A>...>();
  typed::check_callable<Otherwise, Value<A>...>();
  using R = typed::Result<Then, Value<A>...>;
  static_assert(std::is_same_v<R, typed::Result<Otherwise, Value<A>...>>,
                "the branches return different types");
  flat::Place here(pred.place);
  typed::Run<Then, Value<A>...> yes("cond", then, operands...);
  typed::Run<Otherwise, Value<A>...> no("cond", otherwise, operands...);
  Tensors made = flat::cond(pred, yes.function(), no.function(), yes.in.tensors);
  typed::check_structure(*yes.out, *no.out, "cond", "the branches return different structures");
  return yes.result(std::move(made));
}

/// Applies `body` to the carry while `go_on(carry)` is true, and returns the carry. Its types stay
/// the same. Functions of several arguments get the elements of a tuple. Only forward-mode
/// derivatives exist; `scan` has both.
///
///     auto go_on = [](tn::Tensor n, tn::Tensor x) { return n < 10; };
///     auto body = [](tn::Tensor n, tn::Tensor x) { return std::tuple(n + 1, x * 2); };
///     auto [n, x] = tn::while_loop(go_on, body, std::tuple(tn::array(0), tn::array(1.0)));
template <class Cond, class Body, class C>
auto while_loop(const Cond& go_on, const Body& body, const C& carry,
                std::source_location place = std::source_location::current()) {
  using Carry = typed::Value<C>;
  typed::check_carry<Carry>();
  flat::Place here(place);
  Carry start(carry);
  auto going = typed::run_of("while_loop", go_on, start);
  auto step = typed::run_of("while_loop", body, start);
  static_assert(std::is_same_v<typename decltype(going)::Result, Tensor>,
                "the condition returns a tensor, one bool: a bool of C++ is known too early");
  static_assert(std::is_same_v<typename decltype(step)::Result, Carry>,
                "the body returns a carry of another type than it is given");
  auto next = [&](const Tensors& given) {
    Tensors made = step(given);
    typed::check_structure(start, *step.out, "while_loop", "the body changes the structure");
    return made;
  };
  return step.result(flat::while_loop(going.function(), next, step.in.tensors));
}

struct ScanSettings {
  /// The number of steps; must equal the first axis of xs, if given.
  Maybe<int64_t> length = {};
  /// From the last slice to the first.
  bool reverse = false;
};

/// Goes over the first axis of `xs`: `body` takes the carry and a slice, and returns the next carry
/// and an output. The results are the final carry, and outputs stacked along a new first axis. An
/// integer or a size in place of `xs` says how often `body`, a function of the carry alone, is
/// called; a traced function keeps that number.
///
///     auto [last, path] = tn::scan([](tn::Tensor h, tn::Tensor x) {
///       h = tn::tanh(0.5 * h + x);
///       return std::pair{h, h};
///     }, tn::array(0.0), xs);
template <class F, class C, class X>
auto scan(const F& body, const C& carry, const X& xs, ScanSettings settings = {},
          std::source_location place = std::source_location::current()) {
  using Carry = typed::Value<C>;
  typed::check_carry<Carry>();
  flat::Place here(place);
  Carry start(carry);
  if constexpr (typed::IsCount<X>) {
    if constexpr (typed::is_step<Carry, F, Carry>()) {
      typed::Run<F, Carry> run("scan", body, start);
      return typed::call_scan(run, start, run.in.first[1], Offset(xs).value(), settings.reverse);
    } else {
      return std::pair(start, Tensor());
    }
  } else if constexpr (typed::is_step<Carry, F, Carry, typed::Value<X>>()) {
    typed::Run<F, Carry, typed::Value<X>> run("scan", body, start, xs);
    return typed::call_scan(run, start, run.in.first[1], settings.length, settings.reverse);
  } else {
    return std::pair(start, Tensor());
  }
}

/// `carry = body(i, carry)` for i from `lower` up to `upper`. With integers as bounds it has
/// derivatives in both directions, as `scan`; with tensors, and with sizes that vary in a traced
/// function, it is a `while_loop`.
///
///     tn::Tensor ten = tn::fori_loop(0, 5, [](tn::Tensor i, tn::Tensor sum) { return sum + i; },
///                                    tn::array(0));
template <class L, class U, class F, class C>
auto fori_loop(const L& lower, const U& upper, const F& body, const C& carry,
               std::source_location place = std::source_location::current()) {
  using Carry = typed::Value<C>;
  typed::check_callable<F, Tensor, Carry>();
  using State = std::pair<Tensor, Carry>;
  auto next = [&](const Tensor& i, Carry at) { return State(add(i, 1), body(i, at)); };
  if constexpr (typed::IsCount<L> && typed::IsCount<U>) {
    if (Offset from = lower, to = upper; from.is_const() && to.is_const()) {
      int64_t first = from.value(), length = to.value() - first;
      auto step = [&](const State& at) {
        return std::pair(next(at.first, at.second), std::tuple());
      };
      return scan(step, State(Tensor(first), carry), length < 0 ? int64_t{0} : length, {}, place)
          .first.second;
    }
  }
  Tensor first = astype(lower, DType::i64), end = astype(upper, DType::i64);
  return while_loop([&](const State& at) { return less(at.first, end); },
                    [&](const State& at) { return next(at.first, at.second); }, State(first, carry),
                    place)
      .second;
}

}  // namespace tn
