#pragma once
// How the library raises errors: `fail` for errors of the caller, `unsupported` for features that
// do not exist, `invariant` for defects of the library.
#include <concepts>
#include <cstdint>

#include "base/text.h"
#include "tenon/error.h"

namespace tn {

/// A second line of advice. Goes first in `fail`; an empty one prints nothing. `cpp` is what
/// callers from C++ read instead, where the two languages spell it differently.
struct Hint {
  std::string text;
  std::string cpp = {};
};

/// Returns the place of the user's call that is being served ("train.py:31, in loss"), or "".
/// Installed by ir/, which knows where calls come from.
extern std::string (*user_place)();
/// Whether that call was made in C++. Null: it was.
extern bool (*user_writes_cpp)();

/// A line of the sources that raises an error: a hash of its folder and file, then 16 bits of the
/// line. tools/check_errors.py computes the same and lists the sites that no test reaches.
struct ErrorSite {
  uint64_t id;
  static consteval ErrorSite here(std::string_view path = __builtin_FILE(),
                                  int line = __builtin_LINE()) {
    size_t name = path.rfind('/');
    if (name != path.npos && name > 0) name = path.rfind('/', name - 1);
    uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (char c : path.substr(name + 1))
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return ErrorSite{hash << 16}.at(line);
  }
  /// Another line of the file: of the caller, in functions that raise errors for others.
  constexpr ErrorSite at(int line) const {
    return {(id & ~uint64_t{0xffff}) | static_cast<uint16_t>(line)};
  }
};

/// The text of an error, checked at compile time, and where it is raised.
template <class... A>
struct ErrorFormat {
  format_string<A...> text;
  ErrorSite site;

  template <std::convertible_to<std::string_view> S>
  consteval ErrorFormat(const S& form, std::string_view path = __builtin_FILE(),
                        int line = __builtin_LINE())
      : text(form), site(ErrorSite::here(path, line)) {}
};
template <class... A>
using ErrorText = ErrorFormat<std::type_identity_t<A>...>;

/// Appends a line to the file that TENON_ERROR_SITES names, if it is set: the sites that tests
/// reach. Allocates nothing.
void log_error_site(std::string_view site) noexcept;
void log_error_site(ErrorSite site) noexcept;

[[noreturn]] void throw_user(ErrorSite site, Fault fault, std::string text, const Hint& hint);
[[noreturn]] void throw_unsupported(ErrorSite site, std::string text, const Hint& hint);
[[noreturn]] void throw_internal(std::string text);

/// `op: what is wrong: value (type) and value (type)`, lower case, no final period.
template <class... A>
[[noreturn]] void fail(const Hint& hint, ErrorText<A...> text, A&&... args) {
  throw_user(text.site, Fault::value, format(text.text, std::forward<A>(args)...), hint);
}
template <class... A>
[[noreturn]] void fail(ErrorText<A...> text, A&&... args) {
  throw_user(text.site, Fault::value, format(text.text, std::forward<A>(args)...), {});
}
template <class... A>
[[noreturn]] void fail(Fault fault, ErrorText<A...> text, A&&... args) {
  throw_user(text.site, fault, format(text.text, std::forward<A>(args)...), {});
}
template <class... A>
[[noreturn]] void fail(Fault fault, const Hint& hint, ErrorText<A...> text, A&&... args) {
  throw_user(text.site, fault, format(text.text, std::forward<A>(args)...), hint);
}

/// Valid, but not implemented: the hint says what works instead.
template <class... A>
[[noreturn]] void unsupported(const Hint& hint, ErrorText<A...> text, A&&... args) {
  throw_unsupported(text.site, format(text.text, std::forward<A>(args)...), hint);
}

/// Throws InternalError unless `holds`: only a defect of the library can break it.
template <class... A>
void invariant(bool holds, format_string<A...> text, A&&... args) {
  if (!holds) [[unlikely]]
    throw_internal(format(text, std::forward<A>(args)...));
}

}  // namespace tn
