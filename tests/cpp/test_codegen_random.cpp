// Generated code against the interpreter: random kernels, every operation, every cast.
#include <cstdlib>

#include "loop/builder.h"
#include "native_kernels.h"
#include "runtime/threads.h"

using namespace tn;
using namespace tn::loop;

TEST_CASE("native: random kernels") {
  int runs = 150, native = 0, wanted_native = 0;
  if (const char* wanted = std::getenv("TENON_TEST_RUNS")) runs = std::atoi(wanted);
  int threads = num_threads();
  std::vector<cpu::Target> targets = native_targets();
  for (int seed = 0; seed < runs; ++seed) {
    CAPTURE(seed);
    Kernel kernel = random_kernel(static_cast<uint32_t>(seed) + 9000);
    set_num_threads(1 + seed % 2);
    const cpu::Target& target = targets[static_cast<size_t>(seed) % targets.size()];
    native += agrees(kernel, target, static_cast<uint32_t>(seed));
    ++wanted_native;
  }
  CHECK(native > wanted_native * 2 / 3);
  set_num_threads(threads);
}

namespace {

constexpr DType kTypes[] = {DType::b1,     DType::i8,  DType::i16,  DType::i32, DType::i64,
                            DType::u8,     DType::u16, DType::u32,  DType::u64, DType::f8e4m3,
                            DType::f8e5m2, DType::f16, DType::bf16, DType::f32, DType::f64};

/// y = op(x0, x1, x2), with operands of `type`.
Kernel kernel_of(Op op, DType type, int64_t n) {
  Builder b("op");
  int axis = b.add_axis(n);
  S x[3];
  for (int k = 0; k < 3; ++k) x[k] = b.load(b.add_buffer(format("x{}", k), type, n), b.axis(axis));
  int operands = facts(op).operands;
  S y = operands == 1 ? b.unary(op, x[0]) : operands == 2 ? b.binary(op, x[0], x[1]) : x[0];
  if (op == Op::fma) y = b.ternary(op, x[0], x[1], x[2]);
  if (op == Op::select) y = sc::select(x[0] < x[1], x[1], x[2]);
  b.store(b.add_buffer("y", y.type(), n, true), b.axis(axis), y);
  return b.finish();
}

bool is_defined(Op op, DType type) {
  bool real = type == DType::f32 || type == DType::f64, whole = is_integer(type);
  if (facts(op).math) return real;
  switch (op) {
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::trunc:
    case Op::sqrt:
    case Op::is_nan:
    case Op::copysign:
    case Op::fma:
      return real;
    case Op::rem:
    case Op::shl:
    case Op::shr:
      return whole;
    case Op::and_:
    case Op::or_:
    case Op::xor_:
    case Op::not_:
      return whole || type == DType::b1;
    case Op::max:
    case Op::min:
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::select:
      return real || whole || type == DType::b1;
    case Op::neg:
    case Op::abs:
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div:
      return real || whole;
    default:
      return false;
  }
}

}  // namespace

TEST_CASE("native: every operation of every type") {
  for (const cpu::Target& target : native_targets())
    for (int k = 0; k < kOps; ++k)
      for (DType type : kTypes) {
        Op op = static_cast<Op>(k);
        if (!is_defined(op, type) || (facts(op).math && target.vector_bits == 128)) continue;
        CAPTURE(facts(op).name);
        CAPTURE(name_of(type));
        bool native = agrees(kernel_of(op, type, 333), target, 3) &&
                      (facts(op).math || agrees(kernel_of(op, type, 333), target, 4, {}, 9));
        CHECK((native || target.level == CpuLevel::v2));
      }
}

TEST_CASE("native: every cast") {
  for (const cpu::Target& target : native_targets())
    for (DType from : kTypes)
      for (DType to : kTypes) {
        CAPTURE(name_of(from));
        CAPTURE(name_of(to));
        Builder b("cast");
        int axis = b.add_axis(700);
        S x = b.load(b.add_buffer("x", from, 700), b.axis(axis));
        b.store(b.add_buffer("y", to, 700, true), b.axis(axis), b.cast(x, to));
        Kernel kernel = b.finish();
        CHECK(agrees(kernel, target, 5, {}, from == DType::b1 ? 2 : 0));
      }
}
