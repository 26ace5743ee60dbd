#pragma once
// How the library raises errors: `fail` for errors of the caller, `unsupported` for features that
// do not exist, `invariant` for defects of the library.
#include "base/text.h"
#include "tenon/error.h"

namespace tn {

/// A second line of advice. Goes first in `fail`; an empty one prints nothing.
struct Hint {
  std::string text;
};

/// Returns the place of the user's call that is being served ("train.py:31, in loss"), or "".
/// Installed by ir/, which knows where calls come from.
extern std::string (*user_place)();

[[noreturn]] void throw_user(Fault fault, std::string text, const Hint& hint);
[[noreturn]] void throw_unsupported(std::string text, const Hint& hint);
[[noreturn]] void throw_internal(std::string text);

/// `op: what is wrong: value (type) and value (type)`, lower case, no final period.
template <class... A>
[[noreturn]] void fail(const Hint& hint, format_string<A...> text, A&&... args) {
  throw_user(Fault::value, format(text, std::forward<A>(args)...), hint);
}
template <class... A>
[[noreturn]] void fail(format_string<A...> text, A&&... args) {
  throw_user(Fault::value, format(text, std::forward<A>(args)...), {});
}
template <class... A>
[[noreturn]] void fail(Fault fault, format_string<A...> text, A&&... args) {
  throw_user(fault, format(text, std::forward<A>(args)...), {});
}
template <class... A>
[[noreturn]] void fail(Fault fault, const Hint& hint, format_string<A...> text, A&&... args) {
  throw_user(fault, format(text, std::forward<A>(args)...), hint);
}

/// Valid, but not implemented: the hint says what works instead.
template <class... A>
[[noreturn]] void unsupported(const Hint& hint, format_string<A...> text, A&&... args) {
  throw_unsupported(format(text, std::forward<A>(args)...), hint);
}

/// Throws InternalError unless `holds`: only a defect of the library can break it.
template <class... A>
void invariant(bool holds, format_string<A...> text, A&&... args) {
  if (!holds) [[unlikely]]
    throw_internal(format(text, std::forward<A>(args)...));
}

}  // namespace tn
