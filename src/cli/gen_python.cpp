// python/tenon/_core.pyi: what type checkers and editors see.
#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "cli/gen.h"

namespace tn {
namespace {

constexpr std::array<std::string_view, 35> kPythonKeywords = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};

std::string python_name(std::string_view name) {
  bool taken =
      std::find(kPythonKeywords.begin(), kPythonKeywords.end(), name) != kPythonKeywords.end();
  return format("{}{}", name, taken ? "_" : "");
}

std::string python_type(const Param& p) {
  if (p.role == Param::Role::list) return "Sequence[ArrayLike]";
  if (p.role == Param::Role::operand) return p.required ? "ArrayLike" : "ArrayLike | None";
  std::string type(names_of(p.kind).python);
  if (p.kind == FieldKind::choice) type = format("Literal[\"{}\"]", join(p.choices, "\", \""));
  return p.maybe ? type + " | None" : type;
}

/// `split(x, [1, 3])`: a list where a number of sections stands is the indices.
std::string python_type(const Param& p, const std::vector<Param>& all) {
  bool spreads = p.kind == FieldKind::integer && p.role == Param::Role::field &&
                 std::ranges::any_of(all, [](const Param& other) {
                   return other.role == Param::Role::field && other.kind == FieldKind::offsets;
                 });
  return spreads ? "int | Sequence[int] | None" : python_type(p);
}

std::string python_result_type(const OpDef& op) {
  if (op.results.size() > 1) return format("_{}_result", op.name);
  return op.results.size() == 1 && op.results[0] == "*" ? "tuple[Tensor, ...]" : "Tensor";
}

/// Attributes of Tensor that are not calls, although ops of the same name exist.
bool is_property(std::string_view name) { return name == "real" || name == "imag"; }

/// Methods that Python defines by hand, where those of NumPy and PyTorch differ.
bool is_by_hand(std::string_view name) {
  return name == "dot" || name == "repeat" || name == "transpose" || name == "where";
}
/// Functions that are, which are not taken from the core.
bool is_function_by_hand(std::string_view name) {
  return name == "dot" || name == "transpose" || name == "tril_indices" || name == "triu_indices";
}

/// Ops whose first parameter is a tensor, other than the key of random ones.
bool is_method(const OpDef& op) {
  std::vector<Param> params = params_of(op);
  return !params.empty() && params[0].role == Param::Role::operand && params[0].required &&
         params[0].name != "key" && op.module.empty() && !is_property(op.name);
}

/// Python's method for an operator: "+" with two operands → "add".
std::string_view special_name(std::string_view symbol, bool unary) {
  struct Row {
    std::string_view symbol, binary, unary;
  };
  constexpr std::array<Row, 20> kRows = {{
      {"+", "add", "pos"},    {"-", "sub", "neg"}, {"*", "mul", ""},  {"/", "truediv", ""},
      {"//", "floordiv", ""}, {"%", "mod", ""},    {"**", "pow", ""}, {"@", "matmul", ""},
      {"&", "and", ""},       {"|", "or", ""},     {"^", "xor", ""},  {"<<", "lshift", ""},
      {">>", "rshift", ""},   {"~", "", "invert"}, {"==", "eq", ""},  {"!=", "ne", ""},
      {"<", "lt", ""},        {"<=", "le", ""},    {">", "gt", ""},   {">=", "ge", ""},
  }};
  for (const Row& row : kRows)
    if (row.symbol == symbol) return unary ? row.unary : row.binary;
  return "";
}

std::string special_methods(const OpDef& op) {
  bool unary = op.args.size() == 1;
  std::string_view name = special_name(op.symbol, unary);
  if (op.symbol.empty() || name.empty()) return "";
  if (unary) return format("    def __{}__(self) -> Tensor: ...\n", name);
  bool compares =
      op.symbol.find_first_of("=!<>") != op.symbol.npos && op.symbol != "<<" && op.symbol != ">>";
  std::string other = "other: Any) -> Tensor: ...";
  std::string_view note =
      op.symbol == "==" || op.symbol == "!=" ? "  # type: ignore[override]" : "";
  std::string text = format("    def __{}__(self, {}{}\n", name, other, note);
  if (!compares) text += format("    def __r{}__(self, {}\n", name, other);
  return text;
}

/// The op that PyTorch means by the name, where that is another one; or null.
const OpDef* torch_twin(const OpDef& op) { return find_op(format("torch.{}", op.name)); }

std::string_view torch_name(std::string_view name) {
  if (name == "axis" || name == "axes") return "dim";
  return name == "keepdims" ? "keepdim" : name;
}

/// Whether the op takes axes; `optional`, and may be called without.
bool takes_axes(const OpDef& op, bool optional) {
  return std::ranges::any_of(params_of(op), [&](const Param& p) {
    return torch_name(p.name) == "dim" && p.name != "dim" && !(optional && p.required);
  });
}

/// Whether it makes tensors of a shape, rather than of the values of others.
bool creates(const OpDef& op) {
  std::vector<Param> params = params_of(op);
  auto has = [&](std::string_view name) {
    return std::ranges::any_of(params, [&](const Param& p) { return p.name == name; });
  };
  return op.args.size() == 0 || op.name.ends_with("_like") || (has("shape") && has("dtype"));
}

struct SignatureStyle {
  bool annotated, method;
  bool torch = false;      // with PyTorch's keywords
  bool dim_named = false;  // `dim` comes by name: what comes by position is NumPy's
  bool needs_dim = false;
};

std::string signature_of(const OpDef& op, const SignatureStyle& style) {
  std::string text = "(";
  bool keywords_only = false, had_default = false;
  std::vector<Param> params = params_of(op);
  for (const Param& p : params) {
    std::string_view name = style.torch ? torch_name(p.name) : p.name;
    bool self = style.method && p.role == Param::Role::operand && p.place == 0;
    bool required = p.required || (style.needs_dim && name == "dim");
    if (text.size() > 1) text += ", ";
    if (!keywords_only && ((style.dim_named && name == "dim") || (required && had_default)))
      text += "*, ", keywords_only = true;
    text += self ? "self" : python_name(name);
    if (!self && style.annotated) text += ": " + python_type(p, params);
    if (required) continue;
    had_default = true;
    bool plain = !style.torch && p.python_default.find("inf") == std::string::npos &&
                 p.python_default.find("nan") == std::string::npos;
    text += format("{}{}", style.annotated ? " = " : "=",
                   !style.annotated || plain ? p.python_default : "...");
  }
  if (style.annotated && !style.method && creates(op))
    text += format(", {}device: str | Device | None = None, requires_grad: _bool = False",
                   keywords_only ? "" : "*, ");
  return text + ")";
}

/// How the op is called in PyTorch's way, or "": the signature and the result.
std::string torch_definition(const OpDef& op, bool method) {
  const OpDef* twin = torch_twin(op);
  SignatureStyle style{.annotated = true, .method = method, .torch = true, .dim_named = true};
  if (twin) {
    style.dim_named = takes_axes(op, true);
    style.needs_dim = style.dim_named && python_result_type(*twin) != python_result_type(op);
    return format("{} -> {}", signature_of(*twin, style), python_result_type(*twin));
  }
  if (!takes_axes(op, false)) return "";
  return format("{} -> {}", signature_of(op, style), python_result_type(op));
}

/// The definition of a function or method, with its second one where PyTorch calls it otherwise.
std::string definition(const OpDef& op, std::string_view name, bool method, std::string_view doc) {
  std::string_view indent = method ? "    " : "";
  std::string torch = torch_definition(op, method), text;
  if (!torch.empty()) text += format("{}@overload\n", indent);
  text += format("{}def {}{} -> {}:{}", indent, name, python_signature(op, true, method),
                 python_result_type(op),
                 doc.empty() ? " ...\n" : format("\n    \"\"\"{}\"\"\"\n", doc));
  if (!torch.empty()) text += format("{0}@overload\n{0}def {1}{2}: ...\n", indent, name, torch);
  return text;
}

std::string result_class(const OpDef& op) {
  if (op.results.size() < 2) return "";
  std::string text = format("\nclass _{}_result(NamedTuple):\n", op.name);
  for (std::string_view name : op.results) text += format("    {}: Tensor\n", name);
  return text;
}

/// `__all__`: what is defined in `stub`, but for private names, ops that live in a module, and
/// names for which there is a function by hand.
std::string public_names(std::string_view stub) {
  std::vector<std::string> names;
  while (!stub.empty()) {
    std::string_view line = stub.substr(0, stub.find('\n'));
    stub.remove_prefix(std::min(stub.size(), line.size() + 1));
    for (std::string_view word : {"class ", "def "})
      if (line.starts_with(word)) line.remove_prefix(word.size());
    std::string_view name = line.substr(0, line.find_first_of("(: ="));
    bool defined = name.size() < line.size() && (std::isalpha(name.empty() ? '_' : name[0]) != 0);
    bool imports = name == "from" || name == "import";
    const OpDef* op = find_op(name);
    bool elsewhere = op && (!op->module.empty() || is_function_by_hand(name));
    if (!defined || imports || elsewhere) continue;
    names.push_back(format("\"{}\"", name));
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return format("\n__all__ = [\n    {},\n]\n", join(names, ",\n    "));
}

constexpr std::string_view kLossesTop =
    R"(# Generated by `tenon gen` from the op table; edits are lost.
"""Losses.

`reduction` is "none" (a loss per example), "mean" or "sum". Shapes must be equal where they should
be: what would broadcast is an error, since it gives a loss that was not meant. Gradients are finite
also where a loss has a kink or a logarithm its pole.

    >>> tn.nn.losses.mse_loss(tn.array([1.0, 2.0]), tn.array([3.0, 2.0]))
    tensor(2., dtype=float32)
    >>> tn.nn.losses.huber_loss(tn.array([0.5, 3.0]), tn.array([0.0, 0.0]))
    tensor([0.125, 2.5  ], dtype=float32)
    >>> tn.nn.losses.log_cosh_loss(tn.array([1e-4, 1000.0]), tn.array([0.0, 0.0]))
    tensor([4.9999995e-09, 9.9930682e+02], dtype=float32)
    >>> tn.nn.losses.cosine_similarity_loss(tn.array([[3.0, 4.0]]), tn.array([[4.0, 3.0]]))
    tensor([0.96], dtype=float32)
"""

)";

}  // namespace

std::string python_signature(const OpDef& op, bool annotated, bool method) {
  return signature_of(op, {.annotated = annotated, .method = method});
}

GeneratedFile python_stub(std::string_view written) {
  constexpr std::string_view kPath = "python/tenon/_core.pyi";
  constexpr std::string_view kMark =
      "    # From here on generated by `tenon gen` from the op table; edits are lost.\n";
  size_t by_hand = written.find(kMark);
  if (by_hand == written.npos) fail("gen: {} has no line '{}'", kPath, kMark);
  std::string text(written.substr(0, by_hand + kMark.size())), results;
  for (const OpDef* op : surface_ops()) {
    results += result_class(*op);
    if (const OpDef* twin = torch_twin(*op)) results += result_class(*twin);
    text += special_methods(*op);
    if (!is_method(*op)) continue;
    auto define = [&](std::string_view name) { text += definition(*op, name, true, ""); };
    if (!is_by_hand(op->name)) define(op->name);
    for (std::string_view alias : op->rules->aliases) {
      if (is_by_hand(op->name))
        define(alias);
      else if (!is_by_hand(alias))
        text += format("    {} = {}\n", alias, op->name);
    }
  }
  text += results + "\n";
  for (const OpDef* op : surface_ops()) {
    text += definition(*op, op->name, false, summary_of(op->rules->doc));
    for (std::string_view alias : op->rules->aliases) text += format("{} = {}\n", alias, op->name);
  }
  text += public_names(text);
  return {std::string(kPath), text};
}

GeneratedFile python_losses() {
  std::vector<std::string_view> ops, names;
  std::string other;
  for (const OpDef* op : surface_ops()) {
    if (op->module != "nn.losses") continue;
    ops.push_back(op->name), names.push_back(op->name);
    // The package has a function of its own of this name: `tn.cross_entropy`.
    std::string_view plain = op->name.substr(0, op->name.rfind("_loss"));
    if (plain == op->name || !find_op(plain)) continue;
    other += format("\n{} = {}\n", plain, op->name);
    names.back() = plain;
  }
  return {"python/tenon/nn/losses.py",
          format("{}from .._core import (\n    {},\n)\n{}\n__all__ = [\n    \"{}\",\n]\n",
                 kLossesTop, join(ops, ",\n    "), other, join(names, "\",\n    \""))};
}

}  // namespace tn
