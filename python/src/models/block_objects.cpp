// The blocks of logical models: ops with what Python gives them, and layers.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "calls/call_spec.h"
#include "model/op_blocks.h"

namespace tn::python {
namespace {

using namespace model;
/// The block of an op. `count` is the number of tensors in a list.
Block make_op_block(const std::string& name, int count, const std::string& text, nb::tuple args,
                    nb::dict keywords) {
  const OpDef* op = find_op(name);
  invariant(op, "no op '{}'", name);
  GivenArguments given = read_given(spec_of(*op), args, keywords);
  return op_block(*op, {given.attrs, std::move(given.operands), count, text});
}

/// Blocks by name, with aliases: {"Concat": ("concat", it takes a list, it gives a list)}.
nb::dict list_op_blocks() {
  nb::dict blocks;
  auto add = [&](std::string_view name, const OpDef& op) {
    std::string called = block_name(name);
    bool gives = op.results.size() > 0 && op.results[0] == "*";
    if (!blocks.contains(called.c_str()))
      blocks[called.c_str()] = nb::make_tuple(std::string(op.name), op.has_list(), gives);
  };
  for (const OpDef* op : surface_ops()) add(op->name, *op);
  for (const OpDef* op : surface_ops())
    for (std::string_view alias : op->rules->aliases) add(alias, *op);
  return blocks;
}

}  // namespace

void bind_model_blocks(nb::module_& m) {
  m.def("_op_block", make_op_block, users_call);
  m.def("_op_blocks", list_op_blocks);
  m.def("_block_name", [](const std::string& op) { return block_name(op); });
}

}  // namespace tn::python
