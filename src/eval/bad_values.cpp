#include "eval/bad_values.h"

#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "eval/op_by_op.h"
#include "ir/element.h"
#include "mesh/processes.h"
#include "ops/collectives.h"

namespace tn {

static BadValues sought_at_start() {
  const char* text = std::getenv("TENON_DEBUG_NANS");
  std::string_view wanted = text ? text : "";
  if (wanted.empty() || wanted == "0") return BadValues::none;
  return wanted == "inf" ? BadValues::nan_and_inf : BadValues::nan;
}

std::atomic<BadValues> sought_values = sought_at_start();

BadValues debug_nans(BadValues sought) { return sought_values.exchange(sought); }

namespace {

struct Found {
  int64_t elements = 0, first = 0;
  explicit operator bool() const { return elements > 0; }
};

/// Without its sign a float is above `infinity`, as an integer, exactly if it is NaN.
template <class Bits>
Found find_in(const void* data, int64_t count, Bits infinity, bool also_infinity) {
  const Bits* values = static_cast<const Bits*>(data);
  constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;
  Bits least = static_cast<Bits>(infinity + !also_infinity);
  auto is_bad = [&](Bits bits) { return static_cast<Bits>(bits & kMagnitude) >= least; };
  Found found;
  for (int64_t i = 0; i < count; ++i) found.elements += is_bad(values[i]);
  if (found)
    while (!is_bad(values[found.first])) ++found.first;
  return found;
}

Found find_bad(const Bound& value, TypeRef type, BadValues sought) {
  HostView host(value);
  const void* data = host.data();
  bool inf = sought == BadValues::nan_and_inf;
  int64_t n = type->elements;
  auto in_pairs = [](Found found) {
    return Found{(found.elements + 1) / 2, found.first / 2};  // a part of each, or both
  };
  switch (type->dtype) {
    case DType::f16:
      return find_in<uint16_t>(data, n, 0x7c00, inf);
    case DType::bf16:
      return find_in<uint16_t>(data, n, 0x7f80, inf);
    case DType::f32:
      return find_in<uint32_t>(data, n, 0x7f80'0000, inf);
    case DType::f64:
      return find_in<uint64_t>(data, n, 0x7ff0'0000'0000'0000, inf);
    case DType::c64:
      return in_pairs(find_in<uint32_t>(data, 2 * n, 0x7f80'0000, inf));
    case DType::c128:
      return in_pairs(find_in<uint64_t>(data, 2 * n, 0x7ff0'0000'0000'0000, inf));
    default:
      return {};
  }
}

/// In what this process holds.
bool has_bad_here(const Bound& value, TypeRef type, BadValues sought) {
  if (!mesh::is_spread(value)) return bool(find_bad(value, type, sought));
  mesh::BlocksHere held = mesh::blocks_here(value, type);
  return std::ranges::any_of(held.blocks, [&](Bound block) {
    block.offset += value.offset;  // a view of what is whole
    return bool(find_bad(block, held.type, sought));
  });
}

/// Looks through the values of a graph while it is computed op by op.
class Search {
 public:
  Search(const CheckedRun& run, BadValues sought)
      : sought_(sought),
        ops_(run),
        graph_(ops_.graph()),
        found_(graph_.types.size()),
        cause_(graph_.ops.size(), kNoVal),
        at_element_(graph_.ops.size()) {}

  /// What is wrong with the first output that has something bad. `here`: one has, in this process.
  std::string explain(bool here) {
    for (Val v = 0; v < graph_.inputs(); ++v)
      found_[at(v)] = find_bad(whole(v), graph_.types[at(v)], sought_);
    for (size_t n = 0; n < graph_.ops.size(); ++n) look_at(n);
    auto bad = std::ranges::find_if(graph_.outputs, [&](Val v) { return bool(found_[at(v)]); });
    if (bad == graph_.outputs.end())
      return here ? "debug_nans: a result has it, but computed op by op it does not"
                  : format("debug_nans: a result of another worker has {}", what());
    Val v = *bad;
    while (true) {
      const GraphOp* op = ops_.maker(v);
      if (!op) return format("debug_nans: an argument has {}: {}", what(), where(v));
      Val cause = cause_[index(*op)];
      if (cause == kNoVal) return made(*op, v);
      if (!ops_.maker(cause) || ops_.is_number(cause))
        return format("debug_nans: {} is given {}: operand {}, {}{}", call(*op), what(),
                      std::ranges::find(graph_.in(*op), cause) - graph_.in(*op).begin(),
                      where(cause), place(*op));
      v = cause;
    }
  }

 private:
  static size_t at(Val v) { return static_cast<size_t>(v); }
  size_t index(const GraphOp& op) const { return static_cast<size_t>(&op - graph_.ops.data()); }

  /// What is divided among processes is gathered: all of them search.
  Bound whole(Val v) const {
    const Bound& value = ops_.value(v);
    return mesh::is_spread(value) ? mesh::gathered(value, graph_.types[at(v)]) : value;
  }

  void look_at(size_t n) {
    const GraphOp& op = graph_.ops[n];
    if (op.op == &scalar_leaf) {
      found_[at(op.out)].elements = is_bad(op.scalar);
      return;
    }
    ops_.compute(n);
    for (Val v = op.out; v < op.out + op.outs; ++v) {
      Found found = found_[at(v)] = find_bad(whole(v), graph_.types[at(v)], sought_);
      if (!found) continue;
      cause_[n] = cause_of(op, found.first);
      if (op.op->is_elementwise() && cause_[n] == kNoVal) at_element_[n] = call_at(op, found.first);
    }
    ops_.release_operands(n);
  }

  /// What an elementwise op reads of an operand for one element of its result.
  Scalar operand_at(Val v, const GraphOp& op, int64_t element) const {
    if (ops_.is_number(v)) return ops_.maker(v)->scalar;
    const Type& type = *graph_.types[at(v)];
    const Shape& shape = graph_.types[at(op.out)]->shape;
    int64_t offset = 0, stride = 1, rest = element;
    for (int k = shape.rank() - 1, own = type.rank() - 1; own >= 0; --k, --own) {
      int64_t extent = type.shape[own].value();
      offset += extent == 1 ? 0 : rest % shape[k].value() * stride;
      rest /= shape[k].value(), stride *= extent;
    }
    return element_at(type.dtype, HostView(whole(v)).data() + offset * size_of(type.dtype));
  }

  bool is_bad(const Scalar& s) const {
    if (std::isnan(s.real) || std::isnan(s.imag)) return true;
    return sought_ == BadValues::nan_and_inf && (std::isinf(s.real) || std::isinf(s.imag));
  }

  /// The operand that a bad element comes from. Those of an elementwise op may have others, which
  /// are not to blame: `where` discards them.
  Val cause_of(const GraphOp& op, int64_t element) const {
    std::span<const Val> in = graph_.in(op);
    if (op.op->operands == Operands::select)
      in = in.subspan(operand_at(in[0], op, element).integer ? 1 : 2, 1);
    auto bad = std::ranges::find_if(in, [&](Val v) {
      if (!found_[at(v)]) return false;
      return !op.op->is_elementwise() || is_bad(operand_at(v, op, element));
    });
    return bad == in.end() ? kNoVal : *bad;
  }

  // Texts --------------------------------------------------------------------------------------

  std::string what() const { return sought_ == BadValues::nan ? "NaN" : "NaN or infinity"; }

  /// "1 of 3 elements of f32[3], first at [1]"
  std::string where(Val v) const {
    TypeRef type = graph_.types[at(v)];
    const Found& found = found_[at(v)];
    if (type->rank() == 0) return format("{}", *type);
    return format("{} of {} elements of {}, first at {}", found.elements, type->elements, *type,
                  index_text(found.first, type->shape));
  }

  /// "log(f32[3])"
  std::string call(const GraphOp& op) const {
    std::vector<std::string> types;
    for (TypeRef type : graph_.in_types(op)) types.push_back(to_text(*type));
    return format("{}({})", op.op->name, join(types, ", "));
  }

  /// "log(-1)": an elementwise op at one element of its result.
  std::string call_at(const GraphOp& op, int64_t element) const {
    std::vector<std::string> operands;
    for (Val v : graph_.in(op)) operands.push_back(to_text(operand_at(v, op, element), kDigits));
    return format(": {}({})", op.op->name, join(operands, ", "));
  }

  std::string place(const GraphOp& op) const {
    std::string text = to_text(op.loc);
    return text.empty() ? "" : format(" (called at {})", text);
  }

  std::string made(const GraphOp& op, Val v) const {
    return format("debug_nans: {}{} made {}: {}{}{}", call(op), on_behalf_of(op), what(), where(v),
                  at_element_[index(op)], place(op));
  }

  /// The parts and derivatives of an op have its place.
  std::string on_behalf_of(const GraphOp& op) const {
    auto first = std::ranges::find_if(graph_.ops, [&](const GraphOp& other) {
      return other.loc.bits == op.loc.bits && other.op != &scalar_leaf;
    });
    bool other = op.loc && first != graph_.ops.end() && first->op != op.op;
    return other ? format(", for {},", first->op->name) : "";
  }

  static constexpr int kDigits = 6;
  BadValues sought_;
  OpByOp ops_;
  const Graph& graph_;
  std::vector<Found> found_;
  // By op that has something bad among its results.
  std::vector<Val> cause_;               // the operand it comes from
  std::vector<std::string> at_element_;  // if there is none: what was computed
};

}  // namespace

/// Whether processes evaluate it together, and some may see what others do not.
static bool is_agreed(const Graph& graph, std::span<const Bound> outputs) {
  auto is_collective = [](const GraphOp& op) { return ops::is_collective(*op.op); };
  if (std::ranges::any_of(outputs, [](const Bound& made) { return mesh::is_spread(made); }))
    return true;
  return std::ranges::any_of(graph.ops, is_collective) && mesh::rank_of_process() >= 0;
}

void check_values(const CheckedRun& run, std::span<const Bound> outputs) {
  BadValues sought = sought_values;
  bool here = false;
  for (size_t i = 0; i < run.graph.outputs.size() && !here; ++i)
    here = has_bad_here(outputs[i], run.graph.types[static_cast<size_t>(run.graph.outputs[i])],
                        sought);
  bool found = is_agreed(run.graph, outputs) ? mesh::said_by_any(here) : here;
  if (found) fail("{}", Search(run, sought).explain(here));
}

}  // namespace tn
