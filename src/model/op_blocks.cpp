#include "model/op_blocks.h"

#include <algorithm>

#include "base/error.h"
#include "ir/emit.h"
#include "tenon/model_blocks.h"

namespace tn::model {
namespace {

/// The integer or bool type that an operand has in all samples of the op, if it has one.
std::optional<DType> usual_type(const OpDef& op, int operand) {
  std::optional<DType> usual;
  for (const Sample& sample : op.rules->samples) {
    std::string_view rest = sample.args;
    std::optional<Type> type;
    for (int i = 0; i <= operand; ++i) {
      type = rest.empty() ? std::nullopt : parse_type(rest);
      rest.remove_prefix(std::min(rest.find_first_not_of(", "), rest.size()));
    }
    if (!type) continue;
    bool exact = type->dtype == DType::b1 || is_integer(type->dtype);
    if (!exact) return {};
    usual = type->dtype;
  }
  return usual == DType::i32 ? DType::i64 : usual;  // what integers of users are
}

const Field* field_named(const FieldList& fields, std::string_view name) {
  auto found = std::ranges::find(fields.items, name,
                                 [](const Field& f) { return std::string_view(f.name); });
  return found == fields.items.end() ? nullptr : &*found;
}

/// Shapes of an operand and of the results.
struct Patterns {
  std::string in = "*", out = "*";
};

/// Of ops with `axis` and `keepdims`: the axes that are left are those of the operand, known or
/// not.
Patterns reduction_patterns(const OpDef& op, OpSettings& settings) {
  FieldList fields = list_fields(*op.attrs, settings.attrs.data);
  const Field* axis = field_named(fields, "axis");
  const Field* keepdims = field_named(fields, "keepdims");
  if (!axis || axis->kind != FieldKind::axes || !keepdims) return {};
  bool keeps = *static_cast<bool*>(keepdims->at);
  if (axis->set && !*axis->set) return keeps ? Patterns() : Patterns{"*", ""};
  const Axes& axes = *static_cast<Axes*>(axis->at);
  if (axes.size() == 0) return {};
  bool from_end = axes[0].i < 0;
  int count = 0;  // of axes up to the last one that is reduced, from either end
  for (Axis a : axes) {
    if ((a.i < 0) != from_end) return {};
    count = std::max(count, from_end ? -a.i : a.i + 1);
  }
  std::vector<std::string> in, out;
  for (int i = 0; i < count; ++i) {
    in.push_back(format("a{}", i));
    bool reduced = std::ranges::count(axes, Axis(from_end ? i - count : i)) > 0;
    if (!reduced) out.push_back(in.back());
    if (reduced && keeps) out.push_back("1");
  }
  auto side = from_end ? [](std::vector<std::string>& v) { return v.begin(); }
                       : [](std::vector<std::string>& v) { return v.end(); };
  in.insert(side(in), "..."), out.insert(side(out), "...");
  return {format("{}", join(in, " ")), format("{}", join(out, " "))};
}

Patterns patterns_of(const OpDef& op, OpSettings& settings) {
  if (op.args.size() == 1 && op.results.size() == 0 && !op.is_elementwise())
    return reduction_patterns(op, settings);
  if (!op.is_elementwise()) return {};
  // One operand, beside numbers: what is known of either side is known of the other.
  int open = 0;
  for (const Tensor& fixed : settings.fixed) {
    open += !fixed.defined();
    if (fixed.defined() && fixed.rank() > 0) return {};
  }
  return open == 1 ? Patterns{"...", "..."} : Patterns();
}

void add_operands(const OpDef& op, const OpSettings& settings, const std::string& shape,
                  std::vector<Terminal>& terminals) {
  for (int i = 0; i < op.args.size(); ++i) {
    const ArgDef& arg = op.args[i];
    if (settings.fixed[static_cast<size_t>(i)].defined()) continue;
    bool is_key = arg.name == "key";  // drawn from where nothing is connected
    bool first = arg.name == "x" || op.args.size() == 1;
    std::string name = first && !is_key ? "input" : std::string(arg.name);
    if (!arg.list) {
      terminals.push_back({.name = name,
                           .shape = shape,
                           .optional = arg.optional || is_key,
                           .usual = usual_type(op, i)});
      continue;
    }
    for (int k = 0; k < settings.count; ++k)
      terminals.push_back({.name = format("{}{}", name, k), .shape = shape});
  }
}

void add_results(const OpDef& op, const OpSettings& settings, const std::string& shape,
                 std::vector<Terminal>& terminals) {
  std::vector<std::string> names(op.results.begin(), op.results.end());
  if (names.empty()) names = {"output"};
  if (names[0] == "*") {
    names.clear();
    for (int i = 0; i < settings.count; ++i) names.push_back(format("output{}", i));
  }
  for (std::string& name : names)
    terminals.push_back({.name = std::move(name), .role = Role::output, .shape = shape});
}

/// Operands as the op takes them, from the terminals that are left.
Tensors operands(const OpDef& op, const OpSettings& settings, const BlockCall& call) {
  Tensors in;
  size_t next = 0;
  for (int i = 0; i < op.args.size(); ++i) {
    const Tensor& fixed = settings.fixed[static_cast<size_t>(i)];
    int count = op.args[i].list ? settings.count : 1;
    for (int k = 0; k < count; ++k) {
      Tensor given = fixed.defined() ? fixed : call.in[next++];
      in.push_back(!given.defined() && op.args[i].name == "key" ? call.key : given);
    }
  }
  return in;
}

bool keeps_type(const OpDef& op) {
  if (op.is_elementwise()) return op.result == ResultType::operand;
  return op.family == Family::movement || op.family == Family::reduction;
}

}  // namespace

std::string block_name(std::string_view op) {
  std::string name;
  bool up = true;
  for (char c : op) {
    if (c == '_') {
      up = true;
      continue;
    }
    name += up && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    up = false;
  }
  return name;
}

Block op_block(const OpDef& op, OpSettings settings) {
  BlockDef def{.kind = block_name(op.name), .terminals = {}, .settings = settings.text};
  settings.fixed.resize(static_cast<size_t>(op.args.size()));
  bool is_list = op.results.size() > 0 && op.results[0] == "*";
  if ((op.has_list() || is_list) && settings.count < 1)
    fail(Hint{format("{}(count=2)", def.kind), "give the setting count"},
         "{}: say how many tensors it {}", def.kind, op.has_list() ? "takes" : "gives");
  Patterns patterns = patterns_of(op, settings);
  add_operands(op, settings, patterns.in, def.terminals);
  bool draws = std::ranges::any_of(def.terminals, [](auto& t) { return t.name == "key"; });
  add_results(op, settings, patterns.out, def.terminals);
  def.draws = draws ? Draws::without_key : Draws::never;
  def.same_type = keeps_type(op);
  def.compute = [&op, settings = std::move(settings)](const BlockCall& call) {
    AttrBuffer attrs = settings.attrs;
    return call_with(op, operands(op, settings, call), attrs.data);
  };
  return def;
}

Block op_block(std::string_view name, std::string_view attributes, int count) {
  const OpDef* op = find_op(name);
  if (!op || !op->surface) fail("op_block: no op '{}'", name);
  OpSettings settings{
      .attrs = AttrBuffer(*op->attrs), .count = count, .text = std::string(attributes)};
  parse_attrs(*op->attrs, settings.attrs.data, attributes, op->name);
  return op_block(*op, std::move(settings));
}

}  // namespace tn::model
