// Products and convolutions of integers and narrow floats as C: plain loops, whose sums have the
// type that they are computed in.
#include "backend/source/c_expressions.h"
#include "backend/source/c_library.h"
#include "backend/source/embedded_text.h"
#include "base/error.h"

namespace tn::source {
namespace {

std::string_view plain_part(std::string_view name) {
  return embedded_section("tn_plain_products.c", name);
}

using loop::Op;

/// sum + x * y, in the type that sums have.
std::string multiply_add(DType type, std::string_view sum) {
  if (is_float(type)) return format("__builtin_fmaf(p, q, {})", sum);
  if (type == DType::b1) return c_binary(Op::or_, type, sum, "(p != 0 && q != 0)");
  return c_binary(Op::add, type, sum, c_binary(Op::mul, type, "p", "q"));
}

std::string plain(std::string_view form, DType type) {
  DType wide = info(type).compute;
  std::string add = c_binary(Op::add, wide, "total[j]", "sum[j]");
  if (wide == DType::b1) add = c_binary(Op::or_, wide, "total[j]", "sum[j]");
  std::vector<std::pair<std::string, std::string>> words{
      {"@WIDE", c_type(wide)},
      {"@AT", c_cast(type, wide, "at")},
      {"@OTHER", c_cast(type, wide, "other")},
      {"@ADD", is_float(type) ? format("k0 == 0 ? sum[j] : {}", add) : add}};
  for (std::string_view sum : {"sum[j]", "sum", "total[j]"}) {
    words.push_back({format("@STEP[{}]", sum), multiply_add(wide, sum)});
    words.push_back({format("@NARROW[{}]", sum), c_cast(wide, type, sum)});
  }
  return c_filled(c_typed(form, type), words);
}

}  // namespace

std::vector<CPart> c_plain_products(DType type) {
  auto named = [&](std::string_view stem, std::string_view text) {
    return CPart{plain(text, type), {format("{}_{}(", stem, type)}};
  };
  return {named("tn_product", plain_part("plain_product")),
          named("tn_conv", plain_part("plain_conv")),
          named("tn_conv_gradient", plain_part("plain_conv_gradient"))};
}

std::string_view c_meet() { return plain_part("meet"); }

}  // namespace tn::source
