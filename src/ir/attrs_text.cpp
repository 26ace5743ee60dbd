// Attributes as text: "axis=[1], keepdims=true". Fields at their default are left out.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstring>

#include "base/error.h"
#include "ir/body.h"
#include "ir/visit_field.h"

namespace tn {

namespace {

std::string text_of(const Scalar& s) {
  if (s.kind == Kind::boolean) return s.integer ? "true" : "false";
  if (s.kind == Kind::natural) return format("{}", static_cast<uint64_t>(s.integer));
  if (s.kind == Kind::integer) return format("{}", s.integer);
  auto real = [](double v) {
    if (std::isnan(v)) return std::string("nan");
    std::string text = format("{}", v);
    return text.find_first_of(".en") == text.npos ? text + ".0" : text;
  };
  if (s.kind == Kind::floating) return real(s.real);
  return format("({},{})", real(s.real), real(s.imag));
}

template <class List>
std::string list_text(const List& list) {
  std::string text = "[";
  for (int i = 0; i < list.size(); ++i) {
    if (i) text += ',';
    if constexpr (requires { list[i].i; })
      text += std::to_string(list[i].i);
    else
      text += format("{}", list[i]);
  }
  return text + "]";
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out + "\"";
}

/// A function among attributes: its lines are indented by two.
std::string nested_text(GraphRef ref) {
  std::string text;
  for (char c : to_text(*ref)) text += c == '\n' ? std::string("\n  ") : std::string(1, c);
  text.resize(text.find_last_of('}') + 1);
  return text;
}

std::string value_text(const Field& f) {
  return visit_field(f, Overloads{
                            [](bool v) { return std::string(v ? "true" : "false"); },
                            [](int64_t v) { return format("{}", v); },
                            [](double v) { return text_of(Scalar(v)); },
                            [](Axis v) { return format("{}", v.i); },
                            [](Dim v) { return to_text(v); },
                            [](const Shape& v) { return to_text(v); },
                            [](DType v) { return std::string(info(v).text); },
                            [&](uint8_t v) { return std::string(f.choices[v]); },
                            [](std::string_view v) { return quoted(v); },
                            [](GraphRef v) { return nested_text(v); },
                            [](const Scalar& v) { return text_of(v); },
                            [](const auto& list) { return list_text(list); },
                        });
}

struct AttrParser {
  std::string_view op, field, text;
  int line = 1;  // of the first character, for messages
  std::string_view all = text;
  std::string_view shown = {};  // what is being read, for messages

  [[noreturn]] void bad(std::string_view wanted, int source_line = __builtin_LINE()) const {
    throw_user(
        ErrorSite::here().at(source_line), Fault::value,
        format("{}: attribute {}: expected {}, found '{}'", op, field, wanted, shown.substr(0, 24)),
        {});
  }
  void skip() {
    while (!text.empty() && std::string_view(" ,\n\r").find(text[0]) != text.npos)
      text.remove_prefix(1);
  }
  /// Up to the next top-level comma or the end.
  std::string_view word() {
    int depth = 0;
    bool quoted = false;
    size_t at = 0;
    for (; at < text.size(); ++at) {
      char c = text[at];
      if (quoted && c == '\\') ++at;
      if (c == '"') quoted = !quoted;
      if (quoted) continue;
      depth += (c == '[' || c == '(' || c == '{') - (c == ']' || c == ')' || c == '}');
      if (c == ',' && depth == 0) break;
    }
    at = std::min(at, text.size());
    std::string_view found = text.substr(0, at);
    text.remove_prefix(at);
    while (!found.empty() && found.back() == ' ') found.remove_suffix(1);
    return found;
  }
  template <class T>
  T number(std::string_view word) const {
    T value{};
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) bad("a number");
    return value;
  }
  template <class F>
  void each(std::string_view list, F&& add) const {
    if (list.size() < 2 || list.front() != '[' || list.back() != ']') bad("a list such as [0,1]");
    AttrParser items{op, field, list.substr(1, list.size() - 2)};
    for (items.skip(); !items.text.empty(); items.skip()) add(items.word());
  }
  Scalar scalar(std::string_view w) const {
    if (w == "true" || w == "false") return Scalar(w == "true");
    if (w.starts_with('(')) {
      size_t comma = w.find(',');
      if (comma == w.npos) bad("a complex number such as (1.0,2.0)");
      return Scalar(
          std::complex<double>(number<double>(w.substr(1, comma - 1)),
                               number<double>(w.substr(comma + 1, w.size() - comma - 2))));
    }
    if (w.find_first_of(".en") != w.npos) return Scalar(number<double>(w));
    if (w.starts_with('-')) return Scalar(number<int64_t>(w));
    return Scalar(number<uint64_t>(w));
  }
  Offset offset(std::string_view w) const {
    bool plain = w.find_first_not_of("-0123456789") == w.npos;
    return plain ? Offset(number<int64_t>(w)) : Offset(parse_dim(w));
  }
  void value(const Field& f) {
    shown = word();
    visit_field(f, [&](auto& v) { read(f, shown, v); });
  }

  void read(const Field&, std::string_view w, bool& v) const {
    if (w != "true" && w != "false") bad("true or false");
    v = w == "true";
  }
  void read(const Field&, std::string_view w, int64_t& v) const { v = number<int64_t>(w); }
  void read(const Field&, std::string_view w, double& v) const { v = number<double>(w); }
  void read(const Field&, std::string_view w, Axis& v) const { v = Axis(number<int>(w)); }
  void read(const Field&, std::string_view w, Dim& v) const { v = parse_dim(w); }
  void read(const Field&, std::string_view w, Offset& v) const { v = offset(w); }
  void read(const Field&, std::string_view w, Scalar& v) const { v = scalar(w); }
  void read(const Field&, std::string_view w, GraphRef& v) const {
    v = intern(parse_graph(w, line_of(w)));
  }
  void read(const Field&, std::string_view w, DType& v) const {
    auto type = parse_dtype(w);
    if (!type) bad("an element type");
    v = *type;
  }
  void read(const Field&, std::string_view w, std::string_view& v) const {
    if (w.size() < 2 || w[0] != '"') bad("text in quotes");
    v = unquoted(w.substr(1, w.size() - 2));
  }
  void read(const Field& f, std::string_view w, uint8_t& v) const {
    auto found = std::ranges::find(f.choices, w);
    if (found == f.choices.end()) bad(format("one of {}", join(f.choices, ", ")));
    v = static_cast<uint8_t>(found - f.choices.begin());
  }
  void read(const Field&, std::string_view w, Shape& v) const {
    Shape sizes;
    each(w, [&](std::string_view d) { sizes.push_back(d == "-1" ? Dim(-1) : parse_dim(d)); });
    v = sizes;
  }
  template <class List>
  void read(const Field& f, std::string_view w, List& v) const {
    List list;
    each(w, [&](std::string_view text) {
      std::remove_cvref_t<decltype(list[0])> item;
      read(f, text, item);
      list.push_back(item);
    });
    v = list;
  }
  int line_of(std::string_view w) const {
    return line + static_cast<int>(std::count(all.data(), w.data(), '\n'));
  }
  static std::string_view unquoted(std::string_view w) {
    std::string plain;
    for (size_t i = 0; i < w.size(); ++i)
      plain += w[i] != '\\' || i + 1 == w.size() ? w[i] : w[++i] == 'n' ? '\n' : w[i];
    return intern(plain);
  }
};

}  // namespace

std::string to_text(const AttrKind& kind, const void* value) {
  std::vector<char> plain(kind.size);
  kind.init(plain.data());
  FieldList fields = list_fields(kind, const_cast<void*>(value));
  FieldList defaults = list_fields(kind, plain.data());
  std::string text;
  for (size_t i = 0; i < fields.items.size(); ++i) {
    const Field &f = fields.items[i], &d = defaults.items[i];
    if (f.set && !*f.set) continue;
    std::string shown = value_text(f);
    bool is_default = !f.required && (d.set ? *d.set : true) && shown == value_text(d);
    if (is_default) continue;
    if (!text.empty()) text += ", ";
    text += format("{}={}", f.name, shown);
  }
  return text;
}

void parse_attrs(const AttrKind& kind, void* value, std::string_view text, std::string_view op,
                 int line) {
  FieldList fields = list_fields(kind, value);
  AttrParser parser{op, "", text, line};
  uint64_t seen = 0;  // by field
  for (parser.skip(); !parser.text.empty(); parser.skip()) {
    size_t equals = parser.text.find('=');
    if (equals == parser.text.npos)
      fail("{}: attributes are written name=value, found '{}'", op, parser.text);
    parser.field = parser.text.substr(0, equals);
    parser.text.remove_prefix(equals + 1);
    const Field* found = nullptr;
    for (const Field& f : fields.items)
      if (f.name == parser.field) found = &f;
    if (!found) fail("{}: there is no attribute '{}'", op, parser.field);
    uint64_t bit = uint64_t{1} << (found - fields.items.data());
    if (seen & bit) fail("{}: attribute {} is given twice", op, parser.field);
    seen |= bit;
    if (found->set) *found->set = true;
    parser.value(*found);
  }
  for (size_t i = 0; i < fields.items.size(); ++i)
    if (fields.items[i].required && !(seen >> i & 1))
      fail("{}: attribute {} is missing", op, fields.items[i].name);
}

}  // namespace tn
