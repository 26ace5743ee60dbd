#include "loop/kernel.h"

#include <array>

namespace tn::loop {

static constexpr std::array<OpFacts, kOps> kFacts = {{
    {"constant", 0},
    {"argument", 0},
    {"index", 0},
    {"load", 0},
    {"neg", 1},
    {"abs", 1},
    {"not", 1},
    {"floor", 1},
    {"ceil", 1},
    {"round", 1},
    {"trunc", 1},
    {"sqrt", 1},
    {"is_nan", 1, false, true},
    {"exp", 1, true, false, true},
    {"exp2", 1, true, false, true},
    {"expm1", 1, true, false, true},
    {"log", 1, true, false, true},
    {"log2", 1, true, false, true},
    {"log10", 1, true, false, true},
    {"log1p", 1, true, false, true},
    {"rsqrt", 1, true},
    {"cbrt", 1, true},
    {"sin", 1, true},
    {"cos", 1, true},
    {"tan", 1, true},
    {"asin", 1, true},
    {"acos", 1, true},
    {"atan", 1, true},
    {"sinh", 1, true},
    {"cosh", 1, true},
    {"tanh", 1, true, false, true},
    {"asinh", 1, true},
    {"acosh", 1, true},
    {"atanh", 1, true},
    {"erf", 1, true, false, true},
    {"erfc", 1, true, false, true},
    {"erfinv", 1, true},
    {"lgamma", 1, true},
    {"sigmoid", 1, true, false, true},
    {"gelu", 1, true, false, true},
    {"gelu_slope", 1, true},
    {"add", 2},
    {"sub", 2},
    {"mul", 2},
    {"div", 2},
    {"rem", 2},
    {"max", 2},
    {"min", 2},
    {"and", 2},
    {"or", 2},
    {"xor", 2},
    {"shl", 2},
    {"shr", 2},
    {"eq", 2, false, true},
    {"ne", 2, false, true},
    {"lt", 2, false, true},
    {"le", 2, false, true},
    {"pow", 2, true},
    {"atan2", 2, true},
    {"hypot", 2, true},
    {"logaddexp", 2, true},
    {"nextafter", 2, true},
    {"copysign", 2},
    {"select", 3},
    {"fma", 3},
    {"cast", 1},
    {"bitcast", 1},
    {"reduce", 1},
    {"scan", 1},
}};

const OpFacts& facts(Op op) { return kFacts[static_cast<size_t>(op)]; }

std::string_view name_of(Monoid monoid) {
  static constexpr std::string_view kNames[] = {"add", "mul", "max",    "min",
                                                "and", "or",  "argmax", "argmin"};
  return kNames[static_cast<size_t>(monoid)];
}

}  // namespace tn::loop
