// Random bits: a function of a key and of an element's position alone, so that recomputing, fusing
// or splitting the work cannot change them. A key is two words; its leading axes are a batch.
#include "base/error.h"
#include "ops/draws.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/threefry.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

using Pair = Words<S>;

Shape batch_of_key(const Type& key) {
  Shape batch = key.shape;
  batch.erase(batch.rank() - 1);
  return batch;
}

Shape joined(Shape front, const Shape& back) {
  for (Dim extent : back) front.push_back(extent);
  return front;
}

Pair load_pair(loop::Lowering& l, int operand, loop::Coords at) {
  at.push_back(l.number(0));
  S a = l.load(operand, at).re;
  at.back() = l.number(1);
  return {a, l.load(operand, at).re};
}

void store_pair(loop::Lowering& l, loop::Coords at, Pair words) {
  at.push_back(l.number(0));
  l.store(0, at, {words.a, {}});
  at.back() = l.number(1);
  l.store(0, at, {words.b, {}});
}

/// The words for position `at` of `shape`, whose axes come after those of the key's batch.
Pair words_at(loop::Lowering& l, const Shape& shape, const loop::Coords& at) {
  auto batch = static_cast<ptrdiff_t>(at.size()) - shape.rank();
  Pair key = load_pair(l, 0, {at.begin(), at.begin() + batch});
  S place = l.b.index(l.flatten(shape, {at.begin() + batch, at.end()}));
  Dim count = shape.elements();
  bool small = count.is_const() && count.value() <= INT64_C(1) << 32;
  S high = small ? loop::constant_like(key.a, 0)
                 : sc::cast(place >> loop::constant_like(place, 32), DType::u32);
  return threefry(key, {high, sc::cast(place, DType::u32)});
}

struct BitsAttrs {
  Shape shape;
  DType dtype = DType::u32;
  static constexpr void fields(auto& a, auto&& f) { f("shape", a.shape), f("dtype", a.dtype); }
};

void prepare_bits(BitsAttrs& a, Tensors& in) {
  check_key("random_bits", in[0]);
  check_sizes("random_bits", a.shape);
  if (kind_of(a.dtype) != Kind::natural)
    fail(Fault::type, "random_bits: bits are unsigned integers: {}", a.dtype);
}

void lower_bits(const BitsAttrs& a, loop::Lowering& l) {
  loop::Coords at = l.loops(l.out[0]->shape);
  Pair words = words_at(l, a.shape, at);
  S bits = words.a ^ words.b;
  if (a.dtype == DType::u64) {
    S high = sc::cast(words.a, DType::u64), low = sc::cast(words.b, DType::u64);
    bits = (high << loop::constant_like(high, 32)) | low;
  }
  l.store(0, at, {sc::cast(bits, a.dtype), {}});
}

struct SplitAttrs {
  Shape num;
  static constexpr void fields(auto& a, auto&& f) { f("num", a.num, required); }
};

}  // namespace

constexpr auto random_bits_def = Op<BitsAttrs>{
    .doc =
        "Random bits of an unsigned type from a key of two words (uint32): Threefry-2x32 of the "
        "key and of the row-major position in `shape`, the two words joined for uint64, their "
        "exclusive or for narrower types. Leading axes of `key` are kept in front.",
    .args = {"key"},
    .prepare = rule<prepare_bits>,
    .infer = [](const BitsAttrs& a, Types in) -> TypeList {
      return Type{a.dtype, joined(batch_of_key(*in[0]), a.shape)};
    },
    .lower = rule<lower_bits>,
    .gradient = Gradient::zero,
    .batch_rule = [](const BitsAttrs& a, const BatchCall& c) -> Tensors {
      return {emit(random_bits, {c.in[0]}, a)};
    },
    .samples = {{"u32[2]", "shape=[4]", 0, 100},
                {"u32[2]", "shape=[2,3], dtype=u64", 0, 100},
                {"u32[3,2]", "shape=[2], dtype=u8", 0, 100},
                {"u32[2]", "shape=[], dtype=u16", 0, 100},
                {"u32[2]", "shape=[0,2]", 0, 100}},
};
TN_OP(random_bits);

constexpr auto random_split_def = Op<SplitAttrs>{
    .doc =
        "`num` new keys (a number or a shape) from one: [num, 2]. Their numbers have nothing to do "
        "with each other or with those of `key`, which should not be used again. "
        "Leading axes of `key` are kept in front.",
    .args = {"key"},
    .prepare =
        [](SplitAttrs& a, Tensors& in) {
          check_key("random_split", in[0]);
          check_sizes("random_split", a.num);
        },
    .infer = [](const SplitAttrs& a, Types in) -> TypeList {
      return Type{DType::u32, joined(joined(batch_of_key(*in[0]), a.num), {2})};
    },
    .lower =
        [](const SplitAttrs& a, loop::Lowering& l) {
          loop::Coords at = l.loops(batch_of_key(*l.out[0]));
          store_pair(l, at, words_at(l, a.num, at));
        },
    .gradient = Gradient::zero,
    .batch_rule = [](const SplitAttrs& a, const BatchCall& c) -> Tensors {
      return {emit(random_split, {c.in[0]}, a)};
    },
    .samples = {{"u32[2]", "num=[2]", 0, 100}, {"u32[3,2]", "num=[2,2]", 0, 100}},
};
TN_OP(random_split);

constexpr auto random_fold_in_def = Op<>{
    .doc =
        "A new key for each of the integers `data`, which are taken modulo 2**32: a stream of keys "
        "by number. `data` and the leading axes of `key` broadcast.",
    .args = {"key", "data"},
    .prepare =
        [](NoAttrs&, Tensors& in) {
          check_key("random_fold_in", in[0]);
          check_kind("random_fold_in", integers, in[1].dtype());
          Shape batch = broadcast(batch_of_key(*type_of(in[0])), in[1].shape(), "random_fold_in");
          in[0] = tn::broadcast_to(in[0], joined(batch, {2}));
          in[1] = tn::broadcast_to(cast_to(in[1], DType::u32), batch);
        },
    .infer = [](const NoAttrs&, Types in) -> TypeList { return Type(*in[0]); },
    .lower =
        [](const NoAttrs&, loop::Lowering& l) {
          loop::Coords at = l.loops(l.in[1]->shape);
          Pair key = load_pair(l, 0, at);
          S data = l.load(1, at).re;
          store_pair(l, at, threefry(key, {loop::constant_like(data, 0), data}));
        },
    .gradient = Gradient::zero,
    .batch = Batch::aligned,
    .samples = {{"u32[2], i32[]", "", 0, 100}, {"u32[3,2], i64[4,1]", "", 0, 100}},
};
TN_OP(random_fold_in);

constexpr auto random_key_def = Composite<>{
    .doc =
        "The key of an integer: its upper and lower 32 bits as uint32[2]. "
        "Of a tensor of integers, a tensor of keys.",
    .args = {"seed"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      check_kind("random_key", integers, in[0].dtype());
      Tensor wide = cast_to(in[0], DType::u64);
      Tensor high = size_of(in[0].dtype()) < 8 ? tn::zeros_like(wide) : wide >> 32;
      return {tn::stack({cast_to(high, DType::u32), cast_to(wide, DType::u32)}, -1)};
    },
    .samples = {{"i64[]", "", 0, 100}, {"i32[3]", "", 0, 100}},
};
TN_OP(random_key);

}  // namespace tn::ops
