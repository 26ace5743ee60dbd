#include "model/op_blocks.h"

#include <cstring>

#include "base/error.h"
#include "ir/emit.h"
#include "tenon/model_blocks.h"

namespace tn::model {
namespace {

/// Attributes with their defaults, and what a text says.
std::vector<uint64_t> parsed(const OpDef& op, std::string_view text) {
  std::vector<uint64_t> space(op.attrs->size / 8 + 2);
  op.attrs->init(space.data());
  parse_attrs(*op.attrs, space.data(), text, op.name);
  return space;
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

std::vector<Terminal> op_terminals(const OpDef& op, int count) {
  // One operand, computed element by element: what is known of either side is known of the other.
  bool same = op.is_elementwise() && op.args.size() == 1;
  std::string shape = same ? "..." : "*";
  std::vector<Terminal> terminals;
  for (const ArgDef& arg : op.args) {
    std::string name = op.args.size() == 1 && !arg.list ? "input" : std::string(arg.name);
    if (!arg.list) {
      terminals.push_back({.name = name, .shape = shape, .optional = arg.optional});
      continue;
    }
    if (count < 1) fail("{}: say how many tensors it joins", block_name(op.name));
    for (int i = 0; i < count; ++i)
      terminals.push_back({.name = format("input{}", i), .shape = shape});
  }
  std::vector<std::string> results(op.results.begin(), op.results.end());
  if (results.empty()) results = {"output"};
  if (results[0] == "*")
    unsupported(Hint{"write a block of your own"}, "{}: how many results it has is not known",
                block_name(op.name));
  for (std::string& name : results)
    terminals.push_back({.name = std::move(name), .role = Role::output, .shape = shape});
  return terminals;
}

Block op_block(std::string_view name, std::string_view attributes, int count) {
  const OpDef* op = find_op(name);
  if (!op || !op->surface) fail("op_block: no op '{}'", name);
  BlockDef def{.kind = block_name(op->name),
               .terminals = op_terminals(*op, count),
               .settings = std::string(attributes)};
  def.compute = [op, given = parsed(*op, attributes)](const BlockCall& call) {
    std::vector<uint64_t> attrs = given;
    return call_with(*op, call.in, attrs.data());
  };
  return def;
}

}  // namespace tn::model
