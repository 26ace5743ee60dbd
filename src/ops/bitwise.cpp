// Operations on the bits of integers, and on booleans as single bits.
#include "ops/families.h"
#include "ops/op_decls.h"

namespace tn::ops {

static constexpr KindSet kBits = booleans | integers;

constexpr auto bitwise_and_def = Elementwise<>{
    .doc = "The bits set in both operands; of booleans their conjunction.",
    .symbol = "&",
    .types = kBits,
    .scalar = [](S a, S b) { return a & b; },
    .samples = {{"i32[2,3], i32[2,3]", "", 0, 100}, {"i32[2,1], i32[3]", "", 0, 100}},
};
TN_OP(bitwise_and);

constexpr auto bitwise_or_def = Elementwise<>{
    .doc = "The bits set in either operand; of booleans their disjunction.",
    .symbol = "|",
    .types = kBits,
    .scalar = [](S a, S b) { return a | b; },
    .samples = {{"i32[2,3], i32[2,3]", "", 0, 100}, {"i32[2,1], i32[3]", "", 0, 100}},
};
TN_OP(bitwise_or);

constexpr auto bitwise_xor_def = Elementwise<>{
    .doc = "The bits set in exactly one operand.",
    .symbol = "^",
    .types = kBits,
    .scalar = [](S a, S b) { return a ^ b; },
    .samples = {{"i32[2,3], i32[2,3]", "", 0, 100}, {"i32[2,1], i32[3]", "", 0, 100}},
};
TN_OP(bitwise_xor);

constexpr auto bitwise_invert_def = Elementwise<>{
    .doc = "Every bit flipped; the negation of booleans.",
    .aliases = {"invert", "bitwise_not"},
    .symbol = "~",
    .types = kBits,
    .scalar = [](S x) { return !x; },
    .samples = {{"i32[2,3]", "", 0, 100}, {"i32[]", "", 0, 100}},
};
TN_OP(bitwise_invert);

constexpr auto bitwise_left_shift_def = Elementwise<>{
    .doc =
        "The bits of `x1` moved up by `x2` places; zeros come in. "
        "Shifting by the width or more, or by a negative count, gives 0.",
    .aliases = {"left_shift"},
    .symbol = "<<",
    .types = integers,
    .scalar = [](S a, S b) { return a << b; },
    .samples = {{"i32[2,3], i32[2,3]", "", 0, 6}, {"i32[2,1], i32[3]", "", 0, 6}},
};
TN_OP(bitwise_left_shift);

constexpr auto bitwise_right_shift_def = Elementwise<>{
    .doc =
        "The bits of `x1` moved down by `x2` places; the sign comes in. "
        "Shifting by the width or more, or by a negative count, gives 0, or -1 for negative `x1`.",
    .aliases = {"right_shift"},
    .symbol = ">>",
    .types = integers,
    .scalar = [](S a, S b) { return a >> b; },
    .samples = {{"i32[2,3], i32[2,3]", "", 0, 6}, {"i32[2,1], i32[3]", "", 0, 6}},
};
TN_OP(bitwise_right_shift);

}  // namespace tn::ops
