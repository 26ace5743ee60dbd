#include "run_passes.h"

#include "compiler/evaluate.h"

namespace tn {

static Bound bound(const Tensor& x) {
  x.eval();
  Buffer* buffer = slot_of(x).data.load();
  buffer->refs.fetch_add(1);
  return {BufferRef::adopt_reference(buffer), slot_of(x).offset};
}

PassContext known_context(const Graph& graph, const Tensors& in) {
  PassContext context{.evaluate = evaluate};
  for (size_t i = 0; i < in.size(); ++i)
    if (graph.input_names[i].starts_with('c')) context.constants.push_back(bound(in[i]));
  return context;
}

std::vector<std::string> run_with(const Graph& after, const PassContext& context,
                                  const Tensors& in) {
  std::vector<Bound> inputs;
  for (int i = 0; i < context.first_constant(after); ++i)
    inputs.push_back(bound(in[static_cast<size_t>(i)]));
  inputs.insert(inputs.end(), context.constants.begin(), context.constants.end());
  std::vector<Bound> outputs = evaluate(after, inputs);
  std::vector<std::string> bytes;
  for (size_t i = 0; i < outputs.size(); ++i) {
    TypeRef type = after.types[static_cast<size_t>(after.outputs[i])];
    bytes.emplace_back(outputs[i].buffer.data<const char>() + outputs[i].offset,
                       static_cast<size_t>(type->bytes()));
  }
  return bytes;
}

}  // namespace tn
