#include "fuzz_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"
#include "ops/slice_attrs.h"
#include "tenon/tenon.h"

namespace tn {
namespace {

Tensors call_op(const OpDef& op, Tensors in, std::string_view attrs) {
  alignas(16) char data[2048];
  invariant(op.attrs->size <= sizeof data, "fuzz: the attributes of {} are too large", op.name);
  op.attrs->init(data);
  parse_attrs(*op.attrs, data, attrs, op.name);
  while (!op.has_list() && static_cast<int>(in.size()) < op.args.size()) in.emplace_back();
  return call_with(op, std::move(in), data);
}

std::vector<Type> types_of(const Sample& sample) {
  std::vector<Type> types;
  std::string_view text = sample.args;
  while (std::optional<Type> type = parse_type(text)) {
    types.push_back(*type);
    text.remove_prefix(std::min(text.size(), text.find_first_not_of(", ")));
  }
  return types;
}

constexpr int64_t kMostElements = 1 << 13, kMostLongElements = 1 << 17;

class Drawing {
 public:
  explicit Drawing(uint64_t seed) : random_(seed) {}

  Graph graph() {
    draw_base();
    return graph_of_base();
  }

  Graph graph_of_base() {
    int inputs = 1 + pick(4), ops = 2 + pick(18);
    for (int i = 0; i < inputs; ++i) params_.push_back(make_param(draw_input()));
    pool_ = params_;
    for (int tries = 0; ops > 0 && tries < 200; ++tries) ops -= try_step();
    Tensors outputs{pool_.back()};
    for (int more = pick(3); more > 0; --more) outputs.push_back(any());
    return capture(params_, outputs).graph;
  }

  /// Sizes of the base shape are symbols, most of them; steps that fix one are drawn again.
  SymbolicGraph symbolic() {
    draw_base();
    SymbolicGraph out;
    for (Dim& d : base_) {
      if (d.is(0) || chance(30)) continue;
      out.sizes.push_back({Dim::symbol(format("s{}", out.sizes.size())), d.value()});
      d = out.sizes.back().symbol;
    }
    SizeHints hints(out.sizes);
    hints_ = &hints;
    out.graph = graph_of_base();
    return out;
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool chance(int percent) { return pick(100) < percent; }
  template <class T>
  const T& one_of(std::span<const T> list) {
    return list[static_cast<size_t>(pick(static_cast<int>(list.size())))];
  }
  /// A late value more often than an early one: graphs grow deep.
  Tensor any() {
    int n = static_cast<int>(pool_.size());
    return pool_[static_cast<size_t>(std::max(pick(n), pick(n)))];
  }

  void draw_base() {
    static constexpr int64_t kExtents[] = {1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 64, 65, 100};
    if (chance(6)) {  // rows of several chunks
      most_ = kMostLongElements;
      if (chance(50)) base_.push_back(Dim(1 + pick(3)));
      base_.push_back(Dim(16000 + pick(20000)));
      return;
    }
    int64_t elements = 1;
    for (int rank = pick(5); rank > 0; --rank) {
      int64_t extent = chance(2) ? 0 : kExtents[pick(13)];
      if (elements * extent > kMostElements) extent = 2;
      base_.push_back(Dim(extent));
      elements *= extent;
    }
  }

  DType draw_dtype() {
    static constexpr DType kTypes[] = {DType::f32,  DType::f32, DType::f32, DType::f32, DType::f32,
                                       DType::bf16, DType::f16, DType::i32, DType::i64, DType::b1,
                                       DType::f64,  DType::u8,  DType::i8,  DType::u32, DType::c64};
    return kTypes[pick(15)];
  }

  /// The base shape, or part of it that broadcasts.
  TypeRef draw_input() {
    Shape shape;
    int first = chance(60) ? 0 : pick(base_.rank() + 1);
    for (int k = first; k < base_.rank(); ++k) shape.push_back(chance(85) ? base_[k] : Dim(1));
    return intern(Type{draw_dtype(), shape});
  }

  bool try_step() {
    try {
      int kind = pick(100);
      return keep(kind < 45   ? pointwise()
                  : kind < 65 ? along_axes()
                  : kind < 80 ? moved()
                              : by_sample());
    } catch (const UserError&) {    // what was drawn does not fit together
    } catch (const Unsupported&) {  // likewise
    }
    if (hints_) hints_->guards.clear();
    return false;
  }

  bool keep(const Tensors& made) {
    bool kept = false;
    if (hints_ && !std::exchange(hints_->guards, {}).empty()) return false;
    for (const Tensor& x : made) {
      Dim elements = type_of(x)->shape.elements();
      int64_t count = hints_ ? evaluate(elements, hints_->values) : elements.value();
      if (count > most_) continue;
      pool_.push_back(x);
      kept = true;
    }
    return kept;
  }

  /// The sign of a NaN is open, so those who look at it get none.
  static void hide_nan(const OpDef& op, Tensors& in) {
    if (op.name != "signbit" && op.name != "copysign") return;
    for (Tensor& x : in)
      if (is_float(x.dtype())) x = where(isnan(x), 0.5, x);
  }

  const OpDef& draw_op() { return *one_of(surface_ops()); }
  std::string_view draw_attrs(const OpDef& op) {
    return op.rules->samples.size() > 0 ? op.rules->samples[pick(op.rules->samples.size())].attrs
                                        : "";
  }

  Tensors pointwise() {
    const OpDef* op = &draw_op();
    while (op->family != Family::elementwise) op = &draw_op();
    Tensors in;
    for (int k = 0; k < op->args.size(); ++k)
      in.push_back(k > 0 && chance(20) ? Tensor(chance(50) ? 0.75 : 2.0) : any());
    hide_nan(*op, in);
    return call_op(*op, in, draw_attrs(*op));
  }

  /// The text of an axis attribute for an operand of this rank; empty when the op has none.
  std::string draw_axis(const OpDef& op, int rank) {
    alignas(16) char data[2048];
    op.attrs->init(data);
    FieldList fields;
    op.attrs->list(data, fields);
    for (const Field& f : fields.items) {
      if (f.name != std::string_view("axis") || rank == 0) continue;
      if (f.kind == FieldKind::axis) return format("axis={}", pick(rank));
      if (f.kind != FieldKind::axes) continue;
      std::vector<int> axes;
      for (int k = 0; k < rank; ++k)
        if (chance(50)) axes.push_back(k);
      if (axes.empty()) axes.push_back(rank - 1);
      return format("axis=[{}]", join(axes, ","));
    }
    return "";
  }

  /// Reductions, softmax, cumulative sums, sorts, flips, ...: whatever takes one tensor and an
  /// axis.
  Tensors along_axes() {
    Tensor x = any();
    for (int tries = 0; tries < 500; ++tries) {
      const OpDef& op = draw_op();
      if (op.args.size() == 0 || op.has_list()) continue;
      if (op.args.size() > 1 && !op.args[1].optional) continue;
      std::string axis = draw_axis(op, x.rank());
      if (axis.empty() && op.family != Family::reduction) continue;
      return call_op(op, {x}, axis);
    }
    return {};
  }

  Tensors moved() {
    Tensor x = any();
    Shape shape = x.shape();
    int rank = x.rank();
    if (rank == 0) return {broadcast_to(x, base_)};
    int axis = pick(rank);
    if (!shape[axis].is_const()) return moved_along(x, axis);
    int64_t extent = shape[axis].value();
    switch (pick(6)) {
      case 0: {
        Perm order;
        for (int k = 0; k < rank; ++k) order.push_back(k);
        std::shuffle(order.begin(), order.end(), random_);
        return {permute_dims(x, order)};
      }
      case 1: {
        int64_t from = pick(static_cast<int>(extent) + 1), step = 1 + pick(3);
        if (chance(40)) return {slice(x, {extent - 1}, {-extent - 1}, {-step}, Axes(axis))};
        return {slice(x, {from}, {extent}, {step}, Axes(axis))};
      }
      case 2: {  // merge two axes, or split one
        Shape other;
        for (int k = 0; k < rank; ++k) {
          if (k + 1 < rank && k == axis) {
            other.push_back(Dim(extent) * shape[k + 1]);
            ++k;
          } else if (k == axis && extent % 2 == 0 && rank < 6) {
            other.push_back(Dim(2)), other.push_back(Dim(extent / 2));
          } else {
            other.push_back(shape[k]);
          }
        }
        return {reshape(x, other)};
      }
      case 3: {
        Shape wider{2};
        for (Dim d : shape) wider.push_back(d);
        return {broadcast_to(x, wider)};
      }
      case 4:
        return {concat({x, flip(x, Axes(axis))}, axis)};
      default:  // of the base shape again, so that others combine with it
        return {adapted(x, Type{x.dtype(), base_}, -2, 2)};
    }
  }

  /// The axis has a symbolic extent.
  Tensors moved_along(const Tensor& x, int axis) {
    Shape shape = x.shape(), merged;
    Perm order;
    for (int k = 0; k < x.rank(); ++k) {
      order.push_back(k);
      if (k == axis + 1)
        merged[axis] = merged[axis] * shape[k];
      else
        merged.push_back(shape[k]);
    }
    switch (pick(5)) {
      case 0:
        std::shuffle(order.begin(), order.end(), random_);
        return {permute_dims(x, order)};
      case 1:
        return {slice(x, {pick(2)}, {ops::kToEnd}, {1 + pick(2)}, Axes(axis))};
      case 2:
        return {reshape(x, merged)};
      case 3:
        return {flip(x, Axes(axis))};
      default:
        return {concat({x, flip(x, Axes(axis))}, axis)};
    }
  }

  /// Elements of `x`, repeated or cut off, as a tensor of another type with values in [lo, hi].
  Tensor adapted(const Tensor& x, const Type& type, double lo, double hi) {
    int64_t wanted = 1, have = x.size();
    for (Dim d : type.shape) wanted *= d.value();
    Tensor flat = reshape(x, {have});
    if (have == 0) flat = array(std::vector<float>{1}, {1}), have = 1;
    if (have < wanted) {
      int64_t times = (wanted + have - 1) / have;
      flat = reshape(broadcast_to(flat, {times, have}), {times * have});
    }
    Tensor part = reshape(slice(flat, {0}, {wanted}, {}, Axes(0)), type.shape);
    if (is_complex(part.dtype())) part = real(part);
    if (!is_float(part.dtype())) part = astype(part, DType::f32);
    return astype(clip(part, lo, hi), type.dtype);
  }

  Tensors by_sample() {
    const OpDef& op = draw_op();
    if (op.rules->samples.size() == 0) return {};
    const Sample& sample = op.rules->samples[pick(op.rules->samples.size())];
    Tensors in;
    for (const Type& type : types_of(sample))
      in.push_back(adapted(any(), type, sample.lo, sample.hi));
    hide_nan(op, in);
    return call_op(op, in, sample.attrs);
  }

  std::mt19937_64 random_;
  Shape base_;
  int64_t most_ = kMostElements;
  Tensors params_, pool_;
  SizeHints* hints_ = nullptr;
};

double draw_number(std::mt19937_64& random) {
  static constexpr double kSpecial[] = {0.0,
                                        -0.0,
                                        1,
                                        -1,
                                        1e-42,
                                        3e38,
                                        -1e20,
                                        300,
                                        std::numeric_limits<double>::infinity(),
                                        -std::numeric_limits<double>::infinity(),
                                        std::numeric_limits<double>::quiet_NaN()};
  if (random() % 32 == 0) return kSpecial[random() % 11];
  return std::uniform_real_distribution<double>(-3, 3)(random);
}

}  // namespace

std::optional<Graph> sample_graph(const OpDef& op, const Sample& sample) {
  Tensors params;
  for (const Type& type : types_of(sample)) params.push_back(make_param(intern(type)));
  try {
    Tensors out = call_op(op, params, sample.attrs);
    return capture(params, out).graph;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<SymbolicGraph> symbolic_sample_graph(const OpDef& op, const Sample& sample) {
  SymbolicGraph out;
  std::vector<Type> types = types_of(sample);
  for (Type& type : types)
    for (Dim& d : type.shape) {
      auto known = std::ranges::find(out.sizes, d.value(), &Binding::value);
      if (known == out.sizes.end() && !d.is(0)) {
        out.sizes.push_back({Dim::symbol(format("s{}", out.sizes.size())), d.value()});
        known = out.sizes.end() - 1;
      }
      if (known != out.sizes.end()) d = known->symbol;
    }
  SizeHints hints(out.sizes);
  Tensors params;
  for (const Type& type : types) params.push_back(make_param(intern(type)));
  try {
    Tensors results = call_op(op, params, sample.attrs);
    out.graph = capture(params, results).graph;
  } catch (const Error&) {
    return std::nullopt;
  }
  if (!hints.guards.empty()) return std::nullopt;
  return out;
}

Graph fuzz_graph(uint64_t seed) { return Drawing(seed).graph(); }

SymbolicGraph fuzz_symbolic_graph(uint64_t seed) { return Drawing(seed).symbolic(); }

Tensors fuzz_inputs(const Graph& graph, uint64_t seed) {
  std::mt19937_64 random(seed);
  Tensors in;
  for (Val v = 0; v < graph.inputs(); ++v) {
    TypeRef type = graph.types[static_cast<size_t>(v)];
    auto values = [&] {
      std::vector<double> list(static_cast<size_t>(type->elements));
      for (double& x : list) x = draw_number(random);
      // Tables of indices, which interpolation holds, are inputs too: these stay in bounds.
      if (type->dtype == DType::i64)
        for (double& x : list) x = std::isnan(x) ? 0 : std::clamp(x, -3.0, 3.0);
      return array(list, type->shape);
    };
    Tensor x = values();
    if (is_complex(type->dtype)) x = make_complex(x, values());
    in.push_back(astype(x, type->dtype).eval());
  }
  return in;
}

}  // namespace tn
