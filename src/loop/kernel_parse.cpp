// Reading the text of a kernel, line by line.
#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/error.h"
#include "loop/builder.h"
#include "loop/index.h"
#include "loop/kernel_names.h"

namespace tn::loop {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

/// Pieces between `mark` outside brackets.
std::vector<std::string_view> split(std::string_view text, std::string_view mark) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[') ++depth;
    if (text[i] == ')' || text[i] == ']') --depth;
    if (depth == 0 && text.substr(i).starts_with(mark)) {
      parts.push_back(trim(text.substr(begin, i - begin)));
      i += mark.size() - 1;
      begin = i + 1;
    }
  }
  std::string_view last = trim(text.substr(begin));
  if (!last.empty() || !parts.empty()) parts.push_back(last);
  return parts;
}

class KernelParser {
 public:
  explicit KernelParser(std::string_view text) : rest_(text), b_("") {}

  Kernel parse() {
    signature(next_line());
    for (std::string_view line = next_line(); line != "}"; line = next_line()) statement(line);
    return b_.finish();
  }

 private:
  [[noreturn]] void wrong(std::string_view what, std::string_view text,
                          int source_line = __builtin_LINE()) const {
    throw_user(ErrorSite::here().at(source_line), Fault::value,
               format("kernel text: line {}: {}: `{}`", line_, what, text), {});
  }

  std::string_view next_line() {
    while (!rest_.empty()) {
      size_t end = std::min(rest_.find('\n'), rest_.size());
      std::string_view line = trim(rest_.substr(0, end));
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++line_;
      if (!line.empty() && line[0] != '#') return line;
    }
    wrong("the text ends before `}`", "");
  }

  /// Takes `word` and a space off the front.
  static bool take(std::string_view& text, std::string_view word) {
    if (!text.starts_with(word)) return false;
    std::string_view rest = text.substr(word.size());
    if (!rest.empty() && rest[0] != ' ') return false;
    text = trim(rest);
    return true;
  }

  int64_t number(std::string_view text) const {
    int64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) wrong("expected a number", text);
    return value;
  }

  void signature(std::string_view line) {
    if (!take(line, "kernel")) wrong("expected `kernel`", line);
    constexpr std::string_view kForm = "expected `kernel name(inputs) -> (outputs) {`";
    size_t open = line.find('('), arrow = line.find(") -> (");
    size_t close = line.rfind(')');
    if (open == line.npos || arrow == line.npos || close < arrow + 6) wrong(kForm, line);
    b_.kernel().name = std::string(line.substr(0, open));
    inputs_ = line.substr(open + 1, arrow - open - 1);
    outputs_ = line.substr(arrow + 6, close - arrow - 6);
  }

  // Buffers wait for the line that declares symbols.
  void add_buffers() {
    if (buffers_added_) return;
    buffers_added_ = true;
    for (std::string_view part : split(inputs_, ",")) add_buffer(part, take(part, "out"));
    for (std::string_view part : split(outputs_, ",")) add_buffer(part, true);
  }

  void add_buffer(std::string_view text, bool written) {
    size_t colon = text.find(':'), open = text.find('[');
    if (colon == text.npos || open == text.npos || text.back() != ']')
      wrong("expected `name: type[size]`", text);
    auto type = parse_dtype(trim(text.substr(colon + 1, open - colon - 1)));
    if (!type) wrong("unknown type", text);
    Dim size = parse_dim(text.substr(open + 1, text.size() - open - 2), symbols_);
    b_.add_buffer(std::string(trim(text.substr(0, colon))), *type, size, written);
  }

  void statement(std::string_view line) {
    if (take(line, "symbols")) return symbols(line);
    add_buffers();
    if (take(line, "axes")) return axes(line);
    if (take(line, "arguments")) {
      b_.kernel().arguments = static_cast<int>(number(line));
      return;
    }
    if (take(line, "store")) return store(line);
    size_t equals = line.find(" = "), colon = line.rfind(" : ");
    if (equals == line.npos || colon == line.npos || colon < equals)
      wrong("expected `value = operation : type`", line);
    size_t id = b_.kernel().values.size();
    if (trim(line.substr(0, equals)) != format("v{}", id)) wrong(format("expected v{}", id), line);
    auto type = parse_dtype(trim(line.substr(colon + 3)));
    if (!type) wrong("unknown type", line);
    value(trim(line.substr(equals + 3, colon - equals - 3)), *type);
    if (b_.kernel().values.size() != id + 1) wrong("a cast to the same type", line);
    if (b_.kernel().values.back().type != *type) wrong("the result has another type", line);
  }

  void symbols(std::string_view line) {
    for (std::string_view part : split(line, ",")) {
      size_t in = part.find(" in "), dots = part.find("..");
      if (in == part.npos || dots == part.npos) wrong("expected `name in low..high`", part);
      symbols_.push_back(Dim::symbol(part.substr(0, in), number(part.substr(in + 4, dots - in - 4)),
                                     number(part.substr(dots + 2))));
    }
  }

  void axes(std::string_view line) {
    for (std::string_view part : split(line, ",")) {
      size_t colon = part.find(':'), space = part.rfind(' ');
      if (colon == part.npos || space == part.npos || space < colon)
        wrong("expected `name:size kind`", part);
      std::string_view kind = part.substr(space + 1);
      if (kind != "par" && kind != "red" && kind != "scan")
        wrong("the kind of an axis is par, red or scan", part);
      Dim extent = parse_dim(trim(part.substr(colon + 1, space - colon - 1)), symbols_);
      b_.add_axis(extent, kind == "par"   ? AxisKind::par
                          : kind == "red" ? AxisKind::red
                                          : AxisKind::scan);
    }
    names_ = axis_names(b_.kernel().axes);
    for (const KernelAxis& axis : b_.kernel().axes)
      extents_.push_back(b_.polys().from_dim(axis.extent));
  }

  PolyId index(std::string_view text) {
    PolyId poly = parse_index(b_.polys(), text, names_, extents_, symbols_);
    b_.polys().for_each_atom(poly, [&](const Atom& atom) {
      if (atom.kind == AtomKind::value && atom.a >= b_.kernel().values.size())
        wrong("no such value yet in the index", text);
    });
    return poly;
  }

  S operand(std::string_view text) {
    if (text.empty() || text[0] != 'v') wrong("expected a value", text);
    int64_t id = number(text.substr(1));
    if (id < 0 || static_cast<size_t>(id) >= b_.kernel().values.size())
      wrong("no such value yet", text);
    return {&b_, static_cast<ValueId>(id)};
  }

  int buffer(std::string_view name) {
    const auto& all = b_.kernel().buffers;
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i].name == name) return static_cast<int>(i);
    wrong("no such buffer", name);
  }

  MaskId condition(std::string_view& text) {
    size_t at = text.find(" if ");
    if (at == text.npos) return kNone;
    std::vector<PolyId> polys;
    for (std::string_view part : split(text.substr(at + 4), "&")) {
      if (!part.ends_with(">= 0")) wrong("expected `>= 0`", part);
      polys.push_back(index(trim(part.substr(0, part.size() - 4))));
    }
    text = trim(text.substr(0, at));
    return b_.mask(polys);
  }

  struct Place {
    int buffer;
    PolyId index;
  };
  Place place(std::string_view text) {
    size_t open = text.find('[');
    if (open == text.npos || text.back() != ']') wrong("expected buffer[index]", text);
    int id = buffer(trim(text.substr(0, open)));
    return {id, index(text.substr(open + 1, text.size() - open - 2))};
  }

  void value(std::string_view text, DType type) {
    std::string_view whole = text;
    if (take(text, "constant")) return (void)b_.constant(literal(text, type), type);
    if (take(text, "argument")) return (void)b_.argument(static_cast<int>(number(text)), type);
    if (take(text, "index")) return (void)b_.index(index(text));
    if (take(text, "load")) {
      MaskId mask = condition(text);
      Place at = place(text);
      return (void)b_.load(at.buffer, at.index, mask);
    }
    if (take(text, "cast")) return (void)b_.cast(operand(text), type);
    if (take(text, "bitcast")) return (void)b_.bitcast(operand(text), type);
    if (take(text, "reduce")) return over_axes(text, false);
    if (take(text, "scan")) return over_axes(text, true);
    bool narrow = take(text, "narrow");
    std::string_view name = text.substr(0, text.find(' '));
    for (int i = 0; i < kOps; ++i) {
      Op op = static_cast<Op>(i);
      if (facts(op).name != name) continue;
      text = trim(text.substr(name.size()));
      std::vector<std::string_view> parts = split(text, ",");
      if (parts.size() != static_cast<size_t>(facts(op).operands))
        wrong("wrong number of operands", whole);
      if (parts.size() == 1) b_.unary(op, operand(parts[0]));
      if (parts.size() == 2) b_.binary(op, operand(parts[0]), operand(parts[1]));
      if (parts.size() == 3)
        b_.ternary(op, operand(parts[0]), operand(parts[1]), operand(parts[2]));
      b_.kernel().values.back().narrow = narrow;
      return;
    }
    wrong("unknown operation", whole);
  }

  Scalar literal(std::string_view text, DType type) const {
    if (text == "true" || text == "false") return text == "true";
    if (is_float(type) || text.find_first_of(".en") != text.npos) {
      std::string copy(text);
      char* end = nullptr;
      double value = std::strtod(copy.c_str(), &end);
      if (end != copy.c_str() + copy.size()) wrong("expected a number", text);
      return value;
    }
    if (type == DType::u64) {
      uint64_t value = 0;
      std::from_chars(text.data(), text.data() + text.size(), value);
      return value;
    }
    return number(text);
  }

  void over_axes(std::string_view text, bool scan) {
    std::vector<std::string_view> words = split(text, " ");
    if (words.size() < 4 || words[2] != "over") wrong("expected `monoid value over axes`", text);
    int monoid = 0;
    while (monoid < 8 && name_of(static_cast<Monoid>(monoid)) != words[0]) ++monoid;
    if (monoid == 8) wrong("unknown monoid", words[0]);
    AxisSet over = 0;
    int axis = 0;
    bool reverse = false, exclusive = false;
    for (size_t i = 3; i < words.size(); ++i) {
      auto found = std::find(names_.begin(), names_.end(), words[i]);
      reverse |= words[i] == "reverse";
      exclusive |= words[i] == "exclusive";
      if (words[i] == "reverse" || words[i] == "exclusive") continue;
      if (found == names_.end()) wrong("no such axis", words[i]);
      axis = static_cast<int>(found - names_.begin());
      over |= AxisSet{1} << axis;
    }
    S a = operand(words[1]);
    if (scan)
      b_.scan(static_cast<Monoid>(monoid), a, axis, reverse, exclusive);
    else
      b_.reduce(static_cast<Monoid>(monoid), a, over);
  }

  void store(std::string_view text) {
    static constexpr std::string_view kCombines[] = {"set", "add", "mul", "max", "min"};
    Combine combine = Combine::set;
    for (int i = 1; i < 5; ++i)
      if (take(text, kCombines[i])) combine = static_cast<Combine>(i);
    bool scattered = take(text, "scattered");
    MaskId mask = condition(text);
    size_t equals = text.rfind(" = ");
    if (equals == text.npos) wrong("expected `buffer[index] = value`", text);
    Place at = place(trim(text.substr(0, equals)));
    b_.store(at.buffer, at.index, operand(trim(text.substr(equals + 3))), mask, combine);
    b_.kernel().stores.back().scattered = scattered;
  }

  std::string_view rest_;
  int line_ = 0;
  Builder b_;
  std::string_view inputs_, outputs_;
  bool buffers_added_ = false;
  std::vector<Dim> symbols_;
  std::vector<std::string> names_;
  std::vector<PolyId> extents_;
};

}  // namespace

Kernel parse_kernel(std::string_view text) { return KernelParser(text).parse(); }

}  // namespace tn::loop
