// The interpreter of LoopIR: one kernel that runs any program of bytecode.h, with the bits
// of compiled code. interpreter/bytecode_program.cpp makes programs.
#include "backend/cuda/prebuilt/gpu_code.h"
#include "backend/cuda/prebuilt/bytecode.h"
#include "backend/cuda/prebuilt/bytecode_registers.h"
#include "base/half.h"
#include "loop/interpreter_scalar.h"
#include "loop/math.h"

namespace scalar = tn::TN_LEVEL;
namespace math = tn::TN_LEVEL::math;

struct InterpreterParams {
  uint64 words[kWords];
};

/// The remainder of the truncating division of finite numbers, exactly: bit by bit of the quotient.
template <class T, class U, int kMantissa>
TN_INLINE T float_remainder(T x, T y) {
  constexpr U kOne = 1, kSign = kOne << (8 * sizeof(T) - 1);
  constexpr U kTop = ((kOne << (8 * sizeof(T) - 1 - kMantissa)) - 1) << kMantissa;
  U bits = __builtin_bit_cast(U, x), sign = bits & kSign;
  U a = bits & ~kSign, b = __builtin_bit_cast(U, y) & ~kSign;
  if (a >= kTop || b > kTop || b == 0) return (x * y) / (x * y);
  if (a < b) return x;
  auto exponent = [](U n) { return n >> kMantissa ? static_cast<int>(n >> kMantissa) : 1; };
  auto mantissa = [](U n) {
    return n >> kMantissa ? (n & ((kOne << kMantissa) - 1)) | kOne << kMantissa : n;
  };
  int from = exponent(a), to = exponent(b);
  U rest = mantissa(a), divisor = mantissa(b);
  for (; divisor < kOne << kMantissa; --to) divisor <<= 1;  // a subnormal one
  for (; rest < kOne << kMantissa; --from) rest <<= 1;
  for (int k = from; k > to; --k) {
    rest = rest >= divisor ? rest - divisor : rest;
    rest <<= 1;
  }
  rest = rest >= divisor ? rest - divisor : rest;
  for (; rest && rest < kOne << kMantissa && to > 1; --to) rest <<= 1;
  if (to < 1) rest >>= 1 - to;  // exactly: both operands are multiples of the smallest number
  U made = rest < kOne << kMantissa ? rest : (rest - (kOne << kMantissa)) | U(to) << kMantissa;
  return __builtin_bit_cast(T, static_cast<U>(made | sign));
}

TN_INLINE uint32 wrapped(uint32 x, uint8 type) {
  switch (static_cast<Small>(type)) {
    case Small::i8:
      return static_cast<uint32>(static_cast<int>(x << 24) >> 24);
    case Small::u8:
      return x & 0xff;
    case Small::i16:
      return static_cast<uint32>(static_cast<int>(x << 16) >> 16);
    default:
      return x & 0xffff;
  }
}
TN_INLINE int clamped(int x, uint8 type) {
  bool wide = type >= static_cast<uint8>(Small::i16), has_sign = !(type & 1);
  int range = wide ? 1 << 16 : 1 << 8, low = has_sign ? -range / 2 : 0;
  int high = low + range - 1;
  return x < low ? low : x > high ? high : x;
}
TN_INLINE float widened(uint32 x, uint8 type) {
  switch (static_cast<Narrow>(type)) {
    case Narrow::f16:
      return tn::float16_to_float(static_cast<uint16_t>(x));
    case Narrow::bf16:
      return tn::bfloat16_to_float(static_cast<uint16_t>(x));
    case Narrow::f8e4m3:
      return tn::float8_e4m3fn_to_float(static_cast<uint8_t>(x));
    default:
      return tn::float8_e5m2_to_float(static_cast<uint8_t>(x));
  }
}
TN_INLINE uint32 narrowed(float x, uint8 type) {
  switch (static_cast<Narrow>(type)) {
    case Narrow::f16:
      return tn::float_to_float16(x);
    case Narrow::bf16:
      return tn::float_to_bfloat16(x);
    case Narrow::f8e4m3:
      return tn::float_to_float8_e4m3fn(x);
    default:
      return tn::float_to_float8_e5m2(x);
  }
}

/// Where a thread is in the kernel.
struct Position {
  uint32 points, extent;
  uint32 group, lane;  // threads of a row, and which of them this is
  uint64 first;        // the first point of the thread
  uint32 round = 0;    // the first element of this round
  uint32 element() const { return round + lane * kElements; }
  bool is_inside(int e, Where where) const {
    if (where == Where::point) return first + static_cast<uint64>(e) < points;
    if (first >= points) return false;
    return where == Where::row ? lane == 0 && e == 0 : element() + static_cast<uint32>(e) < extent;
  }
};

TN_INLINE Four<uint32> points_of(const Position& at) {
  Four<uint32> out;
  TN_UNROLL for (int e = 0; e < 4; ++e) {
    uint64 point = at.first + (at.group ? 0u : static_cast<uint32>(e));
    out.x[e] = point < at.points ? static_cast<uint32>(point) : at.points - 1;
  }
  return out;
}
TN_INLINE Four<uint32> elements_of(const Position& at) {
  Four<uint32> out;
  TN_UNROLL for (int e = 0; e < 4; ++e) {
    uint32 element = at.element() + static_cast<uint32>(e);
    out.x[e] = element < at.extent ? element : at.extent - 1;
  }
  return out;
}

/// Whether four elements lie side by side where one access takes them.
template <class M>
TN_INLINE bool are_adjacent(const Four<uint32>& index, uint64 base) {
  bool adjacent =
      index.x[1] == index.x[0] + 1 && index.x[2] == index.x[0] + 2 && index.x[3] == index.x[0] + 3;
  constexpr uint64 kBytes = 4 * sizeof(M) < 16 ? 4 * sizeof(M) : 16;
  return adjacent && (base + index.x[0] * sizeof(M)) % kBytes == 0;
}

/// Four elements by one access, or two of 64 bits.
template <class M, class T>
TN_INLINE void load_adjacent(const TN_GLOBAL M* from, Four<T>& out) {
  if constexpr (sizeof(M) == 8) {
    Words2 low = *(const TN_GLOBAL Words2*)from, high = *(const TN_GLOBAL Words2*)(from + 2);
    out = {{low[0], low[1], high[0], high[1]}};
  } else {
    typedef M Side __attribute__((vector_size(4 * sizeof(M))));
    Side side = *(const TN_GLOBAL Side*)from;
    TN_UNROLL for (int e = 0; e < 4; ++e) out.x[e] = static_cast<T>(side[e]);
  }
}
template <class M, class T>
TN_INLINE void store_adjacent(TN_GLOBAL M* to, const Four<T>& value) {
  if constexpr (sizeof(M) == 8) {
    *(TN_GLOBAL Words2*)to = Words2{value.x[0], value.x[1]};
    *(TN_GLOBAL Words2*)(to + 2) = Words2{value.x[2], value.x[3]};
  } else {
    typedef M Side __attribute__((vector_size(4 * sizeof(M))));
    Side side = {};
    TN_UNROLL for (int e = 0; e < 4; ++e) side[e] = static_cast<M>(value.x[e]);
    *(TN_GLOBAL Side*)to = side;
  }
}

/// `M` in memory, `T` in registers.
template <class M, class T>
TN_INLINE void load(const Registers& r, const Instruction& i, uint64 base) {
  Four<uint32> index = get<uint32>(r, i.a);
  Four<uint32> mask = {{1, 1, 1, 1}};
  if (i.c != kNoMask) mask = get<uint32>(r, i.c);
  Four<T> out = {};
  auto from = (const TN_GLOBAL M*)base;
  bool all = mask.x[0] && mask.x[1] && mask.x[2] && mask.x[3];
  if (all && are_adjacent<M>(index, base)) {
    load_adjacent(from + index.x[0], out);
  } else {
    TN_UNROLL for (int e = 0; e < 4; ++e) if (mask.x[e]) out.x[e] =
        static_cast<T>(from[static_cast<int>(index.x[e])]);
  }
  put(r, i.dst, out);
}

template <class M, class T>
TN_INLINE void store(const Registers& r, const Instruction& i, uint64 base, const Position& at) {
  Four<uint32> index = get<uint32>(r, i.dst);
  Four<T> value = get<T>(r, i.a);
  Four<uint32> mask = {{1, 1, 1, 1}};
  if (i.c != kNoMask) mask = get<uint32>(r, i.c);
  TN_UNROLL for (int e = 0; e < 4; ++e) mask.x[e] =
      mask.x[e] && at.is_inside(e, static_cast<Where>(i.immediate));
  auto to = (TN_GLOBAL M*)base;
  bool all = mask.x[0] && mask.x[1] && mask.x[2] && mask.x[3];
  if (all && are_adjacent<M>(index, base)) {
    store_adjacent(to + index.x[0], value);
  } else {
    TN_UNROLL for (int e = 0; e < 4; ++e) if (mask.x[e]) to[static_cast<int>(index.x[e])] =
        static_cast<M>(value.x[e]);
  }
}

template <class T>
TN_INLINE void keep(const Registers& r, const Instruction& i, const Position& at) {
  Four<T> out = get<T>(r, i.dst), a = get<T>(r, i.a);
  TN_UNROLL for (int e = 0; e < 4; ++e) if (at.element() + static_cast<uint32>(e) < at.extent)
      out.x[e] = a.x[e];
  put(r, i.dst, out);
}

template <class T>
TN_INLINE void turn_down(const Registers& r, const Instruction& i) {
  Four<T> a = get<T>(r, i.a);
  Four<T> out = {};
  Four<T> far = {{a.x[2], a.x[3], a.x[0], a.x[1]}}, near = {{a.x[1], a.x[2], a.x[3], a.x[0]}};
  TN_UNROLL for (int e = 0; e < 4; ++e) out.x[e] = i.immediate == 2 ? far.x[e] : near.x[e];
  put(r, i.dst, out);
}

template <class T>
TN_INLINE void broadcast(const Registers& r, const Instruction& i, const Position& at) {
  meet();
  const char* first = r.at(i.a) - at.lane * kRegisterBytes;
  T x = *(const T*)first;
  meet();
  splat(r, i.dst, x);
}

TN_INLINE void from_thread(const Registers& r, const Instruction& i, const Position& at) {
  uint32 further = at.lane + i.immediate < at.group ? i.immediate : 0u;
  meet();
  Words4 low = *(const Words4*)(r.at(i.a) + further * kRegisterBytes), high = low;
  if (i.b) high = *(const Words4*)(r.at(i.a + 1u) + further * kRegisterBytes);
  meet();
  *(Words4*)r.at(i.dst) = low;
  if (i.b) *(Words4*)r.at(i.dst + 1u) = high;
}

TN_INLINE uint32 quotient(uint32 n, const Divisor& d, uint8 shift) {
  return static_cast<uint32>(static_cast<uint64>(n) * d.factor >> (31 + shift));
}

#define ONE(code, T, R, result)                   \
  case Code::code:                                \
    one<R, T>(r, i, [&](T x) { return result; }); \
    break;
#define TWO(code, T, R, result)                        \
  case Code::code:                                     \
    two<R, T>(r, i, [&](T x, T y) { return result; }); \
    break;
#define LONG_ONE(code, T, R, result)                   \
  case Code::code:                                     \
    long_one<R, T>(r, i, [&](T x) { return result; }); \
    break;
#define LONG_TWO(code, T, R, result)                        \
  case Code::code:                                          \
    long_two<R, T>(r, i, [&](T x, T y) { return result; }); \
    break;

#define WHOLE(bits, U, I)                                        \
  ONE(neg_##bits, U, U, U{0} - x)                                \
  ONE(abs_##bits, I, I, x < 0 ? scalar::Sub::apply(I{0}, x) : x) \
  ONE(not_##bits, U, U, ~x)                                      \
  TWO(add_##bits, U, U, x + y)                                   \
  TWO(sub_##bits, U, U, x - y)                                   \
  TWO(mul_##bits, U, U, x* y)                                    \
  TWO(and_##bits, U, U, x& y)                                    \
  TWO(or_##bits, U, U, x | y)                                    \
  TWO(xor_##bits, U, U, x ^ y)                                   \
  TWO(shl_##bits, U, U, scalar::Shl::apply(x, y))                \
  TWO(eq_##bits, U, uint32, x == y)                              \
  TWO(ne_##bits, U, uint32, x != y)
#define ORDERED(type, T)                               \
  LONG_TWO(div_##type, T, T, scalar::Div::apply(x, y)) \
  LONG_TWO(rem_##type, T, T, scalar::Rem::apply(x, y)) \
  TWO(max_##type, T, T, scalar::Max::apply(x, y))      \
  TWO(min_##type, T, T, scalar::Min::apply(x, y))      \
  TWO(lt_##type, T, uint32, x < y)                     \
  TWO(le_##type, T, uint32, x <= y)                    \
  TWO(shr_##type, T, T, scalar::Shr::apply(x, y))
#define FLOATS(type, T, U, mantissa, suffix)                          \
  ONE(neg_##type, T, T, -x)                                           \
  ONE(abs_##type, T, T, math::abs(x))                                 \
  ONE(floor_##type, T, T, math::floor(x))                             \
  ONE(ceil_##type, T, T, __builtin_ceil##suffix(x))                   \
  ONE(round_##type, T, T, math::round_even(x))                        \
  ONE(trunc_##type, T, T, math::trunc(x))                             \
  LONG_ONE(sqrt_##type, T, T, math::sqrt(x))                          \
  ONE(is_nan_##type, T, uint32, x != x)                               \
  TWO(add_##type, T, T, x + y)                                        \
  TWO(sub_##type, T, T, x - y)                                        \
  TWO(mul_##type, T, T, x* y)                                         \
  LONG_TWO(div_##type, T, T, x / y)                                   \
  LONG_TWO(rem_##type, T, T, (float_remainder<T, U, mantissa>(x, y))) \
  TWO(max_##type, T, T, scalar::Max::apply(x, y))                     \
  TWO(min_##type, T, T, scalar::Min::apply(x, y))                     \
  TWO(eq_##type, T, uint32, x == y)                                   \
  TWO(ne_##type, T, uint32, x != y)                                   \
  TWO(lt_##type, T, uint32, x < y)                                    \
  TWO(le_##type, T, uint32, x <= y)                                   \
  TWO(copysign_##type, T, T, __builtin_copysign##suffix(x, y))        \
  case Code::fma_##type:                                              \
    three<T>(r, i, [](T x, T y, T z) { return math::fma(x, y, z); }); \
    break;

TN_INLINE void compute(const Registers& r, const Instruction& i) {
  switch (i.code) {
    WHOLE(32, uint32, int)
    WHOLE(64, uint64, int64)
    ORDERED(i32, int)
    ORDERED(u32, uint32)
    ORDERED(i64, int64)
    ORDERED(u64, uint64)
    ONE(wrap, uint32, uint32, wrapped(x, i.immediate))
    ONE(clamp, int, int, clamped(x, i.immediate))
    FLOATS(f32, float, uint32, 23, f)
    FLOATS(f64, double, uint64, 52, )
    case Code::select32:
      choose<uint32>(r, i);
      break;
    case Code::select64:
      choose<uint64>(r, i);
      break;
      ONE(i32_to_64, int, int64, x)
      ONE(u32_to_64, uint32, uint64, x)
      ONE(i64_to_32, uint64, uint32, x)
      ONE(i32_to_f32, int, float, x)
      ONE(u32_to_f32, uint32, float, x)
      ONE(i64_to_f32, int64, float, x)
      ONE(u64_to_f32, uint64, float, x)
      ONE(i32_to_f64, int, double, x)
      ONE(u32_to_f64, uint32, double, x)
      ONE(i64_to_f64, int64, double, x)
      ONE(u64_to_f64, uint64, double, x)
      ONE(f32_to_i32, float, int, scalar::saturate<int>(x))
      LONG_ONE(f32_to_u32, float, uint32, scalar::saturate<uint32>(x))
      LONG_ONE(f32_to_i64, float, int64, scalar::saturate<int64>(x))
      LONG_ONE(f32_to_u64, float, uint64, scalar::saturate<uint64>(x))
      LONG_ONE(f64_to_i32, double, int, scalar::saturate<int>(x))
      LONG_ONE(f64_to_u32, double, uint32, scalar::saturate<uint32>(x))
      LONG_ONE(f64_to_i64, double, int64, scalar::saturate<int64>(x))
      LONG_ONE(f64_to_u64, double, uint64, scalar::saturate<uint64>(x))
      ONE(f32_to_f64, float, double, x)
      ONE(f64_to_f32, double, float, x)
      ONE(f64_to_f32_odd, double, float, tn::double_to_float_odd(x))
      ONE(i64_to_f64_odd, int64, double, scalar::to_double_odd(x))
      ONE(u64_to_f64_odd, uint64, double, scalar::to_double_odd(x))
      ONE(truth_32, uint32, uint32, x != 0)
      ONE(truth_64, uint64, uint32, x != 0)
      ONE(truth_f32, float, uint32, x != 0)
      ONE(truth_f64, double, uint32, x != 0)
      LONG_ONE(widen, uint32, float, widened(x, i.immediate))
      LONG_ONE(narrow, float, uint32, narrowed(x, i.immediate))
      LONG_ONE(exp, float, float, math::exp(x))
      LONG_ONE(expm1, float, float, math::expm1(x))
      LONG_ONE(log, float, float, math::log(x))
      LONG_ONE(log1p, float, float, math::log1p(x))
      LONG_ONE(sin, float, float, math::Sin{}(x))
      LONG_ONE(cos, float, float, math::Cos{}(x))
      LONG_ONE(tanh, float, float, math::tanh(x))
      LONG_ONE(erf, float, float, math::erf(x))
      LONG_ONE(sigmoid, float, float, math::sigmoid(x))
    default:
      break;
  }
}

#define MEMORY(code, ...) \
  case Code::code:        \
    __VA_ARGS__;          \
    break;

TN_KERNEL(interpret, InterpreterParams) {
  Header header = __builtin_bit_cast(Header, p.words[0]);
  Layout layout = __builtin_bit_cast(Layout, p.words[1]);
  Registers r{&shared<char>() + thread() * kRegisterBytes, uint32(layout.threads) * kRegisterBytes};
  uint32 own = static_cast<uint32>(thread());
  Position at{header.points, header.extent, layout.group, 0, 0};
  uint64 threads = static_cast<uint64>(block()) * layout.threads + own;
  at.first = threads * kElements;
  if (at.group) at.lane = own % at.group, at.first = threads / at.group;
  uint32 loop = 0;
  for (uint32 pc = layout.begin;;) {
    Instruction i = __builtin_bit_cast(Instruction, p.words[pc]);
    uint32 behind = pc + 1;
    pc = behind + i.words;
    switch (i.code) {
      MEMORY(end, return)
      MEMORY(points, put(r, i.dst, points_of(at)))
      MEMORY(sweep, at.round = 0, loop = pc)
      MEMORY(elements, put(r, i.dst, elements_of(at)))
      MEMORY(again, at.round += at.group * kElements, pc = at.round < at.extent ? loop : pc)
      MEMORY(meet, meet())
      MEMORY(constant32, splat(r, i.dst, static_cast<uint32>(p.words[behind])))
      MEMORY(constant64, splat(r, i.dst, p.words[behind]))
      MEMORY(argument32, splat(r, i.dst, static_cast<uint32>(p.words[kHeader + i.a])))
      MEMORY(argument64, splat(r, i.dst, p.words[kHeader + i.a]))
      case Code::affine: {
        uint32 c0 = static_cast<uint32>(p.words[behind]);
        Four<uint32> sum = {{c0, c0, c0, c0}};
        TN_ROLLED for (uint32 k = 1; k < i.words; ++k) {
          Factor factor = __builtin_bit_cast(Factor, p.words[behind + k]);
          Four<uint32> x = get<uint32>(r, factor.register_number);
          TN_UNROLL for (int e = 0; e < 4; ++e) sum.x[e] +=
              static_cast<uint32>(factor.coefficient) * x.x[e];
        }
        put(r, i.dst, sum);
        break;
      }
      case Code::divide:
      case Code::modulo: {
        Divisor d = __builtin_bit_cast(Divisor, p.words[behind]);
        bool rest = i.code == Code::modulo;
        one<uint32, uint32>(r, i, [&](uint32 n) {
          uint32 q = quotient(n, d, i.immediate);
          return rest ? n - q * d.divisor : q;
        });
        break;
      }
        MEMORY(load_u8, load<uint8, uint32>(r, i, p.words[kHeader + i.b]))
        MEMORY(load_i8, load<signed char, int>(r, i, p.words[kHeader + i.b]))
        MEMORY(load_u16, load<uint16, uint32>(r, i, p.words[kHeader + i.b]))
        MEMORY(load_i16, load<short, int>(r, i, p.words[kHeader + i.b]))
        MEMORY(load_32, load<uint32, uint32>(r, i, p.words[kHeader + i.b]))
        MEMORY(load_64, load<uint64, uint64>(r, i, p.words[kHeader + i.b]))
        MEMORY(store_8, store<uint8, uint32>(r, i, p.words[kHeader + i.b], at))
        MEMORY(store_16, store<uint16, uint32>(r, i, p.words[kHeader + i.b], at))
        MEMORY(store_32, store<uint32, uint32>(r, i, p.words[kHeader + i.b], at))
        MEMORY(store_64, store<uint64, uint64>(r, i, p.words[kHeader + i.b], at))
        MEMORY(keep32, keep<uint32>(r, i, at))
        MEMORY(keep64, keep<uint64>(r, i, at))
        MEMORY(from_thread, from_thread(r, i, at))
        MEMORY(turn32, turn_down<uint32>(r, i))
        MEMORY(turn64, turn_down<uint64>(r, i))
        MEMORY(broadcast32, broadcast<uint32>(r, i, at))
        MEMORY(broadcast64, broadcast<uint64>(r, i, at))
      default:
        compute(r, i);
    }
  }
}

#undef ONE
#undef TWO
#undef LONG_ONE
#undef LONG_TWO
#undef WHOLE
#undef ORDERED
#undef FLOATS
#undef MEMORY
