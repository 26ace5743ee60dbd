// python/tenon/_core.pyi: what type checkers and editors see.
#include <algorithm>
#include <array>
#include <cctype>

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
  std::string type;
  switch (p.kind) {
    case FieldKind::boolean:
      type = "_bool";
      break;
    case FieldKind::integer:
    case FieldKind::size:
      type = "int";
      break;
    case FieldKind::real:
      type = "float";
      break;
    case FieldKind::axis:
      type = "int";
      break;
    case FieldKind::axes:
      type = "int | Sequence[int]";
      break;
    case FieldKind::perm:
      type = "Sequence[int]";
      break;
    case FieldKind::shape:
      type = "int | Sequence[int]";
      break;
    case FieldKind::ints:
    case FieldKind::offsets:
      type = "int | Sequence[int]";
      break;
    case FieldKind::dtype:
      type = "DTypeLike";
      break;
    case FieldKind::choice:
      type = format("Literal[\"{}\"]", join(p.choices, "\", \""));
      break;
    case FieldKind::text:
      type = "str";
      break;
    case FieldKind::scalar:
      type = "_complex";
      break;
    case FieldKind::graph:
      break;  // not on the surface
  }
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

constexpr std::string_view kTensorTop = R"(
class _At:
    def __getitem__(self, index: Any) -> _AtIndex: ...

class _AtIndex:
    def get(self) -> Tensor: ...
    def set(self, value: ArrayLike) -> Tensor: ...
    def add(self, value: ArrayLike) -> Tensor: ...
    def subtract(self, value: ArrayLike) -> Tensor: ...
    def multiply(self, value: ArrayLike) -> Tensor: ...
    def max(self, value: ArrayLike) -> Tensor: ...
    def min(self, value: ArrayLike) -> Tensor: ...

class Tensor:
    def __init__(self, data: ArrayLike, dtype: DTypeLike = None) -> None: ...
    shape: tuple[int, ...]
    dtype: DType
    device: Device
    ndim: int
    rank: int
    size: int
    itemsize: int
    nbytes: int
    T: Tensor
    mT: Tensor
    real: Tensor
    imag: Tensor
    at: _At
    requires_grad: _bool
    grad: Tensor | None
    is_leaf: _bool
    def requires_grad_(self, requires_grad: _bool = True) -> Tensor: ...
    def backward(self, gradient: ArrayLike | None = None, retain_graph: _bool = False) -> None: ...
    def bfloat16(self) -> Tensor: ...
    def clone(self) -> Tensor: ...
    def cpu(self) -> Tensor: ...
    def dim(self) -> int: ...
    def dot(self, other: ArrayLike, *contract: Any, **named: Any) -> Tensor: ...
    def double(self) -> Tensor: ...
    def half(self) -> Tensor: ...
    def long(self) -> Tensor: ...
    def masked_fill(self, mask: ArrayLike, value: ArrayLike) -> Tensor: ...
    def norm(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def numel(self) -> int: ...
    def repeat(self, *repeats: ArrayLike, axis: int | None = None) -> Tensor: ...
    def t(self) -> Tensor: ...
    def transpose(self, *axes: int | Sequence[int] | None, **named: Any) -> Tensor: ...
    def where(self, condition: ArrayLike, other: ArrayLike) -> Tensor: ...
    def to(
        self, *target: DTypeLike | Tensor | Device, dtype: DTypeLike = None, device: Any = None
    ) -> Tensor: ...
    def numpy(self) -> Any: ...
    def item(self) -> Any: ...
    def tolist(self) -> Any: ...
    def eval(self) -> Tensor: ...
    def graph(self) -> str: ...
    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor: ...
    def __array__(self, dtype: Any = None, copy: _bool | None = None) -> Any: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: _bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __getitem__(self, index: Any) -> Tensor: ...
    def __setitem__(self, index: Any, value: ArrayLike) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __reversed__(self) -> Iterator[Tensor]: ...
    def __round__(self, ndigits: int | None = None) -> Tensor: ...
    def __contains__(self, value: ArrayLike) -> _bool: ...
    def __bool__(self) -> _bool: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> _complex: ...
    def __hash__(self) -> int: ...
)";

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

}  // namespace

std::string python_signature(const OpDef& op, bool annotated, bool method) {
  return signature_of(op, {.annotated = annotated, .method = method});
}

GeneratedFile python_stub() {
  std::string text(kPythonTop), methods(kTensorTop);
  text += kPythonModels;
  for (const OpDef* op : surface_ops()) {
    text += result_class(*op);
    if (const OpDef* twin = torch_twin(*op)) text += result_class(*twin);
    methods += special_methods(*op);
    if (!is_method(*op)) continue;
    auto define = [&](std::string_view name) { methods += definition(*op, name, true, ""); };
    if (!is_by_hand(op->name)) define(op->name);
    for (std::string_view alias : op->aliases) {
      if (is_by_hand(op->name))
        define(alias);
      else if (!is_by_hand(alias))
        methods += format("    {} = {}\n", alias, op->name);
    }
  }
  text += methods + "\n";
  for (const OpDef* op : surface_ops()) {
    text += definition(*op, op->name, false, summary_of(op->doc));
    for (std::string_view alias : op->aliases) text += format("{} = {}\n", alias, op->name);
  }
  text += public_names(text);
  return {"python/tenon/_core.pyi", text};
}

}  // namespace tn
