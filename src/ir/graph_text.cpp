// Graphs as text, both ways.
#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "base/error.h"
#include "ir/graph_read.h"
#include "ir/named_symbols.h"

namespace tn {

namespace {

std::string name_of(const Graph& graph, Val v) {
  if (v < graph.inputs()) return "%" + graph.input_names[static_cast<size_t>(v)];
  return format("%{}", v - graph.inputs());
}

std::string types_text(Types types) {
  std::vector<std::string> list;
  for (TypeRef t : types) list.push_back(to_text(*t));
  return list.size() == 1 ? list[0] : format("({})", join(list, ", "));
}

std::string attrs_text(const GraphOp& op) {
  std::string text;
  if (op.op == &scalar_leaf) {
    ScalarAttrs attrs{op.scalar};
    text = to_text(*op.op->attrs, &attrs);
    if (text.empty()) text = "value=0";
  } else if (op.attrs) {
    text = to_text(*op.op->attrs, op.attrs->data);
  }
  return text.empty() ? "" : " {" + text + "}";
}

std::string op_text(const Graph& graph, const GraphOp& op) {
  std::vector<std::string> out, in;
  for (int i = 0; i < op.outs; ++i) out.push_back(name_of(graph, op.out + i));
  for (Val v : graph.in(op)) in.push_back(name_of(graph, v));
  std::string operands = in.empty() ? "" : format(" {}", join(in, ", "));
  return format("  {} = {}{}{} : {}\n", join(out, ", "), op.op->name, operands, attrs_text(op),
                types_text(graph.out_types(op)));
}

void add_symbols(Dim size, std::vector<Dim>& found) {
  if (size.is_const() || size.is_negative()) return;
  for (Dim symbol : symbols_of(size))
    if (!contains(found, symbol)) found.push_back(symbol);
}

void add_symbols(const Attrs& attrs, std::vector<Dim>& found) {
  for (const Field& f : list_fields(*attrs.kind, const_cast<char*>(attrs.data)).items) {
    if (f.set && !*f.set) continue;
    if (f.kind == FieldKind::size) add_symbols(*static_cast<Dim*>(f.at), found);
    if (f.kind == FieldKind::shape)
      for (Dim d : *static_cast<Shape*>(f.at)) add_symbols(d, found);
    if (f.kind == FieldKind::offsets)
      for (Offset o : *static_cast<Offsets*>(f.at))
        if (!o.is_const()) add_symbols(o.size(), found);
  }
}

/// "[s0: 1..16]": symbols that do not have the default range; graphs among attributes say their
/// own.
std::string ranges_text(const Graph& graph) {
  std::vector<Dim> found;
  for (TypeRef type : graph.types)
    if (type->elements <= 0)  // an empty one may have symbols
      for (Dim d : type->shape) add_symbols(d, found);
  for (const GraphOp& op : graph.ops)
    if (op.attrs) add_symbols(*op.attrs, found);
  std::vector<std::string> ranges;
  for (Dim symbol : found)
    if (auto [lo, hi] = bounds(symbol); lo != 1 || hi != Dim::kLargestSymbol)
      ranges.push_back(format("{}: {}..{}", symbol, lo, hi));
  std::ranges::sort(ranges);
  return ranges.empty() ? "" : format("[{}]", join(ranges, ", "));
}

}  // namespace

std::string to_text(const Graph& graph) {
  std::vector<std::string> inputs, outputs;
  for (Val v = 0; v < graph.inputs(); ++v)
    inputs.push_back(format("{}: {}", name_of(graph, v), *graph.types[static_cast<size_t>(v)]));
  std::vector<TypeRef> result_types;
  for (Val v : graph.outputs) {
    outputs.push_back(name_of(graph, v));
    result_types.push_back(graph.types[static_cast<size_t>(v)]);
  }
  std::string text = format("func @{}{}({}) -> {} {{\n", graph.name, ranges_text(graph),
                            join(inputs, ", "), types_text(result_types));
  for (const GraphOp& op : graph.ops) text += op_text(graph, op);
  return text + format("  return {}\n}}\n", join(outputs, ", "));
}

namespace {

constexpr int kMostNested = 64;  // graphs in graphs, as in files

/// Whether texts read on this thread are taken as they were printed: see read_graph.
thread_local bool as_printed = false;
thread_local int nested = 0;  // graphs that are being read on this thread

/// Reads one function, line by line.
class Parser {
 public:
  Parser(std::string_view text, int first_line) : text_(text), line_number_(first_line - 1) {}

  Graph parse() {
    if (!next_line() || !take("func @")) bad("expected 'func @name(...)'");
    header();
    for (;;) {
      if (!next_line()) bad("the text ends before 'return'");
      if (take("return")) break;
      op();
      end_line();
    }
    result();
    if (!next_line() || !take("}")) bad("expected '}}' after 'return'");
    end_line();
    if (next_line()) bad("expected nothing after '}}', found '{}'", line_.substr(0, 24));
    return std::move(graph_);
  }

 private:
  template <class... A>
  [[noreturn]] void bad(ErrorText<A...> what, A&&... args) {
    std::string text = format(what.text, std::forward<A>(args)...);
    throw_user(what.site, Fault::value, format("graph text, line {}: {}", line_number_, text), {});
  }
  /// The next line that is not empty or a comment, without leading space.
  bool next_line() {
    while (!text_.empty()) {
      size_t end = text_.find('\n');
      line_ = text_.substr(0, end);
      text_.remove_prefix(end == text_.npos ? text_.size() : end + 1);
      ++line_number_;
      skip();
      if (!line_.empty() && line_[0] != '#') return true;
    }
    return false;
  }
  void skip() {
    while (!line_.empty() && (line_[0] == ' ' || line_[0] == '\r')) line_.remove_prefix(1);
  }
  bool at_end() {
    skip();
    return line_.empty() || line_[0] == '#';
  }
  void end_line() {
    if (!at_end()) bad("expected the end of the line, found '{}'", line_.substr(0, 24));
  }
  bool take(std::string_view prefix) {
    skip();
    if (!line_.starts_with(prefix)) return false;
    line_.remove_prefix(prefix.size());
    skip();
    return true;
  }
  void expect(std::string_view prefix) {
    if (!take(prefix)) bad("expected '{}', found '{}'", prefix, line_.substr(0, 24));
  }
  std::string_view word() {
    size_t n = 0;
    auto letter = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
    };
    while (n < line_.size() && letter(line_[n])) ++n;
    if (n == 0) bad("expected a name, found '{}'", line_.substr(0, 24));
    std::string_view found = line_.substr(0, n);
    line_.remove_prefix(n);
    return found;
  }
  TypeRef type() {
    skip();
    std::optional<Type> found = parse_type(line_);
    if (!found) bad("expected a type such as f32[2,3], found '{}'", line_.substr(0, 24));
    return intern(*found);
  }
  /// One or more items with commas between them.
  template <class F>
  void separated(F&& item) {
    do {
      item();
    } while (take(","));
  }
  template <class F>
  void list(std::string_view close, F&& item) {
    if (take(close)) return;
    separated(item);
    expect(close);
  }
  std::vector<TypeRef> types() {
    if (!take("(")) return {type()};
    std::vector<TypeRef> found;
    list(")", [&] { found.push_back(type()); });
    return found;
  }
  void define(const std::string& name, Val value) {
    if (!values_.emplace(name, value).second) bad("%{} is defined twice", name);
  }
  void header() {
    graph_.name = word();
    if (take("[")) ranges();
    expect("(");
    list(")", [&] {
      expect("%");
      std::string name(word());
      expect(":");
      define(name, graph_.add_input(name, type()));
    });
    if (take("->")) declared_ = types();
    expect("{");
    end_line();
  }
  int64_t number(std::string_view digits) {
    int64_t value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size())
      bad("expected a number, found '{}'", digits);
    return value;
  }
  void ranges() {
    std::vector<Dim> symbols;
    list("]", [&] {
      std::string name(word());
      expect(":");
      std::string_view range = word();
      size_t dots = range.find("..");
      if (dots == range.npos) bad("expected a range such as 1..16, found '{}'", range);
      symbols.push_back(
          Dim::symbol(name, number(range.substr(0, dots)), number(range.substr(dots + 2))));
    });
    symbols_.emplace(std::move(symbols));
  }
  Val use() {
    expect("%");
    std::string name(word());
    auto found = values_.find(name);
    if (found == values_.end()) bad("%{} is not defined", name);
    return found->second;
  }
  void result() {
    std::vector<TypeRef> given;
    if (!at_end())
      separated([&] {
        graph_.outputs.push_back(use());
        given.push_back(graph_.types[static_cast<size_t>(graph_.outputs.back())]);
      });
    end_line();
    if (declared_ && *declared_ != given)
      bad("the function returns {}, and declares {}", types_text(given), types_text(*declared_));
  }
  /// What stands between braces, which may go over several lines: a graph is a value.
  std::string_view braces() {
    attrs_line_ = line_number_;
    if (!take("{")) return "";
    std::string_view rest(line_.data(),
                          static_cast<size_t>(text_.data() - line_.data()) + text_.size());
    size_t end = closing_brace(rest);
    if (end == rest.npos) bad("expected '}}'");
    std::string_view inner = rest.substr(0, end);
    line_number_ += static_cast<int>(std::count(inner.begin(), inner.end(), '\n'));
    rest.remove_prefix(end + 1);
    line_ = rest.substr(0, rest.find('\n'));
    text_ = rest.substr(std::min(line_.size() + 1, rest.size()));
    return inner;
  }
  static size_t closing_brace(std::string_view text) {
    int open = 1;
    bool quoted = false;
    for (size_t at = 0; at < text.size(); ++at) {
      if (text[at] == '\n' && open == 1) break;  // only what is nested goes over lines
      if (quoted && text[at] == '\\')
        ++at;
      else if (text[at] == '"')
        quoted = !quoted;
      else if (!quoted && text[at] == '{')
        ++open;
      else if (!quoted && text[at] == '}' && --open == 0)
        return at;
    }
    return text.npos;
  }
  void op() {
    std::vector<std::string> names;
    do {
      expect("%");
      names.emplace_back(word());
    } while (take(","));
    expect("=");
    std::string_view op_name = word();
    const OpDef* op = find_op(op_name);
    if (!op) unknown(op_name);
    std::vector<Val> in;
    skip();
    if (line_.starts_with('%')) separated([&] { in.push_back(use()); });
    std::string_view attrs = braces();
    std::vector<TypeRef> given;
    if (take(":")) given = types();
    Val first = op == &scalar_leaf ? constant(attrs, given) : add(*op, in, attrs, given);
    size_t results = op == &scalar_leaf ? 1 : static_cast<size_t>(graph_.ops.back().outs);
    if (names.size() != results)
      bad("{} gives {} results, {} are named", op->name, results, names.size());
    for (size_t i = 0; i < names.size(); ++i) define(names[i], first + static_cast<Val>(i));
  }
  [[noreturn]] void unknown(std::string_view name) {
    std::vector<std::string_view> names;
    for (const OpDef* op : op_table()) names.push_back(op->name);
    std::string_view near = nearest_name(name, names);
    if (near.empty()) bad("there is no op '{}'", name);
    bad("there is no op '{}'; did you mean '{}'?", name, near);
  }
  Val constant(std::string_view attrs, const std::vector<TypeRef>& given) {
    ScalarAttrs value;
    parse_attrs(*scalar_leaf.attrs, &value, attrs, "constant");
    TypeRef type = given.empty() ? intern(default_dtype(value.value.kind), {}) : given[0];
    return graph_.add_constant(value.value, type);
  }
  /// A graph holds attributes as calls make them: axes counted from the front, defaults filled in.
  void check_canonical(const OpDef& op, const char* given, const std::vector<TypeRef>& in_types) {
    if (!op.rules->prepare) return;
    AttrBuffer canonical(*op.attrs, given);
    Tensors in;
    for (TypeRef type : in_types) in.push_back(make_param(type));
    while (!op.has_list() && static_cast<int>(in.size()) < op.args.size()) in.emplace_back();
    op.rules->prepare(canonical.data, in);
    if (!equal(*op.attrs, given, canonical.data))
      bad("{}: attributes in a graph are canonical: {{{}}}", op.name,
          to_text(*op.attrs, canonical.data));
  }
  Val add(const OpDef& op, const std::vector<Val>& in, std::string_view attrs,
          const std::vector<TypeRef>& given) {
    if (!op.recorded) bad("{} is not recorded: it stands for other ops", op.name);
    AttrBuffer read(*op.attrs);
    parse_attrs(*op.attrs, read.data, attrs, op.name, attrs_line_);
    const Attrs* interned = intern(*op.attrs, read.data);
    std::vector<TypeRef> in_types;
    for (Val v : in) in_types.push_back(graph_.types[static_cast<size_t>(v)]);
    int required = 0;
    for (const ArgDef& arg : op.args) required += !arg.optional && !arg.list;
    if (static_cast<int>(in.size()) < required)
      bad("{} takes {} operands, found {}", op.name, required, in.size());
    if (!op.has_list() && static_cast<int>(in.size()) > op.args.size())
      bad("{} takes at most {} operands, found {}", op.name, op.args.size(), in.size());
    if (as_printed) {
      if (given.empty()) bad("{}: the types of its results are missing", op.name);
      return graph_.add(op, interned, in, given);
    }
    check_canonical(op, read.data, in_types);
    // The runtime has no bodies to infer from (ops/rules.h): what the text says holds.
    bool stated = op.family == Family::composite && !op.infer && !op.rules->body;
    Device made_at = given.empty() ? Device() : given[0]->device;
    std::span<const TypeRef> inferred =
        stated ? given : infer_types(op, interned, in_types, {made_at});
    for (size_t i = 0; i < given.size(); ++i)
      if (given.size() != inferred.size() || given[i] != inferred[i])
        bad("{} gives {}, not {}", op.name, types_text(inferred), types_text(given));
    return graph_.add(op, interned, in, inferred);
  }

  std::string_view text_, line_;
  int line_number_;
  int attrs_line_ = 0;
  Graph graph_;
  std::optional<std::vector<TypeRef>> declared_;
  std::unordered_map<std::string, Val> values_;
  std::optional<NamedSymbols> symbols_;
};

}  // namespace

Graph parse_graph(std::string_view text, int first_line) {
  struct Scope {
    Scope() { ++nested; }
    ~Scope() { --nested; }
  } scope;
  if (nested > kMostNested)
    fail("graph text, line {}: graphs are nested more than {} deep", first_line, kMostNested);
  return Parser(text, first_line).parse();
}

Graph read_graph(std::string_view text) {
  struct Scope {
    bool outer = std::exchange(as_printed, true);
    ~Scope() { as_printed = outer; }
  } scope;
  return parse_graph(text);
}

}  // namespace tn
