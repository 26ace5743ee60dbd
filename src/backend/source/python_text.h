#pragma once
// Texts of Python: expressions and how tightly they bind, names, literals.
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "tenon/shape.h"

namespace tn::source {

/// Whether names consist of it.
inline bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// What an expression may stand beside without parentheses, loosest first.
enum class Binds : uint8_t {
  nothing,
  compare,
  bit_or,
  bit_xor,
  bit_and,
  shift,
  sum,
  product,
  sign,
  power,
  atom
};

struct Expression {
  std::string text;
  Binds binds = Binds::atom;
  bool literal = false;  // a number, which adopts the element type of its partner

  bool is_name() const;
};

/// Looks for the loosest operator outside of brackets and strings.
Binds binding_of(std::string_view text);
inline Expression expression(std::string text) {
  Binds binds = binding_of(text);
  return {std::move(text), binds};
}

/// `text` with `{key}` replaced by what `value` gives for it, in parentheses where the operators
/// beside it need them. `{{` and `}}` are braces.
std::string fill(std::string_view text, FunctionRef<Expression(std::string_view)> value);

/// `name` as an identifier: "layers[0].w" is layers_0_w.
std::string identifier(std::string_view name);

/// "(a, b)", and of one item "(a,)".
std::string tuple(const std::vector<std::string>& items);

/// What may stand in a comment.
std::string one_line(std::string_view text);

/// Names that are in use in a function.
class Names {
 public:
  Names();
  /// `wanted`, or with a number behind it if it is taken.
  std::string fresh(std::string_view wanted);

 private:
  std::set<std::string, std::less<>> taken_;
  std::map<std::string, int, std::less<>> last_;  // the number behind a name that was given last
};

}  // namespace tn::source
