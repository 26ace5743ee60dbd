#include "observe/op_events.h"

#include <cctype>
#include <unordered_map>

#include "ir/emit.h"
#include "observe/instruction_log.h"

namespace tn {

namespace {

using CalledNames = std::unordered_map<const OpDef*, std::string_view>;

/// Found by calling every operator that is a name for other ops.
CalledNames operator_names() {
  CalledNames names;
  TypeRef matrix = intern(DType::f32, {2, 2});
  for (const OpDef* op : surface_ops()) {
    if (op->symbol.empty() || op->recorded || op->args.size() != 2) continue;
    Tensors made = op->rules->body(nullptr, {make_param(matrix), make_param(matrix)});
    names.emplace(made[0].node()->op, op->name);
  }
  return names;
}

const CalledNames& all_operator_names() {
  static const CalledNames names = operator_names();
  return names;
}

OpList::Op listed(const OpDef& op, int operands, Loc loc) {
  std::string_view name = called_name(op);
  return {name, operands, loc.place(), log_line(name, operands)};
}

}  // namespace

std::string_view called_name(const OpDef& op) {
  const CalledNames& names = all_operator_names();
  auto at = names.find(&op);
  return at == names.end() ? op.name : at->second;
}

std::string called_names(std::string_view text) {
  static const auto called = [] {
    std::unordered_map<std::string_view, std::string_view> names;
    for (auto [op, name] : all_operator_names()) names.emplace(op->name, name);
    return names;
  }();
  auto is_of_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  std::string all;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_of_name(text[end])) ++end;
    std::string_view name = text.substr(at, end - at);
    auto found = called.find(name);
    all += found == called.end() ? name : found->second;
    if (end < text.size()) all += text[end++];
    at = end;
  }
  return all;
}

OpListRef op_list(const Walk& walk) {
  std::vector<OpList::Op> ops;
  for (const Node* node : walk.nodes) ops.push_back(listed(*node->op, node->ins, node->loc));
  return make_op_list(std::move(ops));
}

OpListRef op_list(const Graph& graph) {
  std::vector<OpList::Op> ops;
  for (const GraphOp& op : graph.ops)
    if (op.op != &scalar_leaf) ops.push_back(listed(*op.op, op.ins, op.loc));
  return make_op_list(std::move(ops));
}

}  // namespace tn
