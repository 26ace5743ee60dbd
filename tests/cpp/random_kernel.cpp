#include "random_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "base/half.h"
#include "loop/builder.h"

namespace tn::loop {
namespace {

using Bytes = RandomBuffers::Bytes;

class RandomKernel {
 public:
  RandomKernel(uint32_t seed, std::span<const Dim> symbols)
      : random_(seed), symbols_(symbols), b_("random") {}

  int pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  Kernel make() {
    static constexpr int64_t kExtents[] = {1, 2, 3, 5, 8, 13, 70};
    int pars = pick(4), inners = pick(3);
    AxisKind inner = inners == 1 && pick(2) ? AxisKind::scan : AxisKind::red;
    if (inner == AxisKind::scan) inners = 1;
    for (int k = 0; k < pars; ++k) b_.add_axis(extent(kExtents[pick(k == 0 ? 7 : 5)]));
    for (int k = 0; k < inners; ++k) {
      int64_t number = pick(8) == 0 && pars < 2 ? 1500 + pick(600) : kExtents[pick(7)];
      inner_ |= AxisSet{1} << b_.add_axis(extent(number), inner);
    }
    if (inners > 0 && pars > 0 && pick(3) == 0)  // reduced axes may come first
      std::swap(b_.kernel().axes.front(), b_.kernel().axes.back());
    inner_ = 0;
    for (size_t k = 0; k < b_.kernel().axes.size(); ++k)
      if (b_.kernel().axes[k].kind != AxisKind::par) inner_ |= AxisSet{1} << k;
    int loads = 1 + pick(3);
    for (int i = 0; i < loads; ++i) pool_.push_back(load());
    int count = 3 + pick(12);
    for (int i = 0; i < count; ++i) pool_.push_back(step(inner == AxisKind::scan));
    int stores = 1 + pick(2);
    for (int i = 0; i < stores; ++i) store(i == 0 ? pool_.back() : any());
    return b_.finish();
  }

 private:
  /// The number, or something made of one of the symbols.
  Dim extent(int64_t number) {
    if (symbols_.empty() || pick(4) == 0) return number;
    Dim symbol = symbols_[static_cast<size_t>(pick(static_cast<int>(symbols_.size())))];
    switch (pick(8)) {
      case 0:
        return symbol * 2;
      case 1:
        return symbol + 3;
      case 2:
        return symbol - 1;
      case 3:
        return floor_div(symbol + 1, 2);
      default:
        return symbol;
    }
  }

  S any() { return pool_[static_cast<size_t>(pick(static_cast<int>(pool_.size())))]; }
  S any(DType type) { return b_.cast(any(), type); }

  /// Strides of a dense layout of some of the axes in some order, some of them backwards.
  PolyId dense(AxisSet axes, Dim& size) {
    std::vector<int> order;
    for (int k = 0; k < static_cast<int>(b_.kernel().axes.size()); ++k)
      if (axes >> k & 1) order.push_back(k);
    if (pick(2)) std::shuffle(order.begin(), order.end(), random_);
    PolyTable& t = b_.polys();
    PolyId index = t.constant(0);
    size = 1;
    for (size_t i = order.size(); i-- > 0;) {
      Dim extent = b_.kernel().axes[static_cast<size_t>(order[i])].extent;
      PolyId at = b_.axis(order[i]);
      if (pick(5) == 0) at = t.sub(t.add_constant(t.from_dim(extent), -1), at);
      index = t.add(index, t.mul(at, t.from_dim(size)));
      size *= extent;
    }
    return index;
  }

  S load() {
    static constexpr DType kTypes[] = {DType::f32, DType::f32, DType::f64, DType::i32,
                                       DType::i64, DType::u8,  DType::b1};
    DType type = kTypes[pick(7)];
    AxisSet axes = pick(3) ? ~AxisSet{0} : static_cast<AxisSet>(random_());
    Dim size = 0;
    PolyTable& t = b_.polys();
    PolyId index = dense(axes, size);
    MaskId mask = kNone;
    int kind = pick(8);
    if (kind == 0) {  // padding: part of the index is outside
      int64_t shift = pick(5) - 2;
      PolyId moved = t.add_constant(index, shift);
      PolyId conditions[] = {moved, t.sub(t.add_constant(t.from_dim(size), -1), moved)};
      mask = b_.mask(conditions);
      index = moved;
    } else if (kind == 1) {
      index = t.mod(t.scale(index, 3), t.from_dim(max(size, 1)));
    } else if (kind == 2) {
      index = t.div(index, t.constant(2 + pick(4)));
    } else if (kind == 3 && !pool_.empty()) {  // a gather
      S raw = any(DType::i64);
      S wrapped = sc::rem(raw, b_.constant(int64_t{7}, DType::i64));
      S chosen = sc::max(wrapped, b_.constant(int64_t{0}, DType::i64));
      index = t.add(index, b_.value_index(chosen, 7));
      size += 7;
    }
    int buffer = b_.add_buffer(format("x{}", b_.kernel().buffers.size()), type, size + 8);
    return b_.load(buffer, index, mask);
  }

  S step(bool scans) {
    switch (pick(10)) {
      case 0:
        return load();
      case 1:
        return b_.constant(pick(2) ? Scalar(pick(9) - 4) : Scalar(0.75), DType::f32);
      case 2:
        if (b_.kernel().axes.empty()) return any();
        return b_.index(b_.axis(pick(static_cast<int>(b_.kernel().axes.size()))));
      case 3:
        return any(pick(2) ? DType::f32 : DType::i64);
      case 4: {
        S x = any();
        return sc::select(any(DType::b1), x, b_.cast(any(), x.type()));
      }
      case 5:
      case 6:
        if (inner_) return along(scans);
        [[fallthrough]];
      default: {
        S x = any();
        if (x.type() == DType::b1) x = b_.cast(x, DType::f32);
        static constexpr Op kOps[] = {Op::add, Op::sub, Op::mul, Op::max, Op::min, Op::lt, Op::eq};
        return b_.binary(kOps[pick(7)], x, b_.cast(any(), x.type()));
      }
    }
  }

  S along(bool scans) {
    S x = any();
    if (x.type() == DType::b1) x = b_.cast(x, DType::i32);
    static constexpr Monoid kMonoids[] = {Monoid::add, Monoid::add,    Monoid::max,
                                          Monoid::min, Monoid::argmax, Monoid::argmin};
    if (scans)
      return b_.scan(kMonoids[pick(4)], x, __builtin_ctz(inner_), direction_, pick(2) == 0);
    return b_.reduce(kMonoids[pick(6)], x, inner_);
  }

  void store(S value) {
    AxisSet axes = 0;
    for (size_t k = 0; k < b_.kernel().axes.size(); ++k)
      if (b_.kernel().axes[k].kind == AxisKind::par || value_axes(value) >> k & 1)
        axes |= AxisSet{1} << k;
    Dim size = 0;
    PolyId index = dense(axes, size);
    int buffer = b_.add_buffer(format("y{}", b_.kernel().buffers.size()), value.type(), size, true);
    Combine combine = value.type() != DType::b1 && pick(4) == 0 ? Combine::add : Combine::set;
    b_.store(buffer, index, value, kNone, combine);
  }
  AxisSet value_axes(S s) { return b_.value(s).axes; }

  std::mt19937 random_;
  std::span<const Dim> symbols_;
  Builder b_;
  AxisSet inner_ = 0;
  bool direction_ = false;
  std::vector<S> pool_;
};

void fill_random(Bytes& bytes, DType type, int64_t below, std::mt19937& random) {
  size_t size = static_cast<size_t>(size_of(type));
  for (size_t i = 0; i < bytes.size(); i += size) {
    double x = static_cast<double>(random() % 20000) / 1000 - 10;
    if (random() % 50 == 0) x = NAN;
    float f32 = static_cast<float>(x);
    int64_t whole = static_cast<int32_t>(random());
    if (below > 0) whole = (whole & INT32_MAX) % below;
    if (type == DType::b1) whole &= 1;
    const void* from = &whole;
    if (type == DType::f32) from = &f32;
    if (type == DType::f64) from = &x;
    std::memcpy(&bytes[i], from, size);
  }
}

bool is_nan(const void* at, DType type) {
  auto as = [&]<class T>(T x) {
    std::memcpy(&x, at, sizeof x);
    return x;
  };
  switch (type) {
    case DType::f8e4m3:
      return std::isnan(float8_e4m3fn_to_float(as(uint8_t{})));
    case DType::f8e5m2:
      return std::isnan(float8_e5m2_to_float(as(uint8_t{})));
    case DType::f16:
      return std::isnan(float16_to_float(as(uint16_t{})));
    case DType::bf16:
      return std::isnan(bfloat16_to_float(as(uint16_t{})));
    case DType::f32:
      return std::isnan(as(float{}));
    case DType::f64:
      return std::isnan(as(double{}));
    default:
      return false;
  }
}

}  // namespace

Kernel random_kernel(uint32_t seed, std::span<const Dim> symbols) {
  return RandomKernel(seed, symbols).make();
}

RandomBuffers::RandomBuffers(const Kernel& kernel, uint32_t seed, int64_t below,
                             std::span<const Binding> sizes) {
  std::mt19937 random(seed);
  for (const BufferParam& b : kernel.buffers) {
    data.emplace_back(static_cast<size_t>(evaluate(b.size, sizes) * size_of(b.type)));
    fill_random(data.back(), b.type, below, random);
  }
  for (Bytes& bytes : data) pointers.push_back(bytes.data());
}

int64_t first_difference(const void* a, const void* b, int64_t elements, DType type) {
  if (is_complex(type)) return first_difference(a, b, 2 * elements, real_of(type));
  int64_t size = size_of(type);
  for (int64_t i = 0; i < elements; ++i) {
    const char *x = static_cast<const char*>(a) + i * size,
               *y = static_cast<const char*>(b) + i * size;
    if (std::memcmp(x, y, static_cast<size_t>(size)) != 0 && !(is_nan(x, type) && is_nan(y, type)))
      return i;
  }
  return -1;
}

std::string first_difference(const Kernel& kernel, const RandomBuffers& a, const RandomBuffers& b) {
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const BufferParam& buffer = kernel.buffers[i];
    int64_t elements = static_cast<int64_t>(a.data[i].size()) / size_of(buffer.type);
    int64_t at = first_difference(a.pointers[i], b.pointers[i], elements, buffer.type);
    if (at >= 0) return format("{}[{}]", buffer.name, at);
  }
  return "";
}

}  // namespace tn::loop
