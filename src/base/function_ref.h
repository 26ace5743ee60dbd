#pragma once
// A reference to a callable: two words, owns nothing, for arguments that are called before
// returning.
#include <memory>
#include <type_traits>
#include <utility>

namespace tn {

template <class Signature>
class FunctionRef;

template <class R, class... A>
class FunctionRef<R(A...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
             std::is_invocable_r_v<R, F&, A...>)
  FunctionRef(F&& f)  // NOLINT: implicit, so that a lambda can be passed as the argument
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, A... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<A>(args)...);
        }) {}

  R operator()(A... args) const { return call_(object_, std::forward<A>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, A...);
};

}  // namespace tn
