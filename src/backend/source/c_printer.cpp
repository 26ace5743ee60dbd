// The loops of a kernel. Parallel axes are loops, in order. A value is computed in the first loop
// that binds all its axes; reductions are sweeps of their own inside it, stores come last. What
// varies over reduced axes is recomputed in every sweep that needs it.
#include "backend/source/c_printer.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "backend/source/c_expressions.h"
#include "base/error.h"
#include "loop/analysis.h"
#include "loop/builder.h"
#include "loop/macros.h"
#include "loop/reduction_tree.h"

namespace tn::source {
namespace {

using namespace loop;

constexpr int64_t kShortLine = 8;  // of points that are worth a loop of their own
bool is_arg(Monoid monoid) { return monoid >= Monoid::argmax; }
AxisSet bit(size_t axis) { return axis_bit(axis); }

class KernelPrinter {
 public:
  KernelPrinter(const Kernel& kernel, std::string_view function)
      : k_(kernel), a_(analyse(k_)), function_(function), index_(k_) {
    for (const KernelAxis& axis : k_.axes) {
      if (!axis.extent.is_const())
        fail(Hint{"bind the sizes to numbers first"}, "c source: kernel {} has the size {}",
             k_.name, axis.extent);
      extents_.push_back(axis.extent.value());
    }
    known_.resize(k_.values.size());
    used_.resize(k_.buffers.size());
    for (int64_t extent : extents_) points_ *= std::max<int64_t>(extent, 1);
  }

  std::string text() {
    bool any = true;
    for (size_t k = 0; k < extents_.size(); ++k) any &= !(a_.par & bit(k)) || extents_[k] > 0;
    std::vector<size_t> stores(k_.stores.size());
    for (size_t i = 0; i < stores.size(); ++i) stores[i] = i;
    if (any) print_stores(0, stores);
    std::string unused;
    for (size_t i = 0; i < used_.size(); ++i)
      if (!used_[i]) unused += format("  (void)b{};\n", i);
    if (k_.arguments > 0 && !reads_arguments_) unused += "  (void)arguments;\n";
    return signature() + unused + out_ + "}\n";
  }

  /// The only value that is stored, as a function of what is loaded.
  std::string scalar_text() {
    is_scalar_ = true;
    std::vector<std::string> params;
    for (const BufferParam& buffer : k_.buffers)
      if (!buffer.written)
        params.push_back(format("{} {}", c_type(buffer.type), parameter(params.size())));
    ValueId result = k_.stores[0].value;
    print_values(~AxisSet{0}, {result});
    line("return {};", name(result));
    return format("TN_MATH {} {}({}) {{\n{}}}\n", c_type(value(result).type), function_,
                  join(params, ", "), out_);
  }

 private:
  using Ids = std::vector<ValueId>;
  static char parameter(size_t buffer) { return "ab"[buffer]; }

  template <class... A>
  void line(format_string<A...> text, A&&... args) {
    out_.append(static_cast<size_t>(2 * depth_), ' ');
    out_ += format(text, std::forward<A>(args)...) + "\n";
  }
  template <class... A>
  void open(format_string<A...> text, A&&... args) {
    line("{} {{", format(text, std::forward<A>(args)...));
    ++depth_;
  }
  void close() {
    --depth_;
    line("}}");
  }

  std::string signature() const {
    std::vector<std::string> params;
    for (size_t i = 0; i < k_.buffers.size(); ++i)
      params.push_back(format("{}{} *b{}", k_.buffers[i].written ? "" : "const ",
                              c_type(k_.buffers[i].type), i));
    if (k_.arguments > 0) params.push_back("const uint64_t *arguments");
    if (params.empty()) params.push_back("void");
    return format("static void {}({}) {{\n", function_, join(params, ", "));
  }

  const Value& value(ValueId id) const { return k_.values[static_cast<size_t>(id)]; }

  bool is_empty(AxisSet axes) const {
    for (size_t k = 0; k < extents_.size(); ++k)
      if ((axes & bit(k)) && extents_[k] == 0) return true;
    return false;
  }

  Ids operands_of(const std::vector<size_t>& stores) const {
    Ids ids;
    for (size_t i : stores)
      for_each_operand(k_, k_.stores[i], [&](ValueId id) { ids.push_back(id); });
    return ids;
  }

  /// What `wanted` needs and is not computed yet.
  std::vector<bool> missing_for(const Ids& wanted) const {
    std::vector<bool> missing(k_.values.size(), false);
    auto want = [&](ValueId id) {
      missing[static_cast<size_t>(id)] = !known_[static_cast<size_t>(id)];
    };
    for (ValueId id : wanted) want(id);
    for (size_t i = missing.size(); i-- > 0;)
      if (missing[i] && !(k_.values[i].op == Op::reduce && is_empty(k_.values[i].over)))
        for_each_operand(k_, k_.values[i], want);
    return missing;
  }

  // Values.

  std::string name(ValueId id) const { return index_.value(id); }

  std::string element(int32_t buffer, PolyId index) {
    used_[static_cast<size_t>(buffer)] = true;
    if (is_scalar_) return {parameter(static_cast<size_t>(buffer))};
    return format("b{}[{}]", buffer, index_.index(index));
  }

  std::string expression(const Value& v) {
    int operands = facts(v.op).operands;
    std::string a = operands > 0 ? name(v.a) : "", b = operands > 1 ? name(v.b) : "";
    switch (v.op) {
      case Op::argument:
        reads_arguments_ = true;
        return c_bitcast(size_of(v.type) == 8 ? DType::u64 : DType::u32, v.type,
                         format("arguments[{}]", v.a));
      case Op::index:
        return index_.index(v.index);
      case Op::load: {
        std::string read = element(v.buffer, v.index), holds = index_.condition(v.mask);
        return holds.empty() ? read : format("{} ? {} : 0", holds, read);
      }
      case Op::cast:
        return c_cast(value(v.a).type, v.type, a);
      case Op::bitcast:
        return c_bitcast(value(v.a).type, v.type, a);
      case Op::select:
        return format("{} ? {} : {}", a, b, name(v.c));
      case Op::fma:
        return format("__builtin_fma{}({}, {}, {})", v.type == DType::f32 ? "f" : "", a, b,
                      name(v.c));
      default:
        if (facts(v.op).math)
          return format("{}({}{}{})", c_math_name(v.op, v.type, v.narrow), a, b.empty() ? "" : ", ",
                        b);
        return operands == 1 ? c_unary(v.op, value(v.a).type, a)
                             : c_binary(v.op, value(v.a).type, a, b);
    }
  }

  // The carry was declared before the loop that runs here.
  void print_scan(ValueId id) {
    const Value& v = value(id);
    std::string next = c_binary(c_monoid(v.monoid), v.type, format("carry{}", id), name(v.a));
    if (v.exclusive) line("const {} v{} = carry{};", c_type(v.type), id, id);
    line("carry{} = {};", id, next);
    if (!v.exclusive) line("const {} v{} = carry{};", c_type(v.type), id, id);
  }

  /// Everything that `wanted` needs and that varies over bound axes only.
  void print_values(AxisSet bound, const Ids& wanted) {
    std::vector<bool> missing = missing_for(wanted);
    for (int level = 0; level <= a_.levels; ++level) {
      std::vector<Ids> sweeps;  // reductions over the same axes share one
      for (size_t i = 0; i < missing.size(); ++i) {
        const Value& v = k_.values[i];
        ValueId id = static_cast<ValueId>(i);
        if (!missing[i] || (v.axes & ~bound) || v.op == Op::constant) continue;
        if (a_.level[i] != level + (v.op == Op::reduce)) continue;
        known_[i] = true;
        if (v.op == Op::scan)
          print_scan(id);
        else if (v.op != Op::reduce)
          line("const {} v{} = {};", c_type(v.type), i, expression(v));
        else if (auto same = std::ranges::find_if(
                     sweeps, [&](const Ids& ids) { return value(ids[0]).over == v.over; });
                 same != sweeps.end())
          same->push_back(id);
        else
          sweeps.push_back({id});
      }
      for (const Ids& ids : sweeps) print_sweep(bound, ids);
    }
  }

  // Reductions: lanes within a chunk, halved, and the same over the chunks.

  void print_halving(std::string_view array, const Value& v, int64_t lanes) {
    if (lanes == 1) return;
    std::string at = format("{}[k]", array), other = format("{}[k + s]", array);
    line("for (int s = {}; s > 0; s /= 2)", lanes / 2);
    line("  for (int k = 0; k < s; ++k) {} = {};", at,
         c_binary(c_monoid(v.monoid), v.type, at, other));
  }

  void declare_lanes(std::string_view array, const Value& v, int64_t lanes) {
    line("{} {}[{}];", c_type(v.type), array, lanes);
    line("for (int k = 0; k < {}; ++k) {}[k] = {};", lanes, array,
         c_identity(v.monoid, v.type, false));
  }

  static int64_t lanes_for(int64_t count) {
    return std::min<int64_t>(kLanes,
                             static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count))));
  }

  void print_sweep(AxisSet bound, const Ids& ids) {
    AxisSet over = value(ids[0]).over;
    int64_t extent = 1;
    for (size_t k = 0; k < extents_.size(); ++k)
      if (over & bit(k)) extent *= extents_[k];
    int64_t chunks = (extent + kChunk - 1) / kChunk;
    for (ValueId id : ids) {
      const Value& v = value(id);
      DType type = value(v.a).type;
      if (is_arg(v.monoid))
        line("tn_i64 v{} = -1;", id);
      else
        line("{} v{} = {};", c_type(type), id, c_identity(v.monoid, type, true));
      if (is_arg(v.monoid) && extent > 0) line("{} best{} = 0;", c_type(type), id);
    }
    if (extent == 0) return;
    if (chunks == 1) return print_chunk(bound, ids, extent, "0", format("{}", extent));
    for (ValueId id : ids)
      if (!is_arg(value(id).monoid))
        declare_lanes(format("total{}", id), value(id), lanes_for(chunks));
    int sweep = sweeps_++;
    open("for (int64_t c{0} = 0; c{0} < {1}; ++c{0})", sweep, chunks);
    std::string first = format("c{} * {}", sweep, kChunk);
    std::string last = format("{} + {}", first, kChunk);
    if (extent % kChunk != 0) last = format("tn_min_i64({}, {})", last, extent);
    print_chunk(bound, ids, extent, first, last);
    for (ValueId id : ids) {
      const Value& v = value(id);
      if (is_arg(v.monoid)) continue;
      std::string lane = format("total{}[c{} % {}]", id, sweep, kLanes);
      line("{} = {};", lane, c_binary(c_monoid(v.monoid), v.type, lane, format("v{}", id)));
    }
    close();
    for (ValueId id : ids) {
      if (is_arg(value(id).monoid)) continue;
      print_halving(format("total{}", id), value(id), lanes_for(chunks));
      line("v{0} = total{0}[0];", id);
    }
  }

  /// The points [first, last) of a sweep in blocks of one point per lane, which vectorise.
  void print_chunk(AxisSet bound, const Ids& ids, int64_t extent, std::string_view first,
                   std::string_view last) {
    int64_t lanes = lanes_for(std::min(extent, kChunk));
    for (ValueId id : ids)
      if (!is_arg(value(id).monoid)) declare_lanes(format("lane{}", id), value(id), lanes);
    int sweep = sweeps_++;
    bool one = extent <= kLanes;
    std::string count = format("{}", std::min(extent, kLanes));
    if (!one) {
      open("for (int64_t i{0} = {1}; i{0} < {2}; i{0} += {3})", sweep, first, last, kLanes);
      if (extent % kLanes != 0) {
        line("const int64_t n{0} = tn_min_i64({1}, {2} - i{0});", sweep, kLanes, last);
        count = format("n{}", sweep);
      }
    }
    bool plain = std::ranges::none_of(ids, [&](ValueId id) { return is_arg(value(id).monoid); });
    AxisSet over = value(ids[0]).over;
    size_t inner = static_cast<size_t>(std::bit_width(over)) - 1;
    if (plain && !one && std::popcount(over) > 1 && extents_[inner] >= kShortLine)
      print_lines(bound, ids, sweep, count, inner);
    else
      print_lanes(bound, ids, sweep, count, one, plain);
    if (!one) close();
    for (ValueId id : ids) {
      if (is_arg(value(id).monoid)) continue;
      print_halving(format("lane{}", id), value(id), lanes);
      line("v{0} = lane{0}[0];", id);
    }
  }

  void print_lanes(AxisSet bound, const Ids& ids, int sweep, std::string_view count, bool one,
                   bool plain) {
    if (plain) line("TN_INDEPENDENT");
    open("for (int64_t k{0} = 0; k{0} < {1}; ++k{0})", sweep, count);
    std::string at = one ? format("k{}", sweep) : format("(i{0} + k{0})", sweep);
    AxisSet over = value(ids[0]).over;
    print_points(bound, ids, format("k{}", sweep), at,
                 [&](AxisSet read) { declare_axes(over, read, at); });
    close();
  }

  /// Of several reduced axes the last is walked line by line, so that no point needs a division.
  void print_lines(AxisSet bound, const Ids& ids, int sweep, std::string_view count, size_t inner) {
    AxisSet over = value(ids[0]).over, read = 0;
    for (ValueId id : ids) read |= value(value(id).a).axes;
    open("for (int64_t j{0} = 0; j{0} < {1};)", sweep, count);
    line("const int64_t at{0} = i{0} + j{0}, x{0} = at{0} % {1};", sweep, extents_[inner]);
    line("const int64_t m{0} = tn_min_i64({1} - j{0}, {2} - x{0});", sweep, count, extents_[inner]);
    declare_axes(over, read & ~bit(inner), format("at{}", sweep));
    line("TN_INDEPENDENT");
    open("for (int64_t k{0} = 0; k{0} < m{0}; ++k{0})", sweep);
    print_points(bound, ids, format("j{0} + k{0}", sweep), "", [&](AxisSet) {
      if (read & bit(inner)) line("const int64_t {0} = x{1} + k{1};", index_.axis(inner), sweep);
    });
    close();
    line("j{0} += m{0};", sweep);
    close();
  }

  /// What a sweep does at a point, whose position is `at`; `declare` says where its axes are.
  template <class F>
  void print_points(AxisSet bound, const Ids& ids, std::string_view lane, std::string_view at,
                    F&& declare) {
    std::vector<bool> known = known_;
    AxisSet over = value(ids[0]).over, read = 0;
    Ids operands;
    for (ValueId id : ids) operands.push_back(value(id).a), read |= value(value(id).a).axes;
    declare(read);
    print_values(bound | over, operands);
    for (ValueId id : ids) print_accumulate(id, lane, at);
    known_ = std::move(known);
  }

  /// The axes of `over` at the row-major position `at`; those without a reader get no variable.
  void declare_axes(AxisSet over, AxisSet read, std::string_view at) {
    int64_t stride = 1;
    for (size_t k = extents_.size(); k-- > 0;) {
      if (!(over & bit(k))) continue;
      std::string text = stride == 1 ? std::string(at) : format("{} / {}", at, stride);
      bool outermost = (over & (bit(k) - 1)) == 0;
      if (!outermost) text = format("{} % {}", text, extents_[k]);
      if (read & bit(k)) line("const int64_t {} = {};", index_.axis(k), text);
      stride *= extents_[k];
    }
  }

  void print_accumulate(ValueId id, std::string_view lane, std::string_view at) {
    const Value& v = value(id);
    DType type = value(v.a).type;
    std::string x = name(v.a);
    if (!is_arg(v.monoid)) {
      std::string slot = format("lane{}[{}]", id, lane);
      return line("{} = {};", slot, c_binary(c_monoid(v.monoid), type, slot, x));
    }
    std::string better = format("{} {} best{}", x, v.monoid == Monoid::argmax ? ">" : "<", id);
    if (is_float(type)) better += format(" || ({0} != {0} && best{1} == best{1})", x, id);
    line("if (v{} < 0 || {}) best{} = {}, v{} = {};", id, better, id, x, id, at);
  }

  // Stores.

  void print_stores(AxisSet bound, const std::vector<size_t>& stores) {
    print_values(bound, operands_of(stores));
    if (AxisSet rest = a_.par & ~bound) {
      std::vector<size_t> inner, after;
      for (size_t i : stores) (is_alike_over(i, rest) ? after : inner).push_back(i);
      if (!inner.empty()) print_loop(bound, static_cast<size_t>(std::countr_zero(rest)), inner);
      for (size_t i : after) print_store(k_.stores[i]);
      return;
    }
    std::vector<bool> done(stores.size(), false);
    for (size_t i = 0; i < stores.size(); ++i) {
      AxisSet rest = a_.stores[stores[i]].axes & ~bound;
      if (rest == 0) print_store(k_.stores[stores[i]]);
      if (rest == 0 || done[i]) continue;
      size_t axis = static_cast<size_t>(std::countr_zero(rest));
      std::vector<size_t> same;
      for (size_t j = i; j < stores.size(); ++j)
        if (std::countr_zero(a_.stores[stores[j]].axes & ~bound) == static_cast<int>(axis))
          same.push_back(stores[j]), done[j] = true;
      print_loop(bound, axis, same);
    }
  }

  /// Whether a store does the same at every point of `rest`, and no other writes there: once is
  /// enough, after whatever the others read.
  bool is_alike_over(size_t number, AxisSet rest) const {
    const Store& store = k_.stores[number];
    auto same = [&](const Store& other) { return other.buffer == store.buffer; };
    return a_.stores[number].axes != 0 && (a_.stores[number].axes & rest) == 0 &&
           (a_.stores[number].axes & ~a_.par) == 0 && store.combine == Combine::set &&
           !store.scattered && std::ranges::count_if(k_.stores, same) == 1;
  }

  /// The only point of an axis is a number, declared where it is used.
  void print_one(AxisSet bound, size_t axis, const std::vector<size_t>& stores) {
    std::string before = std::exchange(out_, {});
    print_stores(bound | bit(axis), stores);
    if (out_.find(index_.axis(axis)) != std::string::npos)
      out_ = format("{}const int64_t {} = 0;\n", std::string(static_cast<size_t>(2 * depth_), ' '),
                    index_.axis(axis)) +
             out_;
    out_ = before + out_;
  }

  void print_loop(AxisSet bound, size_t axis, const std::vector<size_t>& stores) {
    if (extents_[axis] == 1 && (a_.par & bit(axis))) return print_one(bound, axis, stores);
    bool backwards = declare_carries(bound, axis, stores);
    AxisSet all = bound | bit(axis);
    bool ordered = k_.axes[axis].kind == AxisKind::scan, innermost = !sweeps_for(stores);
    for (size_t i : stores) {
      ordered |= k_.stores[i].scattered;
      innermost &= ((a_.stores[i].axes | a_.par) & ~all) == 0;
    }
    if (depth_ == 1 && (a_.par & bit(axis)) && !ordered && !innermost)
      line("TN_PARALLEL({})", points_);
    if (innermost && !ordered) line("TN_INDEPENDENT");
    const std::string& at = index_.axis(axis);
    std::vector<bool> known = known_;
    if (backwards)
      open("for (int64_t {0} = {1}; {0} >= 0; --{0})", at, extents_[axis] - 1);
    else
      open("for (int64_t {0} = 0; {0} < {1}; ++{0})", at, extents_[axis]);
    print_stores(all, stores);
    close();
    known_ = std::move(known);
  }

  /// Whether reductions are still to be computed.
  bool sweeps_for(const std::vector<size_t>& stores) const {
    std::vector<bool> missing = missing_for(operands_of(stores));
    for (size_t i = 0; i < missing.size(); ++i)
      if (missing[i] && k_.values[i].op == Op::reduce) return true;
    return false;
  }

  /// Scans along `axis` carry their result from point to point; returns whether backwards.
  bool declare_carries(AxisSet bound, size_t axis, const std::vector<size_t>& stores) {
    std::vector<bool> missing = missing_for(operands_of(stores));
    int forwards = 0, backwards = 0;
    for (size_t i = 0; i < missing.size(); ++i) {
      const Value& v = k_.values[i];
      if (!missing[i] || v.op != Op::scan || v.over != bit(axis)) continue;
      if ((v.axes & ~v.over) & ~bound)
        unsupported(Hint{}, "c source: kernel {}: a scan inside a reduction of its results",
                    k_.name);
      line("{} carry{} = {};", c_type(v.type), i, c_identity(v.monoid, v.type, v.exclusive));
      ++(v.reverse ? backwards : forwards);
    }
    if (forwards && backwards)
      unsupported(Hint{}, "c source: kernel {}: scans in both directions", k_.name);
    return backwards > 0;
  }

  void print_store(const Store& store) {
    std::string to = element(store.buffer, store.index), x = name(store.value);
    static constexpr Op kOps[] = {Op::add, Op::add, Op::mul, Op::max, Op::min};
    if (store.combine != Combine::set)
      x = c_binary(kOps[static_cast<size_t>(store.combine)], value(store.value).type, to, x);
    std::string holds = index_.condition(store.mask);
    line("{}{} = {};", holds.empty() ? "" : format("if ({}) ", holds), to, x);
  }

  Kernel k_;
  Analysis a_;
  std::vector<int64_t> extents_;
  std::string function_;
  IndexPrinter index_;
  std::vector<bool> known_;  // values that have a variable here
  std::vector<bool> used_;   // buffers
  bool reads_arguments_ = false, is_scalar_ = false;
  int64_t points_ = 1;
  int sweeps_ = 0, depth_ = 1;
  std::string out_;
};

}  // namespace

std::string kernel_c(const Kernel& kernel, std::string_view function) {
  return KernelPrinter(kernel, function).text();
}

std::string c_math_name(loop::Op op, DType type, bool narrow) {
  return narrow ? format("tn_{}_narrow", facts(op).name) : format("tn_{}_{}", facts(op).name, type);
}

std::string math_c(loop::Op op, DType type, bool narrow) {
  Builder b("math");
  int axis = b.add_axis(1);
  S x[2];
  for (int k = 0; k < facts(op).operands; ++k)
    x[k] = b.load(b.add_buffer(format("x{}", k), type, 1), b.axis(axis));
  if (narrow) b.compute_for(DType::bf16);
  S y = facts(op).operands == 1 ? b.unary(op, x[0]) : b.binary(op, x[0], x[1]);
  b.store(b.add_buffer("y", type, 1, true), b.axis(axis), y);
  return KernelPrinter(expand_math(b.finish()), c_math_name(op, type, narrow)).scalar_text();
}

}  // namespace tn::source
