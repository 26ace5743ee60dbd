// The canonical text of kernels.
#include <algorithm>
#include <bit>

#include "loop/index.h"
#include "loop/kernel.h"
#include "loop/kernel_names.h"

namespace tn::loop {
namespace {

class KernelPrinter {
 public:
  explicit KernelPrinter(const Kernel& kernel) : k_(kernel), names_(axis_names(kernel.axes)) {}

  std::string text() {
    std::string out = signature();
    if (std::string line = symbols(); !line.empty()) out += "  symbols " + line + "\n";
    if (!k_.axes.empty()) out += "  axes " + axes() + "\n";
    if (k_.arguments > 0) out += format("  arguments {}\n", k_.arguments);
    for (size_t i = 0; i < k_.values.size(); ++i)
      out += format("  v{} = {} : {}\n", i, value(k_.values[i]), k_.values[i].type);
    for (const Store& s : k_.stores) out += "  " + store(s) + "\n";
    return out + "}\n";
  }

 private:
  // Outputs that come before an input keep their place, marked.
  std::string signature() const {
    size_t inputs = k_.buffers.size();
    while (inputs > 0 && k_.buffers[inputs - 1].written) --inputs;
    std::vector<std::string> in, out;
    for (size_t i = 0; i < k_.buffers.size(); ++i) {
      const BufferParam& b = k_.buffers[i];
      std::string text = format("{}: {}[{}]", b.name, b.type, b.size);
      if (i < inputs)
        in.push_back(b.written ? "out " + text : text);
      else
        out.push_back(text);
    }
    return format("kernel {}({}) -> ({}) {{\n", k_.name, join(in, ", "), join(out, ", "));
  }

  std::string symbols() const {
    std::vector<Dim> found;
    auto add = [&](Dim size) {
      for (Dim symbol : symbols_of(size))
        if (!contains(found, symbol)) found.push_back(symbol);
    };
    for (const KernelAxis& axis : k_.axes) add(axis.extent);
    for (const BufferParam& buffer : k_.buffers) add(buffer.size);
    std::vector<std::string> parts;
    for (Dim symbol : found) {
      Bounds range = bounds(symbol);
      parts.push_back(format("{} in {}..{}", symbol_name(symbol), range.lo, range.hi));
    }
    return format("{}", join(parts, ", "));
  }

  std::string axes() const {
    static constexpr std::string_view kKinds[] = {"par", "red", "scan"};
    std::vector<std::string> parts;
    for (size_t k = 0; k < k_.axes.size(); ++k)
      parts.push_back(format("{}:{} {}", names_[k], k_.axes[k].extent,
                             kKinds[static_cast<size_t>(k_.axes[k].kind)]));
    return format("{}", join(parts, ", "));
  }

  std::string index(PolyId poly) const { return index_text(k_.polys, poly, names_); }

  std::string condition(MaskId mask) const {
    if (mask == kNone) return "";
    std::vector<std::string> parts;
    for (PolyId poly : k_.masks[static_cast<size_t>(mask)]) parts.push_back(index(poly) + " >= 0");
    return format(" if {}", join(parts, " & "));
  }

  std::string over(AxisSet axes) const {
    std::vector<std::string> parts;
    for (size_t k = 0; k < k_.axes.size(); ++k)
      if (axes >> k & 1) parts.push_back(names_[k]);
    return format("{}", join(parts, " "));
  }

  // The shortest digits that give the element's bits again.
  static std::string literal(const Value& v) {
    const Scalar& x = v.literal;
    if (v.type == DType::b1)
      return (x.is_integral() ? x.integer != 0 : x.real != 0) ? "true" : "false";
    if (v.type == DType::f32 && !x.is_integral()) return format("{}", static_cast<float>(x.real));
    if (is_float(v.type) && !x.is_integral()) return format("{}", x.real);
    if (x.kind == Kind::natural || v.type == DType::u64)
      return format("{}", static_cast<uint64_t>(x.integer));
    return x.is_integral() ? format("{}", x.integer) : format("{}", x.real);
  }

  std::string value(const Value& v) const {
    switch (v.op) {
      case Op::constant:
        return "constant " + literal(v);
      case Op::argument:
        return format("argument {}", v.a);
      case Op::index:
        return "index " + index(v.index);
      case Op::load:
        return format("load {}[{}]{}", k_.buffers[static_cast<size_t>(v.buffer)].name,
                      index(v.index), condition(v.mask));
      case Op::reduce:
        return format("reduce {} v{} over {}", name_of(v.monoid), v.a, over(v.over));
      case Op::scan:
        return format("scan {} v{} over {}{}{}", name_of(v.monoid), v.a, over(v.over),
                      v.reverse ? " reverse" : "", v.exclusive ? " exclusive" : "");
      default:
        break;
    }
    std::string out = format("{}{} v{}", v.narrow ? "narrow " : "", facts(v.op).name, v.a);
    if (facts(v.op).operands > 1) out += format(", v{}", v.b);
    if (facts(v.op).operands > 2) out += format(", v{}", v.c);
    return out;
  }

  std::string store(const Store& s) const {
    static constexpr std::string_view kCombines[] = {"", "add ", "mul ", "max ", "min "};
    return format("store {}{}{}[{}] = v{}{}", kCombines[static_cast<size_t>(s.combine)],
                  s.scattered ? "scattered " : "", k_.buffers[static_cast<size_t>(s.buffer)].name,
                  index(s.index), s.value, condition(s.mask));
  }

  const Kernel& k_;
  std::vector<std::string> names_;
};

}  // namespace

std::vector<std::string> axis_names(const std::vector<KernelAxis>& axes) {
  static constexpr std::string_view kLetters = "prs";
  std::vector<std::string> names;
  for (size_t k = 0; k < axes.size(); ++k)
    names.push_back(format("{}{}", kLetters[static_cast<size_t>(axes[k].kind)], k));
  return names;
}

std::string to_text(const Kernel& kernel) { return KernelPrinter(kernel).text(); }

}  // namespace tn::loop
