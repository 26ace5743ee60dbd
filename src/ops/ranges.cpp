// Numbers at growing distances, and the positions of elements in triangles and shapes.
#include <cmath>

#include "base/error.h"
#include "ops/families.h"
#include "ops/known_values.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct LogspaceAttrs {
  Scalar start, stop;
  Dim num = 50;
  bool endpoint = true;
  double base = 10;
  DType dtype = DType::f32;
  static constexpr void fields(auto& a, auto&& f) {
    f("start", a.start, required), f("stop", a.stop, required), f("num", a.num);
    f("endpoint", a.endpoint), f("base", a.base), f("dtype", a.dtype);
  }
};

struct GeomspaceAttrs {
  Scalar start, stop;
  Dim num = 50;
  bool endpoint = true;
  DType dtype = DType::f32;
  static constexpr void fields(auto& a, auto&& f) {
    f("start", a.start, required), f("stop", a.stop, required), f("num", a.num);
    f("endpoint", a.endpoint), f("dtype", a.dtype);
  }
};

struct TriangleAttrs {
  Dim n = 0;
  int64_t k = 0;
  Maybe<Dim> m;
  static constexpr void fields(auto& a, auto&& f) {
    f("n", a.n, required), f("k", a.k), f("m", a.m);
  }
};

struct UnravelAttrs {
  Shape shape;
  static constexpr void fields(auto& a, auto&& f) { f("shape", a.shape, required); }
};

double real_end(std::string_view op, const Scalar& end) {
  if (end.kind == Kind::complex) fail(Fault::type, "{}: the ends must be real", op);
  return end.is_symbolic() ? static_cast<double>(end.offset().value()) : end.real;
}

Tensor powers(double base, double start, double stop, Dim num, bool endpoint) {
  Tensor exponents = tn::linspace(start, stop, num, DType::f64, endpoint);
  return tn::pow(make_scalar(base, DType::f64, false), exponents);
}

Tensors logspace_body(const LogspaceAttrs& a, const Tensors&) {
  check_kind("logspace", numeric, a.dtype);
  double start = real_end("logspace", a.start), stop = real_end("logspace", a.stop);
  return {cast_to(powers(a.base, start, stop, a.num, a.endpoint), a.dtype)};
}

/// The ends are exact.
Tensors geomspace_body(const GeomspaceAttrs& a, const Tensors&) {
  check_kind("geomspace", numeric, a.dtype);
  double start = real_end("geomspace", a.start), stop = real_end("geomspace", a.stop);
  if (!(start * stop > 0))
    fail("geomspace: the ends must have one sign and not be 0: {} and {}", start, stop);
  double low = std::log10(std::abs(start)), high = std::log10(std::abs(stop));
  Tensor line = powers(10, low, high, a.num, a.endpoint) * (start < 0 ? -1.0 : 1.0);
  Tensor i = tn::iota({a.num});
  line = tn::where(i == 0, start, line);
  if (a.endpoint) line = tn::where((i + 1 == a.num) & (i != 0), stop, line);
  return {cast_to(line, a.dtype)};
}

/// How many elements of [n,m] lie on or below diagonal k.
__int128 triangle_size(int64_t n, int64_t m, int64_t k) {
  auto within = [](__int128 x, __int128 low, __int128 high) {
    return x < low ? low : x > high ? high : x;
  };
  __int128 first = within(-static_cast<__int128>(k), 0, n);  // row i has i + k + 1 elements
  __int128 full = within(static_cast<__int128>(m) - k - 1, first, n);  // m from here on
  __int128 growing = (full - first) * (first + full + 1 + 2 * static_cast<__int128>(k)) / 2;
  return growing + (n - full) * m;
}

/// Element p of a triangle is in the first row whose elements end behind p.
Tensors triangle_indices(std::string_view op, const TriangleAttrs& a, bool upper) {
  Dim columns = a.m.value_or(a.n);
  check_sizes(op, {a.n, columns});
  int64_t n = a.n.value(), m = columns.value(), most = int64_t{1} << 40;
  if (n > most || m > most) fail("{}: too many elements: {} rows and {} columns", op, n, m);
  int64_t k = std::clamp(a.k, -most - 1, most + 1);
  __int128 count =
      upper ? static_cast<__int128>(n) * m - triangle_size(n, m, k - 1) : triangle_size(n, m, k);
  if (count > most) fail("{}: too many elements: {} rows and {} columns", op, n, m);
  Tensor first = tn::iota({n}) + (upper ? k : k + 1);
  first = tn::clip(first, 0, m);
  Tensor ends = tn::cumulative_sum(upper ? m - first : first, Axis(0));
  Tensor p = tn::iota({static_cast<int64_t>(count)});
  if (count == 0) return {p, p};
  Tensor row = tn::searchsorted(ends, p, nullptr, "right");
  Tensor column = p - tn::gather(ends, {row}, Axes(0));
  return {row,
          column + (upper ? make_scalar(m, DType::i64, false) : tn::gather(first, {row}, Axes(0)))};
}

/// From the last axis to the first.
Tensors unravel_body(const UnravelAttrs& a, const Tensors& in) {
  check_kind("unravel_index", integers, in[0].dtype());
  check_sizes("unravel_index", a.shape);
  auto ends = known_ends(in[0]);
  if (Dim count = a.shape.elements(); ends && count.is_const()) {
    int64_t outside = ends->first < 0 ? ends->first : ends->second;
    if (outside < 0 || outside >= count.raw)
      fail(Fault::index, "unravel_index: {} is out of bounds for {} elements: shape {} ({})",
           outside, count, a.shape, *type_of(in[0]));
  }
  Tensor rest = cast_to(in[0], DType::i64);
  Tensors out(static_cast<size_t>(a.shape.rank()));
  for (int k = a.shape.rank() - 1; k >= 0; --k) {
    out[static_cast<size_t>(k)] = tn::remainder(rest, a.shape[k]);
    rest = tn::floor_divide(rest, a.shape[k]);
  }
  return out;
}

}  // namespace

constexpr auto logspace_def = Composite<LogspaceAttrs>{
    .doc = "`base` to the powers `linspace(start, stop, num, endpoint=endpoint)`.",
    .args = {},
    .body = rule<logspace_body>,
    .samples = {{"", "start=0.0, stop=2.0, num=5"},
                {"", "start=1, stop=8, num=7, endpoint=false, base=2.0, dtype=f64"}},
};
TN_OP(logspace);

constexpr auto geomspace_def = Composite<GeomspaceAttrs>{
    .doc =
        "`num` numbers from `start` to `stop`, each the same multiple of the one before. `stop` is "
        "the last one if `endpoint`. The ends have one sign.",
    .args = {},
    .body = rule<geomspace_body>,
    .samples = {{"", "start=1.0, stop=1000.0, num=4"},
                {"", "start=-2, stop=-32, num=4, endpoint=false"}},
};
TN_OP(geomspace);

constexpr auto tril_indices_def = Composite<TriangleAttrs>{
    .doc =
        "The rows and columns of the elements on and below diagonal `k` of a matrix with `n` rows "
        "and `m` columns (`n` by default), as int64: `x[tril_indices(n)]` are those elements.",
    .args = {},
    .results = {"rows", "columns"},
    .body = [](const TriangleAttrs& a,
               const Tensors&) { return triangle_indices("tril_indices", a, false); },
    .samples = {{"", "n=3"}, {"", "n=4, k=-1, m=2"}, {"", "n=2, k=1, m=5"}, {"", "n=2, k=-7"}},
};
TN_OP(tril_indices);

constexpr auto triu_indices_def = Composite<TriangleAttrs>{
    .doc =
        "The rows and columns of the elements on and above diagonal `k` of a matrix with `n` rows "
        "and `m` columns (`n` by default), as int64: `x[triu_indices(n)]` are those elements.",
    .args = {},
    .results = {"rows", "columns"},
    .body = [](const TriangleAttrs& a,
               const Tensors&) { return triangle_indices("triu_indices", a, true); },
    .samples = {{"", "n=3"}, {"", "n=4, k=-1, m=2"}, {"", "n=2, k=1, m=5"}, {"", "n=2, k=7"}},
};
TN_OP(triu_indices);

constexpr auto unravel_index_def = Composite<UnravelAttrs>{
    .doc =
        "The coordinates, one tensor of int64 for each axis, of the elements of a tensor of "
        "`shape` with the row-major numbers `indices`. Numbers out of bounds are errors; in "
        "traced functions, which do not know them, they count round.",
    .args = {"indices"},
    .results = {"*"},
    .body = rule<unravel_body>,
    .samples = {{"i64[4]", "shape=[2,3]", 0, 5}, {"i32[2,3]", "shape=[2,3,4]", 0, 23}},
};
TN_OP(unravel_index);

}  // namespace tn::ops
