#include "loop/interpreter.h"

#include <cstring>

#include "base/error.h"
#include "base/half.h"
#include "loop/interpreter_lowering.h"

namespace tn::loop {

const BlockOps& block_ops(CpuLevel level) {
  auto make = [](auto... fill) {
    BlockOps ops;
    (fill(ops), ...);
    return ops;
  };
  if (level == CpuLevel::v4) {
    static const BlockOps ops =
        make(v4::fill_arithmetic, v4::fill_casts, v4::fill_math, v4::fill_runs, v4::fill_moves);
    return ops;
  }
  if (level == CpuLevel::v3) {
    static const BlockOps ops =
        make(v3::fill_arithmetic, v3::fill_casts, v3::fill_math, v3::fill_runs, v3::fill_moves);
    return ops;
  }
  static const BlockOps ops =
      make(v2::fill_arithmetic, v2::fill_casts, v2::fill_math, v2::fill_runs, v2::fill_moves);
  return ops;
}

static int64_t to_integer(const Scalar& value, DType type) {
  if (value.is_integral()) return value.integer;
  double x = value.real;
  int bits = static_cast<int>(size_of(type)) * 8;
  bool sign = kind_of(type) == Kind::integer;
  double top = __builtin_ldexp(1.0, sign ? bits - 1 : bits), low = sign ? -top : 0;
  if (x != x) return 0;
  if (x >= top) return static_cast<int64_t>(~uint64_t{0} >> (64 - (sign ? bits - 1 : bits)));
  if (x <= low) return sign ? -static_cast<int64_t>(uint64_t{1} << (bits - 2)) * 2 : 0;
  return x >= 0x1p63 ? static_cast<int64_t>(static_cast<uint64_t>(x)) : static_cast<int64_t>(x);
}

static float to_float(const Scalar& value) {
  if (!value.is_integral()) return static_cast<float>(value.real);
  if (value.kind == Kind::natural) return static_cast<float>(static_cast<uint64_t>(value.integer));
  return static_cast<float>(value.integer);
}

std::array<std::byte, 8> machine::element_bits(const Scalar& value, DType type) {
  std::array<std::byte, 8> bits{};
  auto put = [&](auto x) { std::memcpy(bits.data(), &x, sizeof x); };
  float odd = double_to_float_odd(value.real);
  switch (type) {
    case DType::b1:
      put(static_cast<uint8_t>(value.is_integral() ? value.integer != 0 : value.real != 0));
      break;
    case DType::f32:
      put(to_float(value));
      break;
    case DType::f64:
      put(value.real);
      break;
    case DType::f16:
      put(float_to_float16(odd));
      break;
    case DType::bf16:
      put(float_to_bfloat16(odd));
      break;
    case DType::f8e4m3:
      put(float_to_float8_e4m3fn(odd));
      break;
    case DType::f8e5m2:
      put(float_to_float8_e5m2(odd));
      break;
    default: {
      int64_t x = to_integer(value, type);
      std::memcpy(bits.data(), &x, static_cast<size_t>(size_of(type)));
    }
  }
  return bits;
}

std::shared_ptr<const Program> prepare(const Kernel& kernel, std::span<const Binding> symbols,
                                       const PrepareOptions& options) {
  const BlockOps& ops = block_ops(options.level);
  if (!options.whole_values) {
    machine::ProgramLowering lowering(kernel, symbols, ops, options);
    if (std::optional<Program> program = lowering.lower())
      return std::make_shared<const Program>(std::move(*program));
  }
  Program program;
  program.mode = Program::Mode::whole;
  program.whole = machine::prepare_whole(kernel, symbols, ops);
  return std::make_shared<const Program>(std::move(program));
}

static std::string_view name_of(machine::StepKind kind) {
  static constexpr std::string_view kNames[] = {"compute", "argument", "splat",  "expand",
                                                "load",    "gather",   "aim",    "store",
                                                "scatter", "iota",     "reduce", "scan"};
  return kNames[static_cast<size_t>(kind)];
}

std::string to_text(const Program& p) {
  static constexpr std::string_view kModes[] = {"flat", "rows", "columns", "whole"};
  static constexpr std::string_view kDomains[] = {"uniform", "row", "full"};
  std::string text =
      format("{} points {} extent {} tile {} step {} tasks {}{}{}\n",
             kModes[static_cast<size_t>(p.mode)], p.points, p.extent, p.tile, p.step, p.tasks,
             p.kept ? " kept" : "", p.sweep_in_parallel ? " sweeps in parallel" : "");
  for (const machine::Segment& segment : p.segments) {
    text += format("{}:\n", kDomains[static_cast<size_t>(segment.domain)]);
    for (machine::Range range : {segment.prologue, segment.body})
      for (int32_t i = range.first; i < range.last; ++i) {
        const machine::Step& step = p.steps[static_cast<size_t>(i)];
        text += format("  s{} = {} s{} s{} s{} : {}\n", step.dst, name_of(step.kind), step.a,
                       step.b, step.c, step.type);
      }
  }
  return text;
}

}  // namespace tn::loop
