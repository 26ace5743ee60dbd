// The C text that printed functions build on, of which a file has what it needs.
#include <algorithm>

#include "backend/source/c_expressions.h"
#include "backend/source/c_library.h"
#include "backend/source/c_printer.h"
#include "backend/source/embedded_text.h"
#include "base/error.h"

namespace tn::source {
namespace {

std::string_view prelude_part(std::string_view name) {
  return embedded_section("tn_prelude.c", name);
}

class Parts {
 public:
  Parts() {
    add_types();
    add_functions(prelude_part("bits"));
    add_integers();
    add_functions(prelude_part("floor"));
    add_floats();
    add_math();
    for (CPart& part : c_orders()) list.push_back(std::move(part));
    for (CPart& part : c_products()) list.push_back(std::move(part));
  }

  std::vector<CPart> list;

 private:
  void add(std::string_view text, std::vector<std::string> names) {
    list.push_back({std::string(text), std::move(names)});
  }

  /// One part for each: they begin with the word TN_FN at the beginning of a line.
  void add_functions(std::string_view text) {
    while (!text.empty()) {
      size_t size = std::min(text.find("\nTN_FN"), text.size() - 1) + 1;
      std::string_view function = text.substr(0, size);
      size_t end = function.find('('), first = function.rfind("tn_", end);
      add(function, {std::string(function.substr(first, end + 1 - first))});
      text.remove_prefix(size);
    }
  }
  void add_functions(std::string_view text, DType type) {
    int bits = 8 * static_cast<int>(size_of(type));
    bool natural = type == DType::b1 || kind_of(type) == Kind::natural;
    std::string own = type == DType::f32   ? "float"
                      : type == DType::f64 ? "double"
                                           : format("{}int{}_t", natural ? "u" : "", bits);
    add_functions(c_filled(c_typed(text, type), {{"@T", own},
                                                 {"@U", format("uint{}_t", bits)},
                                                 {"@W", format("uint{}_t", std::max(bits, 32))}}));
  }
  void add_functions(const std::string& text) { add_functions(std::string_view(text)); }

  void add_integers() {
    for (DType type : kCTypes) {
      if (is_float(type)) continue;
      add_functions(prelude_part("ordered"), type);
      if (type != DType::b1)
        add_functions(prelude_part(kind_of(type) == Kind::natural ? "unsigned" : "signed"), type);
    }
  }

  void add_math() {
    add(prelude_part("math"), {"TN_MATH"});
    for (int i = 0; i < loop::kOps; ++i) {
      auto op = static_cast<loop::Op>(i);
      if (!loop::facts(op).math) continue;
      auto add_form = [&](DType type, bool narrow) {
        add(math_c(op, type, narrow), {c_math_name(op, type, narrow) + "("});
      };
      add_form(DType::f32, false);
      add_form(DType::f64, false);
      if (loop::facts(op).narrow) add_form(DType::f32, true);
    }
  }

  void add_types() {
    constexpr std::pair<DType, const char*> kTypes[] = {{DType::b1, "uint8_t"},
                                                        {DType::i8, "int8_t"},
                                                        {DType::i16, "int16_t"},
                                                        {DType::i32, "int32_t"},
                                                        {DType::i64, "int64_t"},
                                                        {DType::u8, "uint8_t"},
                                                        {DType::u16, "uint16_t"},
                                                        {DType::u32, "uint32_t"},
                                                        {DType::u64, "uint64_t"},
                                                        {DType::f8e4m3, "uint8_t"},
                                                        {DType::f8e5m2, "uint8_t"},
                                                        {DType::f16, "uint16_t"},
                                                        {DType::bf16, "uint16_t"},
                                                        {DType::f32, "float"},
                                                        {DType::f64, "double"},
                                                        {DType::c64, "struct { float re, im; }"},
                                                        {DType::c128, "struct { double re, im; }"}};
    for (auto [type, is] : kTypes) {
      std::string name = c_type(type);
      add(format("typedef {} TN_ELEMENT {};\n", is, name), {name + " ", name + ")"});
    }
  }

  void add_floats() {
    for (DType type : {DType::f32, DType::f64}) add_functions(prelude_part("floats"), type);
    add(prelude_part("saturate"), {"TN_SATURATE_FROM("});
    for (std::string_view f : {"f32", "f64"}) {
      std::string_view type = f == "f32" ? "float" : "double";
      std::vector<std::string> names;
      for (const char* to : {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"})
        names.push_back(format("tn_{}_from_{}(", to, f));
      add(format("TN_SATURATE_FROM({}, {}, {})\n", f, type, f == "f32" ? 0 : 1), names);
    }
    add(prelude_part("remainder"), {"tn_rem_f32(", "tn_rem_f64("});
    add(prelude_part("narrow"), {"TN_NARROW("});
    constexpr std::pair<const char*, const char*> kNarrows[] = {
        {"f16", "f16, uint16_t, 5, 10, 1"},
        {"f8e5m2", "f8e5m2, uint8_t, 5, 2, 1"},
        {"f8e4m3", "f8e4m3, uint8_t, 4, 3, 0"}};
    for (auto [name, is] : kNarrows)
      add(format("TN_NARROW({})\n", is),
          {format("tn_{}_from_f32(", name), format("tn_f32_from_{}(", name)});
    add(prelude_part("bf16"), {"tn_bf16_from_f32(", "tn_f32_from_bf16("});
    add(prelude_part("odd"), {"tn_odd_from_f64(", "tn_odd_from_u64(", "tn_odd_from_i64("});
  }
};

}  // namespace

std::string c_typed(std::string_view text, DType type) {
  std::string made, name = format("{}", type);
  for (char c : text) c == '$' ? made += name : made += c;
  return made;
}

std::string c_filled(std::string text, std::span<const std::pair<std::string, std::string>> words) {
  for (const auto& [word, by] : words)
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += by.size())
      text.replace(at, word.size(), by);
  return text;
}

// What comes later in the prelude may need what comes before it.
std::string c_prelude(std::string_view functions) {
  static const Parts parts;
  std::string needed(functions), prelude;
  std::vector<const CPart*> taken;
  for (size_t i = parts.list.size(); i-- > 0;) {
    const CPart& part = parts.list[i];
    if (std::ranges::none_of(part.names, [&](const std::string& name) {
          return needed.find(name) != std::string::npos;
        }))
      continue;
    needed += part.text;
    taken.push_back(&part);
  }
  std::string builtins;
  for (std::string_view name :
       {"fma", "fabs", "floor", "ceil", "trunc", "rint", "sqrt", "copysign"})
    for (std::string_view suffix : {"f", ""})
      if (std::string whole = format("{}{}", name, suffix);
          needed.find(format("__builtin_{}(", whole)) != std::string::npos)
        builtins += format("#define __builtin_{0} {0}\n", whole);
  prelude = c_filled(std::string(prelude_part("base")), {{"@", builtins}});
  for (size_t i = taken.size(); i-- > 0;) prelude += taken[i]->text;
  return prelude;
}

}  // namespace tn::source
