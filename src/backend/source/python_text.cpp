#include "backend/source/python_text.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"

namespace tn::source {
namespace {

struct Operator {
  std::string_view sign;
  Binds binds;
};
constexpr std::array kOperators = {
    // the longer first
    Operator{"**", Binds::power},   Operator{"//", Binds::product}, Operator{"<<", Binds::shift},
    Operator{">>", Binds::shift},   Operator{"<=", Binds::compare}, Operator{">=", Binds::compare},
    Operator{"==", Binds::compare}, Operator{"!=", Binds::compare}, Operator{"<", Binds::compare},
    Operator{">", Binds::compare},  Operator{"|", Binds::bit_or},   Operator{"^", Binds::bit_xor},
    Operator{"&", Binds::bit_and},  Operator{"+", Binds::sum},      Operator{"-", Binds::sum},
    Operator{"*", Binds::product},  Operator{"/", Binds::product},  Operator{"%", Binds::product},
    Operator{"@", Binds::product},  Operator{"~", Binds::sign},
};

/// The operator that `text` begins or ends with.
const Operator* operator_at(std::string_view text, bool at_end) {
  for (const Operator& o : kOperators)
    if (at_end ? text.ends_with(o.sign) : text.starts_with(o.sign)) return &o;
  return nullptr;
}

Binds tighter(Binds b) { return static_cast<Binds>(std::min(static_cast<int>(b) + 1, 10)); }

/// What an expression between `before` and `after` must bind like.
Binds needed(std::string_view before, std::string_view after) {
  if (after.starts_with('.') || after.starts_with('[') || after.starts_with('('))
    return Binds::atom;
  auto trimmed = [](std::string_view s) { return s.substr(0, s.find_last_not_of(' ') + 1); };
  before = trimmed(before);
  after.remove_prefix(std::min(after.find_first_not_of(' '), after.size()));
  Binds need = Binds::nothing;
  if (const Operator* left = operator_at(before, true)) {
    std::string_view rest = trimmed(before.substr(0, before.size() - left->sign.size()));
    bool infix = !rest.empty() && (is_word(rest.back()) || rest.back() == ')' ||
                                   rest.back() == ']' || rest.back() == '}');
    need = !infix ? Binds::sign : left->binds == Binds::power ? Binds::sign : tighter(left->binds);
  }
  if (const Operator* right = operator_at(after, false)) {
    bool strict = right->binds == Binds::compare || right->binds == Binds::power;
    need = std::max(need, strict ? tighter(right->binds) : right->binds);
  }
  return need;
}

}  // namespace

bool Expression::is_name() const {
  return !literal && std::all_of(text.begin(), text.end(), is_word);
}

Binds binding_of(std::string_view text) {
  Binds loosest = Binds::atom;
  int depth = 0;
  char quote = 0;
  bool operand = false;  // before here: what follows is an infix operator
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quote) {
      if (c == quote) quote = 0;
      continue;
    }
    if (c == '"' || c == '\'') quote = c;
    depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    if (depth > 0 || c == ' ') continue;
    const Operator* found = operator_at(text.substr(i), false);
    bool exponent = found && found->binds == Binds::sum && i > 1 && text[i - 1] == 'e' &&
                    std::isdigit(static_cast<unsigned char>(text[i - 2]));
    if (!found || exponent) {
      operand = true;
      continue;
    }
    loosest = std::min(loosest, operand ? found->binds : Binds::sign);
    operand = false;
    i += found->sign.size() - 1;
  }
  return loosest;
}

std::string fill(std::string_view text, FunctionRef<Expression(std::string_view)> value) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "{{" || text.substr(i, 2) == "}}") {
      out += text[i++];
      continue;
    }
    if (text[i] != '{') {
      out += text[i];
      continue;
    }
    size_t end = text.find('}', i);
    invariant(end != text.npos, "python source: a brace is open: {}", text);
    Expression e = value(text.substr(i + 1, end - i - 1));
    bool wrap = e.binds < needed(text.substr(0, i), text.substr(end + 1));
    out += wrap ? "(" + e.text + ")" : e.text;
    i = end;
  }
  return out;
}

std::string identifier(std::string_view name) {
  std::string made;
  for (char c : name) {
    bool leads = c == '_' && made.empty();  // what begins so is the file's own
    if (is_word(c) && !leads)
      made += c;
    else if (!made.empty() && made.back() != '_')
      made += '_';
  }
  while (made.ends_with('_')) made.pop_back();
  return made.empty() || std::isdigit(static_cast<unsigned char>(made[0])) ? "x" + made : made;
}

std::string tuple(const std::vector<std::string>& items) {
  return items.size() == 1 ? format("({},)", items[0]) : format("({})", join(items, ", "));
}

std::string one_line(std::string_view text) {
  std::string made(text);
  std::replace_if(made.begin(), made.end(), [](char c) { return c >= 0 && c < ' '; }, ' ');
  return made;
}

Names::Names()
    : taken_{"False",   "None",     "True",     "and",    "as",    "assert", "async",  "await",
             "break",   "class",    "continue", "def",    "del",   "elif",   "else",   "except",
             "finally", "for",      "from",     "global", "if",    "import", "in",     "is",
             "lambda",  "nonlocal", "not",      "or",     "pass",  "raise",  "return", "try",
             "while",   "with",     "yield",    "abs",    "all",   "any",    "bool",   "complex",
             "dict",    "float",    "int",      "len",    "list",  "max",    "min",    "pow",
             "print",   "range",    "round",    "set",    "slice", "sum",    "tuple",  "zip",
             "np",      "torch",    "jax",      "jnp",    "lax",   "F",      "device", "math"} {}

std::string Names::fresh(std::string_view wanted) {
  std::string name(wanted);
  while (taken_.contains(name)) name = format("{}_{}", wanted, ++last_[std::string(wanted)]);
  taken_.insert(name);
  return name;
}

}  // namespace tn::source
