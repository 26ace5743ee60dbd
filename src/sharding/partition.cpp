#include "sharding/partition.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "ir/rewrite.h"
#include "ops/op_decls.h"
#include "sharding/gathers.h"
#include "sharding/indexed_blocks.h"
#include "sharding/local_ops.h"
#include "sharding/local_region.h"
#include "sharding/positions.h"

namespace tn::sharding {

namespace {

using loop::Monoid;

/// By value: itself, or of a copy the value that it copies, so that both are gathered once.
std::vector<Val> values_of_copies(const Graph& graph) {
  std::vector<Val> same(graph.types.size());
  std::iota(same.begin(), same.end(), 0);
  for (const GraphOp& op : graph.ops)
    if (op.op == &ops::copy && !std::ranges::count(graph.outputs, op.out))
      same[static_cast<size_t>(op.out)] = same[static_cast<size_t>(graph.in(op)[0])];
  return same;
}

class Partition {
 public:
  Partition(const Graph& graph, const Mesh& mesh, const Layouts& layouts, Links& links,
            Decisions* decisions, const Given& given)
      : from_(graph),
        given_(given),
        mesh_(mesh),
        finest_(finest(mesh)),
        layouts_(layouts.values),
        folds_first_(layouts.folds),
        links_(links),
        decisions_(decisions),
        ops_(graph, mesh, links, decisions),
        local_(mesh, decisions),
        same_(values_of_copies(graph)),
        gathers_(graph, layouts.values, same_),
        forms_(graph.types.size()),
        uses_(graph.types.size()),
        is_left_out_(graph.ops.size()) {
    for (const GraphOp& op : graph.ops)
      for (Val v : graph.in(op)) ++uses_[static_cast<size_t>(v)];
    for (Val v : graph.outputs) uses_[static_cast<size_t>(v)] += 2;  // never passed on in parts
    find_sums();
  }

  Partitioned run() {
    Partitioned made;
    local_.graph.name = from_.name;
    for (Val v = 0; v < from_.inputs(); ++v) {
      Layout layout = plain(v);
      if (!given_.inputs.empty()) {
        layout = given_.inputs[static_cast<size_t>(v)];
        layout.stored = 0;
      }
      TypeRef type = local_type(mesh_, layout, from_.types[static_cast<size_t>(v)]);
      Val input = local_.graph.add_input(from_.input_names[static_cast<size_t>(v)], type);
      forms_[static_cast<size_t>(v)].push_back({layout, Monoid::add, {input}});
      made.inputs.push_back(layouts_[static_cast<size_t>(v)]);
    }
    std::vector<bool> needed = needed_values(from_);
    int constants = 0;
    for (int i = 0; i < static_cast<int>(from_.ops.size()); ++i) {
      bool is_given = op_at(i).op == &scalar_leaf && constants++ < given_.constants;
      bool is_read = is_needed(op_at(i), needed) && !is_left_out_[static_cast<size_t>(i)];
      if (is_given || (is_read && gathers_.view(op_at(i).out) < 0)) emit(i);
    }
    std::vector<Loc> recorded(from_.types.size());  // by value
    for (const GraphOp& op : from_.ops)
      for (int k = 0; k < op.outs; ++k) recorded[static_cast<size_t>(op.out + k)] = op.loc;
    local_.reader = "the result";
    for (Val v : from_.outputs) {
      local_.loc = recorded[static_cast<size_t>(v)];
      local_.graph.outputs.push_back(form(v, plain(v)).parts[0]);
      made.outputs.push_back(layouts_[static_cast<size_t>(v)]);
    }
    made.graph = std::move(local_.graph), made.transitions = local_.transitions;
    made.folds = folds_;
    return made;
  }

 private:
  const GraphOp& op_at(int i) const { return from_.ops[static_cast<size_t>(i)]; }
  TypeRef type(Val v) const { return from_.types[static_cast<size_t>(v)]; }
  /// The layout that was found for a value, as one of memory.
  Layout plain(Val v) const {
    Layout layout = layouts_[static_cast<size_t>(v)];
    layout.stored = 0;
    return layout;
  }
  size_t place_of(Val v) const { return static_cast<size_t>(same_[static_cast<size_t>(v)]); }
  const Form& first_form(Val v) {
    refresh(v);
    return forms_[place_of(v)].front();
  }

  /// Forgets what was gathered too long ago, and makes a view of a stored value for its reader.
  void refresh(Val v) {
    Val place = same_[static_cast<size_t>(v)], root = gathers_.root(place);
    if (root == kNoVal) return;
    if (gathers_.forget(root)) {
      auto& forms = forms_[static_cast<size_t>(root)];
      auto [first, last] = std::ranges::remove_if(
          forms.begin() + 1, forms.end(),
          [&](const Form& f) { return gathers_.is_gathered(root, plain(root), f.layout); });
      forms.erase(first, last);
    }
    if (!gathers_.renew(place)) return;
    Loc loc = local_.loc;
    std::string_view reader = local_.reader;
    forms_[static_cast<size_t>(place)].clear();
    emit(gathers_.view(place));
    local_.loc = loc, local_.reader = reader;
  }

  /// The value in a layout, made from the form that is nearest to it.
  Form form(Val v, const Layout& target) {
    refresh(v);
    auto& forms = forms_[place_of(v)];
    auto near = std::ranges::min_element(forms, {},
                                         [&](const Form& f) { return local_.distance(f, target); });
    if (near->layout == target) return *near;
    Val place = same_[static_cast<size_t>(v)];
    if (gathers_.is_gathered(place, near->layout, target)) local_.use = gathers_.count(place);
    Loc reader = std::exchange(local_.loc, local_.loc.marked(static_cast<uint64_t>(place)));
    Form made = local_.moved(*near, type(v), target);
    local_.use = 0, local_.loc = reader;
    forms.push_back(made);
    return made;
  }

  void emit(int i) {
    const GraphOp& op = op_at(i);
    local_.loc = op.loc.marked(static_cast<uint64_t>(op.out)), local_.reader = op.op->name;
    if (op.op == &scalar_leaf) {
      Val made = local_.graph.add_constant(op.scalar, type(op.out), op.loc);
      forms_[static_cast<size_t>(op.out)].push_back({Layout(mesh_), Monoid::add, {made}});
      return;
    }
    if (same_[static_cast<size_t>(op.out)] != op.out) return;
    if (op.op == &ops::shard) {  // a change of layout, where it is one
      Form made = form(from_.in(op)[0], plain(op.out));
      forms_[static_cast<size_t>(op.out)].push_back(std::move(made));
      return;
    }
    if (op.op == &ops::to_local || op.op == &ops::from_local) return pass_border(op);
    if (emit_by_position(i)) return;
    Division division = divide(i);
    if (!division.is_whole() && !ops_.fits(i, division)) {
      refuse(i, "what a worker holds is not what the op takes");
      division = Division{std::vector<std::optional<Reach>>(division.reaches.size())};
    }
    emit(i, division);
  }

  /// Sums of workers that leave a function of one worker and are then divided: gradients of
  /// parameters that are stored in parts. They are not made; their terms are.
  void find_sums() {
    for (const GraphOp& op : from_.ops) {
      if (op.op != &ops::from_local) continue;
      uint32_t along = 0;
      Layout parts = layout_of_parts(from_, op, mesh_);
      for (int t = 0; t < mesh_.count(); ++t)
        if (layouts_[static_cast<size_t>(op.out)][t] && !parts[t]) along |= 1u << t;
      SumOfWorkers sum = sum_of_workers(from_, mesh_, from_.in(op)[0], along, uses_);
      for (int i : sum.ops) is_left_out_[static_cast<size_t>(i)] = true;
      if (sum.axes) sums_.emplace(op.out, std::move(sum));
    }
  }

  /// Into a function of one worker, where the part is a value of its own, or out of it.
  void pass_border(const GraphOp& op) {
    Layout parts = layout_of_parts(from_, op, mesh_), own(mesh_);
    bool enters = op.op == &ops::to_local;
    auto sum = sums_.find(op.out);
    bool is_sum = sum != sums_.end();
    Form made = form(is_sum ? sum->second.operand : from_.in(op)[0], enters ? parts : own);
    made.layout = enters ? own : parts;
    if (is_sum) made.layout.partial = sum->second.axes;
    forms_[static_cast<size_t>(op.out)].push_back(std::move(made));
  }

  /// Ops whose elements depend on where they are.
  bool emit_by_position(int i) {
    const GraphOp& op = op_at(i);
    Layout target = plain(op.out);
    for (int t = 0; t < mesh_.count(); ++t)
      if (layouts_[static_cast<size_t>(op.out)].is_stored(t)) target[t] = {};
    if (!depends_on_position(op, target, type(op.out)->rank())) return false;
    std::vector<Val> in;
    for (Val v : from_.in(op)) in.push_back(form(v, Layout(mesh_)).parts[0]);
    std::optional<Val> made = add_by_position(local_, mesh_, op, type(op.out), target, in);
    if (made) forms_[static_cast<size_t>(op.out)].push_back({target, Monoid::add, {*made}});
    return made.has_value();
  }

  void refuse(int i, std::string reason) {
    if (!decisions_) return;
    const GraphOp& op = op_at(i);
    decisions_->push_back(
        {"shard", false, format("{} divided", op.op->name), std::move(reason), op.loc});
  }

  /// What axis t reaches from the layouts of the results.
  std::optional<Reach> from_results(int i, int t) {
    const GraphOp& op = op_at(i);
    for (int k = 0; k < op.outs; ++k) {
      const Layout& layout = layouts_[static_cast<size_t>(op.out + k)];
      if (!layout[t] || (layout.is_stored(t) && !keeps_places(*op.op))) continue;
      auto reach = links_.follow(i, op.ins + k, layout[t], mesh_[t].parts);
      if (reach && !reach->fold) return reach;
      refuse(i, format("its result {} is computed whole along '{}'",
                       to_text(mesh_, layout, type(op.out + k)->rank()), mesh_[t].name));
    }
    return {};
  }

  /// The fold that all operands divide along axis t.
  std::optional<Reach> from_operands(int i, int t) {
    const GraphOp& op = op_at(i);
    for (int k = 0; k < op.ins; ++k) {
      Digit digit = layouts_[static_cast<size_t>(from_.in(op)[static_cast<size_t>(k)])][t];
      if (!digit) continue;
      auto reach = links_.follow(i, k, digit, mesh_[t].parts);
      if (!reach || !reach->fold || (picks_from_blocks(op) && !pays(op, t))) continue;
      bool all = true;
      for (int j = 0; j < op.ins; ++j) {
        Digit wanted = reach->slots[static_cast<size_t>(j)];
        Val v = from_.in(op)[static_cast<size_t>(j)];
        all &= !wanted || layouts_[static_cast<size_t>(v)][t] == wanted;
      }
      if (all) return reach;
    }
    return {};
  }

  /// Whether elements that a gather picks are fewer than those that gathering the table would move.
  /// One that is divided in memory only is gathered where the result is divided.
  bool pays(const GraphOp& op, int t) const {
    Val table = from_.in(op)[0];
    auto elements = [&](Val v) {
      Layout layout = plain(v);
      layout[t] = {};
      return local_type(finest_, layout, type(v))->elements;
    };
    if (layouts_[static_cast<size_t>(table)].is_stored(t) && plain(op.out)[t]) return false;
    return 2 * elements(op.out) <= elements(table);
  }

  /// Whether the digits of `reach` leave room for those of other axes.
  bool has_room_in(int i, const Division& division, int t, const Reach& reach) const {
    for (int slot = 0; slot < links_.slots(i); ++slot) {
      Digit digit = reach.slots[static_cast<size_t>(slot)];
      if (!digit) continue;
      Layout layout = division.layout(mesh_, slot);
      if (!has_room(mesh_, layout, type(links_.value(i, slot))->shape, t, digit)) return false;
    }
    return true;
  }

  Division divide(int i) {
    Division division{std::vector<std::optional<Reach>>(static_cast<size_t>(mesh_.count()))};
    uint32_t partial = passed_on(i);
    bool is_sum = partial && op_at(i).ins > 1;
    for (int t = 0; t < mesh_.count(); ++t) {
      if (is_sum && partial >> t & 1) continue;
      std::optional<Reach> reach;
      bool folds = folds_first_[static_cast<size_t>(i)] >> t & 1 || picks_from_blocks(op_at(i));
      if (folds) reach = from_operands(i, t);
      if (!reach) reach = from_results(i, t);
      if (!reach) reach = from_operands(i, t);
      if (!reach) continue;
      std::optional<Monoid> fold = division.fold();
      bool agrees = !fold || !reach->fold || fold == reach->fold;
      if (!agrees || !has_room_in(i, division, t, *reach)) {
        refuse(i, format("'{}' divides what another axis divides", mesh_[t].name));
        continue;
      }
      division.reaches[static_cast<size_t>(t)] = std::move(reach);
      partial &= ~(1u << t);
    }
    division.kept = partial;
    return division;
  }

  /// The partial axes that stay partial in the result: of an operand that only this op reads, if
  /// the op is linear and its result is no larger.
  uint32_t passed_on(int i) {
    const GraphOp& op = op_at(i);
    // A pipeline is cut where its stages are, so there is no sum of partial values across a cut.
    // Without a cut the same sum has the same order.
    bool is_sum = (op.op == &ops::add || op.op == &ops::subtract) && !mesh_.is_part();
    if (op.op->family != Family::movement && op.op->family != Family::reduction && !is_sum)
      return 0;
    uint32_t partial = 0;
    for (int k = 0; k < op.ins; ++k) {
      Val v = from_.in(op)[static_cast<size_t>(k)];
      // Its form would be made here, and once more when the op is.
      if (gathers_.view(same_[static_cast<size_t>(v)]) >= 0) return 0;
      const Form& form = first_form(v);
      bool grows = type(v)->elements < 0 || type(v)->elements < type(op.out)->elements;
      bool folds_alike = op.op->family != Family::reduction || op.op->monoid == form.monoid;
      if (uses_[static_cast<size_t>(v)] != 1 || grows || !folds_alike) return 0;
      if (is_sum && (form.monoid != Monoid::add || (k > 0 && form.layout.partial != partial)))
        return 0;
      partial = form.layout.partial;
    }
    return partial;
  }

  /// Operand `slot` at one combination of parts.
  Val operand_at(const Form& form, int slot, const Division& division, const PartCounter& parts) {
    size_t place = 0;
    for (size_t k = 0; k < parts.axes.size(); ++k)
      if (division.kept >> parts.axes[k] & 1)
        place = place * static_cast<size_t>(parts.counts[k]) + static_cast<size_t>(parts.at[k]);
    Val v = form.parts[place];
    std::vector<std::pair<Digit, size_t>> taken;
    for (size_t k = 0; k < parts.axes.size(); ++k) {
      const auto& reach = division.reaches[static_cast<size_t>(parts.axes[k])];
      Digit digit = reach ? reach->slots[static_cast<size_t>(slot)] : Digit{};
      if (digit) taken.push_back({digit, k});
    }
    // Inner digits first: then those in front of them are where they were.
    std::ranges::sort(taken, std::greater(), [](auto& t) { return t.first.radix; });
    for (auto& [digit, k] : taken) {
      digit.radix = local_radix(mesh_, form.layout, parts.axes[k], digit);
      v = local_.take_part(v, digit, parts.counts[k], parts.at[k]);
    }
    return v;
  }

  static bool is_narrow(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

  /// Whether the op adds or multiplies narrow floats, or passes on terms of such a fold.
  bool makes_wide_terms(int i, const Division& division, const std::vector<Form>& operands) const {
    const GraphOp& op = op_at(i);
    if (!is_narrow(type(op.out)->dtype)) return false;
    std::optional<Monoid> fold = division.fold();
    if (fold == Monoid::add || fold == Monoid::mul) return true;
    return division.kept && local_.type(operands[0].parts[0])->dtype == DType::f32;
  }

  /// The operands in f32, and attributes that say so.
  const Attrs* widened(const GraphOp& op, const Attrs* attrs, std::vector<Form>& operands) {
    for (Form& operand : operands)
      for (Val& v : operand.parts)
        if (is_narrow(local_.type(v)->dtype)) v = local_.as_type(v, DType::f32);
    if (!attrs) return attrs;
    const AttrKind& kind = *op.op->attrs;
    AttrBuffer made(kind, attrs->data);
    for (const Field& f : list_fields(kind, made.data).items)
      if (f.kind == FieldKind::dtype && (!f.set || *f.set) && is_narrow(*static_cast<DType*>(f.at)))
        *static_cast<DType*>(f.at) = DType::f32;
    return intern(kind, made.data);
  }

  void emit(int i, const Division& division) {
    const GraphOp& op = op_at(i);
    std::vector<Form> operands, results;
    for (int k = 0; k < op.ins; ++k) {
      Layout layout = division.layout(mesh_, k);
      layout.partial = division.kept;
      operands.push_back(form(from_.in(op)[static_cast<size_t>(k)], layout));
    }
    Monoid monoid = division.fold().value_or(Monoid::add);
    if (division.kept) monoid = operands[0].monoid;
    for (int k = 0; k < op.outs; ++k) {
      results.push_back({division.layout(mesh_, op.ins + k), monoid, {}});
      results.back().layout.partial = division.folded() | division.kept;
    }
    std::vector<TypeRef> types = ops_.types(i, division, mesh_);
    const Attrs* attrs = ops_.attrs(i, division, mesh_, types);
    if (is_indexed_in_blocks(op, division)) {
      attrs = count_from_blocks(local_, mesh_, op, *type(from_.in(op)[0]), division, operands);
      if (division.fold() && picks_from_blocks(op))
        return emit_picks(op, attrs, division, operands);
    }
    if (makes_wide_terms(i, division, operands)) attrs = widened(op, attrs, operands);
    folds_ += division.fold().has_value();
    PartCounter parts(mesh_, division.folded() | division.kept);
    do {
      std::vector<Val> given;
      for (int k = 0; k < op.ins; ++k)
        given.push_back(operand_at(operands[static_cast<size_t>(k)], k, division, parts));
      Val first = local_.add(*op.op, attrs, given);
      for (int k = 0; k < op.outs; ++k) results[static_cast<size_t>(k)].parts.push_back(first + k);
    } while (parts.next());
    for (int k = 0; k < op.outs; ++k)
      forms_[static_cast<size_t>(op.out + k)].push_back(std::move(results[static_cast<size_t>(k)]));
  }

  void emit_picks(const GraphOp& op, const Attrs* attrs, const Division& division,
                  const std::vector<Form>& operands) {
    std::vector<Val> in;
    for (const Form& operand : operands) in.push_back(operand.parts[0]);
    Form picked{division.layout(mesh_, op.ins), Monoid::add, {local_.add(*op.op, attrs, in)}};
    forms_[static_cast<size_t>(op.out)].push_back(joined_picks(
        local_, mesh_, std::move(picked), division.folded(), type(op.out), plain(op.out)));
  }

  const Graph& from_;
  const Given& given_;
  const Mesh& mesh_;
  const Mesh finest_;
  const std::vector<Layout>& layouts_;
  const std::vector<uint32_t>& folds_first_;
  Links& links_;
  Decisions* decisions_;
  LocalOps ops_;
  LocalGraph local_;
  const std::vector<Val> same_;  // values_of_copies
  Gathers gathers_;
  std::vector<std::vector<Form>> forms_;  // of every value; the first is the one it was made in
  std::vector<int> uses_;
  std::map<Val, SumOfWorkers> sums_;  // by the result of a from_local
  std::vector<bool> is_left_out_;     // by op
  int folds_ = 0;
};

}  // namespace

Partitioned partition(const Graph& graph, const Mesh& mesh, const Layouts& layouts, Links& links,
                      Decisions* decisions, const Given& given) {
  return Partition(graph, mesh, layouts, links, decisions, given).run();
}

}  // namespace tn::sharding
