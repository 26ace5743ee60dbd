// The text of polynomials, and its parser.
#include <cctype>

#include "base/error.h"
#include "ir/poly.h"

namespace tn {
namespace {

/// Recursive descent over + - * // % ( ) min max and names.
class PolyParser {
 public:
  PolyParser(PolyTable& table, std::string_view text,
             const Callback<PolyId(std::string_view)>& name)
      : table_(table), text_(text), name_(name) {}

  PolyId all() {
    PolyId p = sum();
    if (!at_end()) wrong("an operator");
    return p;
  }

 private:
  static constexpr int kMaxNesting = 200, kMostFactors = 10'000;

  [[noreturn]] void wrong(std::string_view expected, int source_line = __builtin_LINE()) {
    throw_user(ErrorSite::here().at(source_line), Fault::value,
               format("size: expected {} at column {} of `{}`", expected, at_ + 1, text_), {});
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool at_end() {
    skip();
    return at_ == text_.size();
  }
  bool eat(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!eat(token)) wrong(format("`{}`", token));
  }

  PolyId sum() {
    if (++nesting_ > kMaxNesting) fail("size: `{}` is nested too deeply", text_);
    bool negative = eat("-");
    PolyId p = product();
    if (negative) p = table_.scale(p, -1);
    for (;;) {
      if (eat("+")) {
        p = table_.add(p, product());
      } else if (eat("-")) {
        p = table_.sub(p, product());
      } else {
        --nesting_;
        return p;
      }
    }
  }

  PolyId divisor() {
    PolyId d = factor();
    if (table_.is_constant(d) && table_.constant_of(d) < 1)
      fail("size: division by {} in `{}`", table_.constant_of(d), text_);
    return d;
  }

  PolyId product() {
    PolyId p = factor();
    for (;;) {
      if (eat("*")) {
        p = table_.mul(p, factor());
      } else if (eat("//")) {
        p = table_.div(p, divisor());
      } else if (eat("%")) {
        p = table_.mod(p, divisor());
      } else {
        return p;
      }
    }
  }

  PolyId number() {
    int64_t value = 0;
    for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); ++at_) {
      if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
          __builtin_add_overflow(value, int64_t{text_[at_] - '0'}, &value))
        fail("size: a number in `{}` does not fit in 64 bits", text_);
    }
    return table_.constant(value);
  }

  PolyId factor() {
    if (++factors_ > kMostFactors)
      fail("size: `{}…` has more than {} factors", text_.substr(0, 40), kMostFactors);
    if (eat("(")) {
      PolyId p = sum();
      expect(")");
      return p;
    }
    skip();
    if (at_ == text_.size()) wrong("a number or a name");
    auto is_word = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.';
    };
    if (std::isdigit(static_cast<unsigned char>(text_[at_]))) return number();
    size_t first = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    std::string_view word = text_.substr(first, at_ - first);
    if (word.empty()) wrong("a number or a name");
    if ((word == "min" || word == "max") && eat("(")) {
      PolyId a = sum();
      expect(",");
      PolyId b = sum();
      expect(")");
      return word == "min" ? table_.min(a, b) : table_.max(a, b);
    }
    return name_(word);
  }

  PolyTable& table_;
  std::string_view text_;
  const Callback<PolyId(std::string_view)>& name_;
  size_t at_ = 0;
  int nesting_ = 0, factors_ = 0;
};

class Printer {
 public:
  Printer(const PolyTable& table, const PolyTable::TextStyle& style)
      : table_(table), style_(style) {}

  std::string sum(PolyId p) const {
    const Poly& poly = table_[p];
    std::string out;
    for (const Term& t : poly.terms) {
      join(out, t.coef < 0);
      out += term(t);
    }
    if (poly.c0 != 0 || poly.terms.empty()) {
      join(out, poly.c0 < 0);
      out += format("{}", poly.c0 < 0 ? 0 - static_cast<uint64_t>(poly.c0) : poly.c0);
    }
    return out;
  }

 private:
  void join(std::string& out, bool negative) const {
    if (out.empty()) {
      if (negative) out += '-';
    } else if (style_.compact) {
      out += negative ? '-' : '+';
    } else {
      out += negative ? " - " : " + ";
    }
  }

  std::string term(const Term& t) const {
    uint64_t size = t.coef < 0 ? 0 - static_cast<uint64_t>(t.coef) : t.coef;
    const std::vector<AtomId>& atoms = table_.atoms_of(t.mono);
    bool alone = size == 1 && atoms.size() == 1;
    std::string out = size == 1 ? "" : format("{}", size);
    auto put = [&](AtomId id) {
      if (!out.empty()) out += '*';
      out += atom(table_.atom(id), style_.compact && alone);
    };
    for (AtomId id : atoms)
      if (table_.atom(id).kind == AtomKind::symbol) put(id);
    for (AtomId id : atoms)
      if (table_.atom(id).kind != AtomKind::symbol) put(id);
    return out;
  }

  // An operand of // or %: a sum or a product needs parentheses, an atom brings its own.
  std::string operand(PolyId p) const {
    if (table_.is_constant(p) && table_.constant_of(p) >= 0) return sum(p);
    auto id = table_.as_atom(p);
    if (id) return atom(table_.atom(*id), false);
    return "(" + sum(p) + ")";
  }

  std::string atom(const Atom& a, bool bare) const {
    switch (a.kind) {
      case AtomKind::axis:
        return a.a < style_.axis_names.size() ? style_.axis_names[a.a] : format("a{}", a.a);
      case AtomKind::value:
        return format("${}", a.a);
      case AtomKind::symbol:
        return std::string(table_.name_of(a));
      case AtomKind::min:
      case AtomKind::max: {
        const char* name = a.kind == AtomKind::min ? "min" : "max";
        return format("{}({}{}{})", name, sum(a.a), style_.compact ? "," : ", ", sum(a.b));
      }
      case AtomKind::div:
      case AtomKind::mod:
        break;
    }
    const char* op = a.kind == AtomKind::div ? "//" : "%";
    std::string text = operand(a.a) + op + operand(a.b);
    return bare ? text : "(" + text + ")";
  }

  const PolyTable& table_;
  const PolyTable::TextStyle& style_;
};

}  // namespace

std::string PolyTable::text(PolyId p, const TextStyle& style) const {
  return Printer(*this, style).sum(p);
}

PolyId PolyTable::parse(std::string_view text, const Callback<PolyId(std::string_view)>& name) {
  return PolyParser(*this, text, name).all();
}

}  // namespace tn
