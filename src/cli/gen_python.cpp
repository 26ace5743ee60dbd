// python/tenon/_core.pyi: what type checkers and editors see.
#include <algorithm>
#include <array>

#include "cli/gen.h"

namespace tn {
namespace {

constexpr std::array<std::string_view, 35> kKeywords = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};

std::string python_name(std::string_view name) {
  bool taken = std::find(kKeywords.begin(), kKeywords.end(), name) != kKeywords.end();
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
      type = "complex";
      break;
    case FieldKind::graph:
      break;  // not on the surface
  }
  return p.maybe ? type + " | None" : type;
}

std::string result_type(const OpDef& op) {
  if (op.results.size() > 1) return format("_{}_result", op.name);
  return op.results.size() == 1 && op.results[0] == "*" ? "tuple[Tensor, ...]" : "Tensor";
}

/// Attributes of Tensor that are not calls, although ops of the same name exist.
bool is_property(std::string_view name) { return name == "real" || name == "imag"; }

/// Methods that Python defines by hand, where those of NumPy and PyTorch differ.
bool is_by_hand(std::string_view name) {
  return name == "repeat" || name == "transpose" || name == "where";
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
    def dim(self) -> int: ...
    def double(self) -> Tensor: ...
    def half(self) -> Tensor: ...
    def long(self) -> Tensor: ...
    def masked_fill(self, mask: ArrayLike, value: ArrayLike) -> Tensor: ...
    def numel(self) -> int: ...
    def repeat(self, *repeats: ArrayLike, axis: int | None = None) -> Tensor: ...
    def t(self) -> Tensor: ...
    def transpose(self, *axes: int | Sequence[int] | None, **named: Any) -> Tensor: ...
    def where(self, condition: ArrayLike, other: ArrayLike) -> Tensor: ...
    def to(self, target: DTypeLike | Tensor) -> Tensor: ...
    def numpy(self) -> Any: ...
    def item(self) -> complex: ...
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
    def __contains__(self, value: ArrayLike) -> _bool: ...
    def __bool__(self) -> _bool: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
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

}  // namespace

std::string python_signature(const OpDef& op, bool annotated, bool method) {
  std::string text = "(";
  bool had_default = false, keywords_only = false;
  std::vector<Param> params = params_of(op);
  for (const Param& p : params) {
    bool self = method && p.role == Param::Role::operand && p.place == 0;
    if (text.size() > 1) text += ", ";
    if (p.required && had_default && !keywords_only) text += "*, ", keywords_only = true;
    if (self) {
      text += "self";
      continue;
    }
    text += python_name(p.name);
    if (annotated) text += ": " + python_type(p);
    if (p.required) continue;
    had_default = true;
    bool plain = p.python_default.find("inf") == std::string::npos &&
                 p.python_default.find("nan") == std::string::npos;
    text += format("{}{}", annotated ? " = " : "=", !annotated || plain ? p.python_default : "...");
  }
  return text + ")";
}

GeneratedFile python_stub() {
  std::string text(kPythonTop), methods(kTensorTop);
  text += kPythonModels;
  for (const OpDef* op : surface_ops()) {
    if (op->results.size() > 1) {
      text += format("\nclass _{}_result(NamedTuple):\n", op->name);
      for (std::string_view name : op->results) text += format("    {}: Tensor\n", name);
    }
    methods += special_methods(*op);
    if (!is_method(*op)) continue;
    auto define = [&](std::string_view name) {
      methods += format("    def {}{} -> {}: ...\n", name, python_signature(*op, true, true),
                        result_type(*op));
    };
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
    text +=
        format("def {}{} -> {}:\n", op->name, python_signature(*op, true, false), result_type(*op));
    text += format("    \"\"\"{}\"\"\"\n", summary_of(op->doc));
    for (std::string_view alias : op->aliases) text += format("{} = {}\n", alias, op->name);
  }
  return {"python/tenon/_core.pyi", text};
}

}  // namespace tn
