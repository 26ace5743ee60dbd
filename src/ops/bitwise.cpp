// Operations on the bits of integers, and on booleans as single bits.
#include "ops/families.h"
#include "ops/op_decls.h"

namespace tn::ops {

static constexpr KindSet kBits = booleans | integers;

constinit const OpDef bitwise_and = Elementwise<>{
    .name = "bitwise_and",
    .doc = "The bits set in both operands; of booleans their conjunction.",
    .symbol = "&",
    .types = kBits,
    .scalar = [](S a, S b) { return a & b; },
    .samples = {{"i32[2,3], i32[2,3]", "", 0, 100}, {"i32[2,1], i32[3]", "", 0, 100}},
};

constinit const OpDef bitwise_or = Elementwise<>{
    .name = "bitwise_or",
    .doc = "The bits set in either operand; of booleans their disjunction.",
    .symbol = "|",
    .types = kBits,
    .scalar = [](S a, S b) { return a | b; },
    .samples = {{"i32[2,3], i32[2,3]", "", 0, 100}, {"i32[2,1], i32[3]", "", 0, 100}},
};

constinit const OpDef bitwise_xor = Elementwise<>{
    .name = "bitwise_xor",
    .doc = "The bits set in exactly one operand.",
    .symbol = "^",
    .types = kBits,
    .scalar = [](S a, S b) { return a ^ b; },
    .samples = {{"i32[2,3], i32[2,3]", "", 0, 100}, {"i32[2,1], i32[3]", "", 0, 100}},
};

constinit const OpDef bitwise_invert = Elementwise<>{
    .name = "bitwise_invert",
    .doc = "Every bit flipped; the negation of booleans.",
    .aliases = {"invert", "bitwise_not"},
    .symbol = "~",
    .types = kBits,
    .scalar = [](S x) { return !x; },
    .samples = {{"i32[2,3]", "", 0, 100}, {"i32[]", "", 0, 100}},
};

constinit const OpDef bitwise_left_shift = Elementwise<>{
    .name = "bitwise_left_shift",
    .doc =
        "The bits of `x1` moved up by `x2` places; zeros come in. "
        "Shifting by the width or more, or by a negative count, gives 0.",
    .aliases = {"left_shift"},
    .symbol = "<<",
    .types = integers,
    .scalar = [](S a, S b) { return a << b; },
    .samples = {{"i32[2,3], i32[2,3]", "", 0, 6}, {"i32[2,1], i32[3]", "", 0, 6}},
};

constinit const OpDef bitwise_right_shift = Elementwise<>{
    .name = "bitwise_right_shift",
    .doc =
        "The bits of `x1` moved down by `x2` places; the sign comes in. "
        "Shifting by the width or more, or by a negative count, gives 0, or -1 for negative `x1`.",
    .aliases = {"right_shift"},
    .symbol = ">>",
    .types = integers,
    .scalar = [](S a, S b) { return a >> b; },
    .samples = {{"i32[2,3], i32[2,3]", "", 0, 6}, {"i32[2,1], i32[3]", "", 0, 6}},
};

}  // namespace tn::ops
