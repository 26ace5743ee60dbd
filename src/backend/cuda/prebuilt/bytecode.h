#pragma once
// The instructions of the interpreter of GPUs (interpreter_kernels.cu): what programs are made of,
// on the host and on the device.
//
// A thread computes four elements at once. A register holds them: 16 bytes in shared memory, or two
// registers side by side for types of 64 bits. Integers below 32 bits are extended to 32, narrow
// floats are their bits. All threads run the same instructions, so they may meet in between.

namespace tn::cuda::bytecode {

// clang-format off
enum class Code : unsigned char {
  end,
  // Where a thread is. `points` are those of the par axes; a row of folded elements has one.
  points,       // dst: the points of the thread; those behind the last are the last
  sweep,        // a loop over the elements of the row begins
  elements,     // dst: the elements of the row in this round; those behind the last are the last
  again,        // the next round of the loop
  meet,
  // Leaves.
  constant32, constant64,  // one word follows
  argument32, argument64,  // number `a` among the words
  affine,                  // c0, then words of a factor and a register
  divide, modulo,          // of a number from 0 to 2^31 - 1, by multiplication: see Divisor
  load_u8, load_i8, load_u16, load_i16, load_32, load_64,  // dst = buffer b[a], where mask c holds
  store_8, store_16, store_32, store_64,                   // buffer b[dst] = a, where mask c holds
  // Between lanes.
  keep32, keep64,            // dst = a for elements of the row, dst for those behind it
  from_thread,               // dst = a of the thread `immediate` further; b: it has 64 bits
  turn32, turn64,            // dst = a, with elements moved down by `immediate`
  broadcast32, broadcast64,  // dst = the first element of the first thread of the row
  // Integers. Where the sign does not matter, one serves both.
  neg_32, abs_32, not_32, add_32, sub_32, mul_32, and_32, or_32, xor_32, shl_32, eq_32, ne_32,
  div_i32, rem_i32, max_i32, min_i32, lt_i32, le_i32, shr_i32,
  div_u32, rem_u32, max_u32, min_u32, lt_u32, le_u32, shr_u32,
  neg_64, abs_64, not_64, add_64, sub_64, mul_64, and_64, or_64, xor_64, shl_64, eq_64, ne_64,
  div_i64, rem_i64, max_i64, min_i64, lt_i64, le_i64, shr_i64,
  div_u64, rem_u64, max_u64, min_u64, lt_u64, le_u64, shr_u64,
  wrap, clamp,  // to the type `immediate`: 8 or 16 bits of 32
  // Floats.
  neg_f32, abs_f32, floor_f32, ceil_f32, round_f32, trunc_f32, sqrt_f32, is_nan_f32,
  add_f32, sub_f32, mul_f32, div_f32, rem_f32, max_f32, min_f32, eq_f32, ne_f32, lt_f32, le_f32,
  copysign_f32, fma_f32,
  neg_f64, abs_f64, floor_f64, ceil_f64, round_f64, trunc_f64, sqrt_f64, is_nan_f64,
  add_f64, sub_f64, mul_f64, div_f64, rem_f64, max_f64, min_f64, eq_f64, ne_f64, lt_f64, le_f64,
  copysign_f64, fma_f64,
  select32, select64,
  // Conversions. "odd": what is lost leaves an odd last bit, so that a later rounding is right.
  i32_to_64, u32_to_64, i64_to_32,
  i32_to_f32, u32_to_f32, i64_to_f32, u64_to_f32, i32_to_f64, u32_to_f64, i64_to_f64, u64_to_f64,
  f32_to_i32, f32_to_u32, f32_to_i64, f32_to_u64, f64_to_i32, f64_to_u32, f64_to_i64, f64_to_u64,
  f32_to_f64, f64_to_f32, f64_to_f32_odd, i64_to_f64_odd, u64_to_f64_odd,
  truth_32, truth_64, truth_f32, truth_f64,
  widen, narrow,  // f32 from and to the narrow float `immediate`
  exp, expm1, log, log1p, sin, cos, tanh, erf, sigmoid,  // of f32; others are spelled out
};
// clang-format on

enum class Small : unsigned char { i8, u8, i16, u16 };            // wrap, clamp
enum class Narrow : unsigned char { f16, bf16, f8e4m3, f8e5m2 };  // widen, narrow
enum class Where : unsigned char { point, element, row };         // of stores: how often

/// One instruction: a word, and `words` more.
struct Instruction {
  Code code = Code::end;
  unsigned char dst = 0, a = 0, b = 0, c = 0, words = 0, immediate = 0, unused = 0;
};
inline constexpr unsigned char kNoMask = 0xff;

/// The first word of a program.
struct Header {
  unsigned points = 0;  // of the par axes
  unsigned extent = 0;  // elements of a row; 0: there are no rows
};
/// The second: `group` threads have a row, four lanes of the reduction tree each.
struct Layout {
  unsigned short begin = 0;    // of the instructions, in words: buffers and arguments come first
  unsigned short threads = 0;  // of a block
  unsigned short group = 0;
  unsigned short unused = 0;
};
/// n / d = n * factor >> 31 + shift; behind the instruction, which has the shift.
struct Divisor {
  unsigned factor = 0, divisor = 0;
};
struct Factor {
  int coefficient = 0;
  unsigned register_number = 0;
};

inline constexpr int kWords = 500;   // of a program: kernels take 4 KiB
inline constexpr int kHeader = 2;    // words before the first buffer
inline constexpr int kElements = 4;  // of a thread
inline constexpr int kRegisterBytes = 16;

}  // namespace tn::cuda::bytecode
