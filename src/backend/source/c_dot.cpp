#include "backend/source/c_dot.h"

#include "backend/source/c_expressions.h"
#include "base/error.h"
#include "ir/view.h"
#include "runtime/gemm.h"

namespace tn::source {
namespace {

using loop::Op;

/// Axes of one operand, walked by one variable in row-major order.
class Walk {
 public:
  void add(int64_t extent, int64_t stride) {
    this->extent *= extent;
    if (extent == 1) return;
    if (!runs_.empty() && runs_.back().stride == stride * extent) {
      runs_.back().extent *= extent;
      runs_.back().stride = stride;
    } else {
      runs_.push_back({extent, stride});
    }
  }

  /// Where `at` leads to, in elements.
  std::string offset(std::string_view at) const {
    std::vector<std::string> parts;
    int64_t inner = 1;
    for (size_t i = runs_.size(); i-- > 0; inner *= runs_[i].extent) {
      std::string digit(at);
      if (inner > 1) digit = format("{} / {}", digit, inner);
      if (i > 0) digit = format("{} % {}", digit, runs_[i].extent);
      parts.push_back(format("({}) * {}", digit, runs_[i].stride));
    }
    return parts.empty() ? "0" : format("{}", join(parts, " + "));
  }

  int64_t extent = 1;

 private:
  struct Run {
    int64_t extent, stride;
  };
  std::vector<Run> runs_;
};

/// The axes of an operand in three groups.
struct Side {
  int64_t start;
  Walk batch = {}, free = {}, contracted = {};
};

Axes axes_named(const StepSource& step, std::string_view name) {
  void* data = const_cast<char*>(step.attrs->data);
  for (const Field& f : list_fields(*step.op->attrs, data).items)
    if (f.name == name) return *static_cast<const Axes*>(f.at);
  throw_internal(format("c source: {} has no attribute {}", step.op->name, name));
}

Side side_of(const StepSource& step, size_t operand, std::string_view prefix) {
  const Type& type = *step.in[operand];
  Strided at = step.at.empty() ? Strided::row_major(type.shape) : step.at[operand];
  Axes batch = axes_named(step, format("{}_batch", prefix));
  Axes contracted = axes_named(step, format("{}_contract", prefix));
  Side side{.start = at.offset};
  auto add = [&](Walk& walk, int k) { walk.add(type.shape[k].value(), at.strides[k]); };
  for (Axis a : batch) add(side.batch, a.i);
  for (Axis a : contracted) add(side.contracted, a.i);
  for (int k = 0; k < type.rank(); ++k)
    if (!batch.has(k) && !contracted.has(k)) add(side.free, k);
  return side;
}

/// sum + x * y, in the type that sums have.
std::string multiply_add(DType type, std::string_view sum, std::string_view x, std::string_view y) {
  if (is_float(type))
    return format("__builtin_fma{}({}, {}, {})", type == DType::f32 ? "f" : "", x, y, sum);
  if (type == DType::b1) return c_binary(Op::or_, type, sum, format("({} != 0 && {} != 0)", x, y));
  return c_binary(Op::add, type, sum, c_binary(Op::mul, type, x, y));
}

}  // namespace

std::string dot_c(const StepSource& step, std::string_view function) {
  DType type = step.in[0]->dtype, wide = info(type).compute;
  if (is_complex(type))
    unsupported(Hint{}, "c source: dot has no form in C for complex elements: {}", *step.in[0]);
  Side a = side_of(step, 0, "lhs"), b = side_of(step, 1, "rhs");
  int64_t k = a.contracted.extent, n = b.free.extent;
  int64_t depth = std::max<int64_t>(is_float(type) ? gemm_depth(k) : k, 1);
  std::string left = format("a[{} + {} + {} + {}]", a.start, a.batch.offset("g"),
                            a.free.offset("i"), a.contracted.offset("k"));
  std::string right = format("b[{} + {} + {} + {}]", b.start, b.batch.offset("g"),
                             b.contracted.offset("k"), b.free.offset("(j0 + j)"));
  // Each sum is a chain of fused multiply-adds along k, begun anew at every block of k.
  return format(
      R"(static void {function}(const {type} *a, const {type} *b, {type} *c) {{
  for (int64_t g = 0; g < {batch}; ++g)
    for (int64_t i = 0; i < {m}; ++i)
      for (int64_t j0 = 0; j0 < {n}; j0 += 64) {{
        const int64_t count = tn_min_i64(64, {n} - j0);
        {wide} total[64] = {{0}};
        for (int64_t k0 = 0; k0 < {k}; k0 += {depth}) {{
          {wide} sum[64] = {{0}};
          for (int64_t k = k0; k < tn_min_i64(k0 + {depth}, {k}); ++k) {{
            const {wide} x = {x};
            TN_INDEPENDENT
            for (int64_t j = 0; j < count; ++j) sum[j] = {step};
          }}
          for (int64_t j = 0; j < count; ++j) total[j] = k0 == 0 ? sum[j] : {next};
        }}
        for (int64_t j = 0; j < count; ++j) c[(g * {m} + i) * {n} + j0 + j] = {y};
      }}
}}
)",
      fmt::arg("function", function), fmt::arg("type", c_type(type)),
      fmt::arg("wide", c_type(wide)), fmt::arg("batch", a.batch.extent),
      fmt::arg("m", a.free.extent), fmt::arg("n", n), fmt::arg("k", k), fmt::arg("depth", depth),
      fmt::arg("x", c_cast(type, wide, left)),
      fmt::arg("step", multiply_add(wide, "sum[j]", "x", c_cast(type, wide, right))),
      fmt::arg("next",
               wide == DType::b1 ? "sum[j]" : c_binary(Op::add, wide, "total[j]", "sum[j]")),
      fmt::arg("y", c_cast(wide, type, "total[j]")));
}

}  // namespace tn::source
