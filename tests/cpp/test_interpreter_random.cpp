// Random kernels: the interpreter agrees with the definition, whatever the orientation, the number
// of threads and the CPU level.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "interpreter_reference.h"
#include "loop/builder.h"
#include "loop/interpreter.h"
#include "runtime/threads.h"

using namespace tn;
using namespace tn::loop;

namespace {

using Bytes = std::vector<std::byte>;

class RandomKernel {
 public:
  explicit RandomKernel(uint32_t seed) : random_(seed), b_("random") {}

  int pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  Kernel make() {
    static constexpr int64_t kExtents[] = {1, 2, 3, 5, 8, 13, 70};
    int pars = pick(4), inners = pick(3);
    AxisKind inner = inners == 1 && pick(2) ? AxisKind::scan : AxisKind::red;
    if (inner == AxisKind::scan) inners = 1;
    for (int k = 0; k < pars; ++k) b_.add_axis(kExtents[pick(k == 0 ? 7 : 5)]);
    for (int k = 0; k < inners; ++k) {
      int64_t extent = pick(8) == 0 && pars < 2 ? 1500 + pick(600) : kExtents[pick(7)];
      inner_ |= AxisSet{1} << b_.add_axis(extent, inner);
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
  S any() { return pool_[static_cast<size_t>(pick(static_cast<int>(pool_.size())))]; }
  S any(DType type) { return b_.cast(any(), type); }

  /// Strides of a dense layout of some of the axes in some order, some of them backwards.
  PolyId dense(AxisSet axes, int64_t& size) {
    std::vector<int> order;
    for (int k = 0; k < static_cast<int>(b_.kernel().axes.size()); ++k)
      if (axes >> k & 1) order.push_back(k);
    if (pick(2)) std::shuffle(order.begin(), order.end(), random_);
    PolyTable& t = b_.polys();
    PolyId index = t.constant(0);
    size = 1;
    for (size_t i = order.size(); i-- > 0;) {
      int64_t extent = b_.kernel().axes[static_cast<size_t>(order[i])].extent.value();
      PolyId at = b_.axis(order[i]);
      if (pick(5) == 0) at = t.sub(t.constant(extent - 1), at);
      index = t.add(index, t.scale(at, size));
      size *= extent;
    }
    return index;
  }

  S load() {
    static constexpr DType kTypes[] = {DType::f32, DType::f32, DType::f64, DType::i32,
                                       DType::i64, DType::u8,  DType::b1};
    DType type = kTypes[pick(7)];
    AxisSet axes = pick(3) ? ~AxisSet{0} : static_cast<AxisSet>(random_());
    int64_t size = 0;
    PolyTable& t = b_.polys();
    PolyId index = dense(axes, size);
    MaskId mask = kNone;
    int kind = pick(8);
    if (kind == 0) {  // padding: part of the index is outside
      int64_t shift = pick(5) - 2;
      PolyId moved = t.add_constant(index, shift);
      PolyId conditions[] = {moved, t.sub(t.constant(size - 1), moved)};
      mask = b_.mask(conditions);
      index = moved;
    } else if (kind == 1) {
      index = t.mod(t.scale(index, 3), t.constant(size));
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
    int64_t size = 0;
    PolyId index = dense(axes, size);
    int buffer = b_.add_buffer(format("y{}", b_.kernel().buffers.size()), value.type(), size, true);
    Combine combine = value.type() != DType::b1 && pick(4) == 0 ? Combine::add : Combine::set;
    b_.store(buffer, index, value, kNone, combine);
  }
  AxisSet value_axes(S s) { return b_.value(s).axes; }

  std::mt19937 random_;
  Builder b_;
  AxisSet inner_ = 0;
  bool direction_ = false;
  std::vector<S> pool_;
};

void fill_random(Bytes& bytes, DType type, std::mt19937& random) {
  size_t n = bytes.size() / static_cast<size_t>(size_of(type));
  for (size_t i = 0; i < n; ++i) {
    double x = static_cast<double>(random() % 20000) / 1000 - 10;
    if (random() % 50 == 0) x = NAN;
    void* at = bytes.data() + i * static_cast<size_t>(size_of(type));
    if (type == DType::f32) *static_cast<float*>(at) = static_cast<float>(x);
    if (type == DType::f64) *static_cast<double*>(at) = x;
    if (type == DType::i32) *static_cast<int32_t*>(at) = static_cast<int32_t>(random());
    if (type == DType::i64) *static_cast<int64_t*>(at) = static_cast<int32_t>(random());
    if (type == DType::u8) *static_cast<uint8_t*>(at) = static_cast<uint8_t>(random());
    if (type == DType::b1) *static_cast<uint8_t*>(at) = random() % 2;
  }
}

/// The first element that differs, or -1. Any NaN is like another: which payload stays is open.
int64_t difference(const Bytes& a, const Bytes& b, DType type) {
  size_t size = static_cast<size_t>(size_of(type));
  for (size_t i = 0; i + size <= a.size(); i += size) {
    if (std::memcmp(&a[i], &b[i], size) == 0) continue;
    auto nan = [&](const Bytes& x) {
      if (type == DType::f32) return std::isnan(*reinterpret_cast<const float*>(&x[i]));
      if (type == DType::f64) return std::isnan(*reinterpret_cast<const double*>(&x[i]));
      return false;
    };
    if (!nan(a) || !nan(b)) return static_cast<int64_t>(i / size);
  }
  return -1;
}

struct Buffers {
  std::vector<Bytes> data;
  std::vector<void*> pointers;
  Buffers(const Kernel& kernel, uint32_t seed) {
    std::mt19937 random(seed);
    for (const BufferParam& b : kernel.buffers) {
      data.emplace_back(static_cast<size_t>(b.size.value() * size_of(b.type)));
      fill_random(data.back(), b.type, random);
    }
    for (Bytes& bytes : data) pointers.push_back(bytes.data());
  }
};

void check_equal(const Kernel& kernel, const Buffers& a, const Buffers& b) {
  for (size_t i = 0; i < kernel.buffers.size(); ++i)
    CHECK(difference(a.data[i], b.data[i], kernel.buffers[i].type) == -1);
}

}  // namespace

TEST_CASE("random kernels give what the definition says") {
  int runs = 400;
  if (const char* wanted = std::getenv("TENON_TEST_RUNS")) runs = std::atoi(wanted);
  int threads = num_threads();
  for (int seed = 0; seed < runs; ++seed) {
    Kernel kernel = RandomKernel(static_cast<uint32_t>(seed)).make();
    CAPTURE(seed);
    CAPTURE(to_text(kernel));
    CHECK(to_text(parse_kernel(to_text(kernel))) == to_text(kernel));
    uint32_t data = static_cast<uint32_t>(seed) + 77;
    Buffers expected(kernel, data);
    run_reference(kernel, expected.pointers.data());
    for (int level = 0; level <= static_cast<int>(best_cpu_level()); ++level)
      for (Orientation orientation :
           {Orientation::by_strides, Orientation::rows, Orientation::columns}) {
        PrepareOptions options{.level = static_cast<CpuLevel>(level), .orientation = orientation};
        auto program = prepare(kernel, {}, options);
        CAPTURE(level);
        CAPTURE(static_cast<int>(orientation));
        CAPTURE(to_text(*program));
        set_num_threads(1 + (seed + level) % 4);
        Buffers actual(kernel, data);
        run(*program, actual.pointers.data());
        check_equal(kernel, expected, actual);
      }
    Buffers whole(kernel, data);
    run(*prepare(kernel, {}, {.whole_values = true}), whole.pointers.data());
    check_equal(kernel, expected, whole);
  }
  set_num_threads(threads);
}

TEST_CASE("the bits of long reductions depend on the extent alone") {
  int threads = num_threads();
  for (int64_t extent : {63, 64, 65, 1000, 1024, 1025, 16384, 16385, 70000, 1200001})
    for (int64_t points : {1, 3}) {
      std::vector<float> x(static_cast<size_t>(points * extent)), expected, actual;
      std::mt19937 random(static_cast<uint32_t>(extent));
      for (float& v : x) v = static_cast<float>(random() % 1000000) * 1e-5f - 3;
      std::vector<float> turned(x.size());
      for (int64_t p = 0; p < points; ++p)
        for (int64_t r = 0; r < extent; ++r)
          turned[static_cast<size_t>(r * points + p)] = x[static_cast<size_t>(p * extent + r)];
      for (bool transposed : {false, true})
        for (Orientation orientation : {Orientation::rows, Orientation::columns})
          for (int count : {1, 2, 4})
            for (int level = 0; level <= static_cast<int>(best_cpu_level()); ++level) {
              Builder b("sum");
              int p = b.add_axis(points), r = b.add_axis(extent, AxisKind::red);
              int in = b.add_buffer("x", DType::f32, points * extent);
              int out = b.add_buffer("y", DType::f32, 3 * points, true);
              PolyTable& t = b.polys();
              PolyId index = transposed ? t.add(t.scale(b.axis(r), points), b.axis(p))
                                        : t.add(t.scale(b.axis(p), extent), b.axis(r));
              S v = b.load(in, index);
              S sum = b.reduce(Monoid::add, v, 2);
              S spread = b.reduce(Monoid::add, (v - sum) * (v - sum), 2);
              b.store(out, b.axis(p), sum);
              b.store(out, t.add_constant(b.axis(p), points), spread);
              S where = b.reduce(Monoid::argmax, v, 2);
              b.store(out, t.add_constant(b.axis(p), 2 * points), sc::cast(where, DType::f32));
              auto program =
                  prepare(b.finish(), {},
                          {.level = static_cast<CpuLevel>(level), .orientation = orientation});
              set_num_threads(count);
              actual.assign(static_cast<size_t>(3 * points), 0);
              void* buffers[] = {transposed ? turned.data() : x.data(), actual.data()};
              run(*program, buffers);
              if (expected.empty()) expected = actual;
              CAPTURE(extent);
              CHECK(std::memcmp(expected.data(), actual.data(), actual.size() * 4) == 0);
            }
    }
  set_num_threads(threads);
}

TEST_CASE("columns read in place reduce as rows do") {
  for (int64_t points : {300, 1500})
    for (int64_t extent : {1, 2, 5, 16, 63, 64, 65, 200})
      for (int64_t apart : {1, 2}) {  // neighbouring columns, or every second
        std::vector<float> expected;
        std::vector<float> x(static_cast<size_t>(points * extent * apart));
        std::mt19937 random(static_cast<uint32_t>(extent));
        for (float& v : x) v = static_cast<float>(random() % 100000) * 1e-3f - 30;
        for (Orientation orientation : {Orientation::rows, Orientation::columns}) {
          Builder b("columns");
          int p = b.add_axis(points), r = b.add_axis(extent, AxisKind::red);
          int in = b.add_buffer("x", DType::f32, points * extent * apart);
          int out = b.add_buffer("y", DType::f32, 3 * points, true);
          PolyTable& t = b.polys();
          PolyId index = t.add(t.scale(b.axis(r), points * apart), t.scale(b.axis(p), apart));
          S v = b.load(in, index);
          S where = b.reduce(Monoid::argmin, v, 2);
          b.store(out, b.axis(p), b.reduce(Monoid::add, v, 2));
          b.store(out, t.add_constant(b.axis(p), points), b.reduce(Monoid::max, v, 2) * 2.0);
          b.store(out, t.add_constant(b.axis(p), 2 * points), sc::cast(where, DType::f32));
          std::vector<float> actual(static_cast<size_t>(3 * points));
          void* buffers[] = {x.data(), actual.data()};
          run(*prepare(b.finish(), {}, {.orientation = orientation}), buffers);
          if (expected.empty()) expected = actual;
          CAPTURE(extent);
          CHECK(std::memcmp(expected.data(), actual.data(), actual.size() * 4) == 0);
        }
      }
}
