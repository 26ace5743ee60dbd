#include "backend/source/python_function.h"

#include <algorithm>

#include "backend/source/python_scalars.h"
#include "base/error.h"
#include "ir/body.h"
#include "ir/visit_field.h"

namespace tn::source {
namespace {

constexpr size_t kInside = 40;    // characters of a value that is written where it is used
constexpr size_t kTogether = 56;  // of all such operands of one op
constexpr size_t kComments = 56;  // the column of comments
constexpr size_t kColumns = 100;
constexpr int kMostInside = 2;  // ops in it

/// What may stand between the quotes of a docstring.
std::string escaped(std::string_view text) {
  std::string made;
  for (char c : text) {
    if (c == '"' || c == '\\') made += '\\';
    made += c;
  }
  return made;
}

template <class List>
std::string numbers(const List& list) {
  std::vector<std::string> items;
  for (auto x : list) {
    if constexpr (requires { x.i; })
      items.push_back(format("{}", x.i));
    else
      items.push_back(format("{}", x));
  }
  return tuple(items);
}

}  // namespace

FunctionWriter::FunctionWriter(const Function& function, PythonScope& scope,
                               const Constants& constants, int indent)
    : function_(function),
      scope_(scope),
      constants_(constants),
      graph_(for_python(*function.graph, scope.target)),
      indent_(indent),
      is_inner_(indent > 0),
      held_(graph_.types.size()),
      uses_(graph_.types.size()),
      made_by_(graph_.types.size()),
      ops_(graph_.types.size()),
      wanted_names_(graph_.types.size()) {
  target = scope.target, section_ = function.name;
  for (TypeRef type : graph_.types) dtype_text(target, type->dtype);  // it has them all
  for (size_t i = 0; i < graph_.ops.size(); ++i)
    for (int k = 0; k < graph_.ops[i].outs; ++k)
      made_by_[static_cast<size_t>(graph_.ops[i].out + k)] = static_cast<int>(i);
}

void FunctionWriter::count_uses() {
  for (Val v : graph_.operands) ++uses_[static_cast<size_t>(v)];
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    auto v = static_cast<size_t>(graph_.outputs[i]);
    uses_[v] += 2;  // it gets a name
    if (i < function_.results.size() && !function_.results[i].empty())
      wanted_names_[v] = identifier(function_.results[i]);
  }
}

std::vector<std::string> FunctionWriter::write() {
  count_uses();
  for (Val v = 0; v < graph_.inputs(); ++v)
    hold(v, {scope_.names.fresh(identifier(graph_.input_names[static_cast<size_t>(v)]))});
  for (const GraphOp& op : graph_.ops) write_op(op);
  std::vector<std::string> results;
  for (Val v : graph_.outputs) {
    const Type& type = *graph_.types[static_cast<size_t>(v)];
    Expression e = held_[static_cast<size_t>(v)];
    if (e.literal) e = expression(typed(target, e, type.dtype));
    bool carried = !is_inner_ && carrier(target, type.dtype) != type.dtype;
    if (carried)
      e = expression(source::fill("{0}.to({1})", [&](std::string_view key) {
        return key == "0" ? e : Expression{dtype_text(target, type.dtype)};
      }));
    results.push_back(e.text);
  }
  bool alone = results.size() == 1 && !is_inner_;
  bool computed = alone && !held_[static_cast<size_t>(graph_.outputs[0])].is_name();
  bool several = results.size() > 1;
  statement(format("return {}", alone     ? results[0]
                                : several ? format("{}", join(results, ", "))
                                          : tuple(results)),
            computed ? type_comment(*graph_.types[static_cast<size_t>(graph_.outputs[0])]) : "");
  std::vector<std::string> text = heading();
  std::string margin(static_cast<size_t>(indent_ + 4), ' ');
  for (const Line& line : lines_) write_line(line, margin, text);
  return text;
}

/// Where the call that ends `code` begins its arguments: its last bracket closes the first one.
static size_t last_call(std::string_view code) {
  size_t open = code.find('(');
  int depth = 0;
  for (size_t i = open; i < code.size(); ++i) {
    depth += (code[i] == '(') - (code[i] == ')');
    if (depth == 0) return i + 1 == code.size() ? open : code.npos;
  }
  return code.npos;
}

/// In a hundred columns, as far as it goes: else a call takes three lines, or comments stand above.
void FunctionWriter::write_line(const Line& line, const std::string& margin,
                                std::vector<std::string>& text) {
  std::string code = line.code.empty() ? "" : margin + line.code, comment = line.comment;
  size_t wide = code.size() + (comment.empty() ? 0 : comment.size() + 4), open = last_call(code);
  if (wide > kColumns && open != code.npos) {
    text.push_back(code.substr(0, open + 1));
    text.push_back(format("{}    {}", margin, code.substr(open + 1, code.size() - open - 2)));
    text.push_back(margin + (comment.empty() ? ")" : ")  # " + comment));
    return;
  }
  if (wide > kColumns && !comment.empty()) {
    text.push_back(format("{}# {}", margin, comment));
    comment.clear();
  }
  if (!comment.empty()) {
    code.resize(std::max(code.size(), kComments), ' ');
    code += "  # " + comment;
  }
  text.push_back(code);
}

std::vector<std::string> FunctionWriter::heading() {
  std::string margin(static_cast<size_t>(indent_), ' '), inside = margin + "    ";
  std::vector<std::string> text, reads;
  std::vector<std::pair<std::string, std::string>> taken;
  for (Val v = 0; v < graph_.inputs(); ++v) {
    const Type& type = *graph_.types[static_cast<size_t>(v)];
    const std::string &name = held_[static_cast<size_t>(v)].text,
                      &given = graph_.input_names[static_cast<size_t>(v)];
    const auto& fixed = constants_.inputs;
    auto is_it = [&](const Constants::Values& c) { return c.input == given && !is_inner_; };
    auto known = std::ranges::find_if(constants_.values, is_it);
    if (known != constants_.values.end())
      reads.push_back(format("{}{} = {}", inside, name, array_text(known->elements, type)));
    else if (std::find(fixed.begin(), fixed.end(), given) != fixed.end() && !is_inner_)
      reads.push_back(format("{}{} = _constants[{:?}]", inside, name, given));
    else
      taken.push_back({name, type_comment(type)});
    if (!is_inner_ && carrier(target, type.dtype) != type.dtype && known == constants_.values.end())
      reads.push_back(format("{}{} = {}.to(torch.int64)", inside, name, name));
  }
  std::vector<std::string> names, sizes;
  if (!is_inner_)
    for (const auto& [symbol, variable] : scope_.sizes) {
      std::string found = size_from_arguments(symbol);
      if (found.empty())
        taken.push_back({variable, "a size"});
      else
        sizes.push_back(format("{}{} = {}", inside, variable, found));
    }
  for (auto& [name, type] : taken) names.push_back(name);
  if (is_inner_ || taken.empty()) {
    text.push_back(format("{}def {}({}):", margin, function_.name, join(names, ", ")));
  } else {
    text.push_back(format("{}def {}(", margin, function_.name));
    for (auto& [name, type] : taken) text.push_back(format("{}{},  # {}", inside, name, type));
    text.push_back(format("{}):", margin));
  }
  if (!function_.doc.empty())
    text.push_back(format("{}\"\"\"{}\"\"\"", inside, escaped(function_.doc)));
  for (std::string& line : reads) text.push_back(std::move(line));
  if (scope_.device && !is_inner_)
    text.push_back(graph_.inputs() ? format("{}device = {}.device", inside, held_[0].text)
                                   : inside + "device = \"cpu\"");
  for (std::string& line : sizes) text.push_back(std::move(line));
  return text;
}

std::string FunctionWriter::array_text(std::span<const Scalar> elements, const Type& type) {
  std::vector<std::string> items;
  for (const Scalar& x : elements) items.push_back(literal(target, x, type.dtype).text);
  bool flat = type.rank() == 1;
  return fill(format("{{xp}}.{}([{}], dtype={}){}", is("torch") ? "tensor" : "array",
                     join(items, ", "), dtype_text(target, carrier(target, type.dtype)),
                     flat ? "" : format(".reshape({})", shape_text(type.shape))));
}

/// An argument whose size is linear in the symbol tells it: "x.shape[0] // 2"; "": none.
std::string FunctionWriter::size_from_arguments(const std::string& symbol) {
  for (Val v = 0; v < graph_.inputs(); ++v) {
    const Shape& shape = graph_.types[static_cast<size_t>(v)]->shape;
    for (int k = 0; k < shape.rank(); ++k) {
      if (shape[k].is_const()) continue;
      std::vector<Dim> symbols = symbols_of(shape[k]);
      if (symbols.size() != 1 || symbol_name(symbols[0]) != symbol) continue;
      auto at = [&](int64_t n) {
        Binding bound[] = {{symbols[0], n}};
        return evaluate(shape[k], bound);
      };
      int64_t step = at(2) - at(1), rest = at(1) - step;
      if (step < 1 || at(5) != 5 * step + rest) continue;
      std::string found = format("{}.shape[{}]", held_[static_cast<size_t>(v)].text, k);
      if (rest) found = format("({} {} {})", found, rest < 0 ? '+' : '-', std::abs(rest));
      return step > 1 ? format("{} // {}", found, step) : found;
    }
  }
  return "";
}

std::string_view FunctionWriter::section_of(Loc loc) {
  auto [at, added] = sections_.try_emplace(loc.bits);
  if (!added) return at->second;
  if (function_.section) return at->second = function_.section(loc);
  if (!loc || !loc.is_host()) return "";
  Place place = resolve(loc);
  if (place.function.empty() || place.function.starts_with('<')) return "";
  return at->second = place.function;
}

void FunctionWriter::statement(std::string code, std::string comment) {
  std::string_view section = op_ ? section_of(op_->loc) : std::string_view();
  if (!section.empty() && section != section_) {
    section_ = section;
    if (!lines_.empty()) lines_.push_back({});
    lines_.push_back({format("# {}", one_line(section)), ""});
  }
  lines_.push_back({std::move(code), std::move(comment)});
}

std::string FunctionWriter::type_comment(const Type& type) {
  std::vector<std::string> sizes;
  for (Dim d : type.shape) sizes.push_back(to_text(d));
  return format("{}[{}]", type.dtype, join(sizes, ", "));
}

std::string FunctionWriter::fresh_name(const GraphOp& op, int k) {
  const std::string& wanted = wanted_names_[static_cast<size_t>(op.out + k)];
  if (!wanted.empty()) return scope_.names.fresh(wanted);
  const auto& results = op.op->results;
  bool named = k < results.size() && results[0] != "*";
  std::string_view name = named ? results[k] : op.op->name;
  constexpr size_t kLong = 16;  // of longer names the last word does
  if (name.size() > kLong) name.remove_prefix(name.rfind('_') + 1);
  return scope_.names.fresh(identifier(name));
}

void FunctionWriter::name_value(Val v) {
  Expression& e = held_[static_cast<size_t>(v)];
  if (e.literal || e.is_name()) return;
  const GraphOp& op = graph_.ops[static_cast<size_t>(made_by_[static_cast<size_t>(v)])];
  std::string name = fresh_name(op, static_cast<int>(v - op.out));
  const GraphOp* current = std::exchange(op_, &op);
  statement(format("{} = {}", name, e.text), type_comment(*graph_.types[static_cast<size_t>(v)]));
  op_ = current;
  e = {name};
}

void FunctionWriter::write_op(const GraphOp& op) {
  op_ = &op;
  const Type& type = *graph_.types[static_cast<size_t>(op.out)];
  if (op.op == &scalar_leaf) {
    if (op.scalar.is_symbolic())
      return hold(op.out, {size(op.scalar.offset()), Binds::nothing, true});
    return hold(op.out, literal(target, op.scalar, type.dtype));
  }
  size_t together = 0;
  int ops = 1;
  for (Val v : graph_.in(op)) {
    const Expression& e = held_[static_cast<size_t>(v)];
    if (e.is_name() || e.literal) continue;
    together += e.text.size(), ops += ops_[static_cast<size_t>(v)];
  }
  if (together > kTogether) {
    for (Val v : graph_.in(op)) name_value(v);
    ops = 1;
  }
  std::vector<TypeRef> types = graph_.in_types(op);
  called = op.op, in = types, out = graph_.out_types(op);
  std::string text = spell(op);
  if (op.outs > 1) {
    std::vector<std::string> names, comments;
    for (int k = 0; k < op.outs; ++k) {
      bool used = uses_[static_cast<size_t>(op.out + k)] > 0;
      names.push_back(used ? fresh_name(op, k) : "_");
      comments.push_back(type_comment(*out[static_cast<size_t>(k)]));
      hold(op.out + k, {names.back()});
    }
    return statement(format("{} = {}", join(names, ", "), text),
                     format("{}", join(comments, ", ")));
  }
  hold(op.out, expression(text));
  if (op.outs == 0) return statement(text);
  bool turned = text.ends_with(".T") || text.ends_with(".mT");  // reads as part of its operand
  ops_[static_cast<size_t>(op.out)] = turned ? ops - 1 : ops;
  bool inside = uses_[static_cast<size_t>(op.out)] == 1 && text.size() <= kInside &&
                ops_[static_cast<size_t>(op.out)] <= kMostInside;
  bool alone = graph_.outputs.size() == 1 && graph_.outputs[0] == op.out && !is_inner_;
  bool returned = alone && wanted_names_[static_cast<size_t>(op.out)].empty() &&
                  uses_[static_cast<size_t>(op.out)] == 2;
  if (!inside && !returned) name_value(op.out);
}

std::string FunctionWriter::spell(const GraphOp& op) {
  if (const PythonSpelling* spelling = python_spelling(*op.op)) {
    std::string text = spelling->write(op.attr_data(), *this);
    if (!text.empty()) return text;
  }
  switch (op.op->family) {
    case Family::elementwise:
      return elementwise(op).text;
    case Family::reduction:
      return reduction(op);
    case Family::movement:
      return movement(op);
    default:
      unsupported({}, "python source: {} has no form for {}", op.op->name, target);
  }
}

Expression FunctionWriter::operand(int k, bool named) {
  Val v = graph_.in(*op_)[static_cast<size_t>(k)];
  if (named) name_value(v);
  return held_[static_cast<size_t>(v)];
}

std::string FunctionWriter::size(Dim d) {
  if (d.is_const()) return format("{}", d.raw);
  std::vector<Replacement> renamed;
  for (Dim symbol : symbols_of(d)) {
    auto [at, added] = scope_.sizes.try_emplace(symbol_name(symbol));
    if (added) at->second = scope_.names.fresh(identifier(at->first));
    if (at->second != at->first) renamed.push_back({symbol, Dim::symbol(at->second)});
  }
  return to_text(renamed.empty() ? d : substitute(d, renamed));
}

std::string FunctionWriter::size(Offset d) {
  return d.is_const() ? format("{}", d.raw) : size(d.size());
}

std::string FunctionWriter::shape_text(const Shape& shape) {
  std::vector<std::string> sizes;
  for (Dim d : shape) sizes.push_back(size(d));
  return tuple(sizes);
}

std::string FunctionWriter::function(const Graph& graph, std::string_view name) {
  Function inner{scope_.names.fresh(name), &graph};
  FunctionWriter writer(inner, scope_, constants_, indent_ + 4);
  writer.section_ = section_;
  std::vector<std::string> text = writer.write();
  statement("");
  std::string margin(static_cast<size_t>(indent_ + 4), ' ');
  for (const std::string& line : text)
    lines_.push_back({line.starts_with(margin) ? line.substr(margin.size()) : line, ""});
  lines_.push_back({});
  return inner.name;
}

Expression FunctionWriter::attribute(std::string_view name) {
  FieldList fields = list_fields(*op_->op->attrs, const_cast<void*>(op_->attr_data()));
  for (const Field& f : fields.items) {
    if (f.name != name) continue;
    if (f.set && !*f.set) return {"None"};
    return visit_field(
        f, Overloads{
               [](bool v) { return Expression{v ? "True" : "False"}; },
               [](int64_t v) { return expression(format("{}", v)); },
               [&](double v) { return literal(target, Scalar(v), DType::f64); },
               [](Axis v) { return Expression{format("{}", v.i)}; },
               [&](Dim v) { return expression(size(v)); },
               [&](const Shape& v) { return Expression{shape_text(v)}; },
               [&](const Offsets& v) {
                 std::vector<std::string> items;
                 for (Offset o : v) items.push_back(size(o));
                 return Expression{tuple(items)};
               },
               [&](DType v) { return Expression{dtype_text(target, carrier(target, v))}; },
               [&](uint8_t v) { return Expression{format("\"{}\"", f.choices[v])}; },
               [](std::string_view v) { return Expression{format("{:?}", v)}; },
               [&](const Scalar& v) { return literal(target, v, out[0]->dtype); },
               [&](GraphRef v) { return Expression{function(*v, name)}; },
               [](const auto& list) { return Expression{numbers(list)}; },
           });
  }
  throw_internal(format("python source: {} has no attribute {}", op_->op->name, name));
}

std::string FunctionWriter::fill(std::string_view text) {
  auto is_number = [](std::string_view s) {
    return !s.empty() &&
           std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  auto number = [](std::string_view s) { return std::atoi(std::string(s).c_str()); };
  auto as_array = [&](const Expression& e, int k) {
    return e.literal ? expression(typed(target, e, in[static_cast<size_t>(k)]->dtype)) : e;
  };
  auto several = [&](int first) {
    std::vector<std::string> items;
    for (int k = first; k < static_cast<int>(in.size()); ++k)
      items.push_back(as_array(operand(k), k).text);
    return Expression{format("{}", join(items, ", "))};
  };
  return source::fill(text, [&](std::string_view key) -> Expression {
    if (is_number(key)) {
      std::string whole = format("{{{}}}", key);
      bool again = text.find(whole) != text.rfind(whole);
      return as_array(operand(number(key), again), number(key));
    }
    if (key.starts_with('*')) return several(key == "*" ? 0 : number(key.substr(1)));
    if (key == "xp") return {std::string(module_of(target))};
    if (key == "device") {
      scope_.device = true;
      return {"device"};
    }
    size_t dot = key.find('.');
    if (dot == key.npos) return attribute(key);
    std::string_view of = key.substr(0, dot), what = key.substr(dot + 1);
    const Type& type = of == "out" ? *out[0] : *in[static_cast<size_t>(number(of))];
    if (what == "shape") return {shape_text(type.shape)};
    if (what == "rank") return {format("{}", type.rank())};
    if (what == "dtype") return {dtype_text(target, carrier(target, type.dtype))};
    throw_internal(format("python source: {}: no meaning of {{{}}}", op_->op->name, key));
  });
}

}  // namespace tn::source
