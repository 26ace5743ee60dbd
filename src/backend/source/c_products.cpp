// Products and convolutions as C. `$` is the element type, f32 or f64; sums of other types are
// plain loops.
#include "backend/source/c_expressions.h"
#include "backend/source/c_library.h"
#include "backend/source/embedded_text.h"
#include "base/error.h"

namespace tn::source {
namespace {

std::string_view product_part(std::string_view name) {
  return embedded_section("tn_products.c", name);
}

}  // namespace

std::vector<CPart> c_products() {
  std::vector<CPart> parts;
  auto add = [&](std::string_view text, std::vector<std::string> names) {
    parts.push_back({std::string(text), std::move(names)});
  };
  auto add_typed = [&](std::string_view text, std::string_view stem) {
    for (DType type : {DType::f32, DType::f64})
      add(c_typed(text, type), {format("{}_{}(", stem, type)});
  };
  add(product_part("tile"), {"TN_ROWS"});
  add_typed(product_part("tile_of"), "tn_tile");
  add_typed(product_part("turn"), "tn_turn");
  add_typed(product_part("pack"), "tn_pack");
  add_typed(product_part("product"), "tn_product");
  add(product_part("conv_shape"), {"tn_conv "});
  add(product_part("planes"), {"tn_planes "});
  add_typed(product_part("planes_of"), "tn_copy_planes");
  add_typed(product_part("conv"), "tn_conv");
  add_typed(product_part("conv_gradient"), "tn_conv_gradient");
  add(c_meet(), {"tn_meet("});
  for (DType type : kCTypes)
    if (type != DType::f32 && type != DType::f64)
      for (CPart& part : c_plain_products(type)) parts.push_back(std::move(part));
  return parts;
}

}  // namespace tn::source
