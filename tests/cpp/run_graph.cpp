#include "run_graph.h"

#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <random>
#include <sstream>

#include "base/error.h"
#include "compiler/compile_graph.h"
#include "ir/trace.h"
#include "tenon/tenon.h"

namespace tn {

Graph traced(const Function& f, const std::vector<Shape>& shapes) {
  Trace trace("compile", Trace::Values::unknown);
  Tensors params;
  for (const Shape& shape : shapes) params.push_back(make_param(intern(DType::f32, shape)));
  Tensors out = f(params);
  trace.end();
  return capture(params, out).graph;
}

Tensor random_tensor(TypeRef type, uint64_t seed, double lo, double hi) {
  std::mt19937_64 source(seed);
  std::uniform_real_distribution<double> draw(lo, hi);
  auto values = [&] {
    std::vector<double> list(static_cast<size_t>(type->elements));
    for (double& v : list) v = draw(source);
    return array(list, type->shape);
  };
  Tensor x = values();
  if (is_complex(type->dtype)) x = make_complex(x, values());
  if (type->dtype == DType::b1) x = x > 0;
  return astype(x, type->dtype).eval();
}

Tensors random_inputs(const Graph& graph, uint64_t seed) {
  Tensors in;
  for (Val v = 0; v < graph.inputs(); ++v)
    in.push_back(
        random_tensor(graph.types[static_cast<size_t>(v)], seed + static_cast<uint64_t>(v)));
  return in;
}

std::string bytes_of(const Tensor& x) {
  const void* at = x.data();
  return {static_cast<const char*>(at), static_cast<size_t>(x.bytes())};
}

std::vector<std::string> bytes_of(const Tensors& list) {
  std::vector<std::string> bytes;
  for (const Tensor& x : list) bytes.push_back(bytes_of(x));
  return bytes;
}

Tensors run_plan(const Plan& plan, const Graph& graph, const Tensors& in) {
  std::vector<Bound> inputs, outputs(graph.outputs.size());
  for (const Tensor& x : in) {
    x.eval();
    Buffer* buffer = slot_of(x).data.load();
    buffer->refs.fetch_add(1);
    inputs.push_back({BufferRef::adopt_reference(buffer), slot_of(x).offset});
  }
  run(plan, inputs, nullptr, outputs);
  Tensors out;
  for (size_t i = 0; i < outputs.size(); ++i)
    out.push_back(make_data(std::move(outputs[i].buffer), outputs[i].offset,
                            graph.types[static_cast<size_t>(graph.outputs[i])]));
  return out;
}

std::vector<std::string> run_compiled(const Graph& graph, const Tensors& in) {
  return bytes_of(run_plan(*compile(graph, {}), graph, in));
}

std::vector<std::string> run_replayed(const Graph& graph, const Tensors& in) {
  Tensors out = replay(graph, in);
  eval(out);
  return bytes_of(out);
}

Tensors values_eagerly(const Graph& graph, const Tensors& in) {
  Tensors values = in;
  for (const GraphOp& op : graph.ops) {
    if (op.op == &scalar_leaf) {
      values.push_back(
          make_scalar(op.scalar, graph.types[static_cast<size_t>(op.out)]->dtype, false));
      continue;
    }
    Tensors operands;
    for (Val v : graph.in(op)) operands.push_back(values[static_cast<size_t>(v)]);
    for (Tensor& x : emit_all(*op.op, operands, op.attr_data())) values.push_back(x.eval());
  }
  Tensors out;
  for (Val v : graph.outputs) out.push_back(values[static_cast<size_t>(v)]);
  return out;
}

std::vector<std::string> run_eagerly(const Graph& graph, const Tensors& in) {
  return bytes_of(values_eagerly(graph, in));
}

namespace {

std::string_view trimmed(std::string_view s) {
  size_t first = s.find_first_not_of(" ,\r");
  if (first == s.npos) return {};
  return s.substr(first, s.find_last_not_of(" ,\r") - first + 1);
}

/// Reads "%a, %b" and returns the rest.
std::string_view take_names(std::string_view s, std::vector<std::string>& names) {
  for (s = trimmed(s); s.starts_with('%'); s = trimmed(s)) {
    size_t end = s.find_first_of(" ,:)=");
    names.emplace_back(s.substr(1, end == s.npos ? end : end - 1));
    s.remove_prefix(end == s.npos ? s.size() : end);
  }
  return s;
}

using Named = std::map<std::string, Tensor>;

void read_header(std::string_view line, Named& values) {
  line.remove_prefix(line.find('(') + 1);
  for (line = trimmed(line); line.starts_with('%'); line = trimmed(line)) {
    size_t colon = line.find(':');
    std::string name(line.substr(1, colon - 1));
    line = trimmed(line.substr(colon + 1));
    std::optional<Type> type = parse_type(line);
    REQUIRE(type.has_value());
    values[name] = make_param(intern(*type));
  }
}

Tensors call_line(std::string_view line, Named& values) {
  std::vector<std::string> names, operands;
  std::string_view rest = take_names(line, names);
  rest = trimmed(rest.substr(1));  // "="
  std::string_view name = rest.substr(0, rest.find(' '));
  const OpDef* op = find_op(name);
  if (!op) fail("there is no op '{}'", name);
  rest = take_names(rest.substr(name.size()), operands);
  std::string_view attrs;
  if (rest.starts_with('{')) attrs = rest.substr(1, rest.rfind('}') - 1);
  Tensors in;
  for (const std::string& operand : operands) in.push_back(values.at(operand));
  while (!op->has_list() && static_cast<int>(in.size()) < op->args.size()) in.emplace_back();
  alignas(16) char data[2048];
  op->attrs->init(data);
  parse_attrs(*op->attrs, data, attrs, op->name);
  Tensors out = call_with(*op, in, data);
  for (size_t i = 0; i < names.size() && i < out.size(); ++i) values[names[i]] = out[i];
  return out;
}

}  // namespace

Tensors call_text(std::string_view text) {
  Named values;
  Tensors last;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::string_view at = trimmed(line);
    if (at.starts_with("func")) read_header(at, values);
    if (at.starts_with('%')) last = call_line(at, values);
  }
  return last;
}

}  // namespace tn
