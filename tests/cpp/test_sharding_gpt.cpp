// The collectives of a transformer's training step under the usual layouts.
#include <doctest/doctest.h>

#include "fuzz_check.h"
#include "gpt_step.h"
#include "ir/rewrite.h"
#include "ir/trace.h"
#include "run_workers.h"
#include "sharding/traffic.h"
#include "tenon/flat.h"
#include "tenon/tenon.h"

using namespace tn;
using sharding::Constraint;
using sharding::Priority;

namespace {

/// Inputs 0, …: parameters, moments, moments.
void constrain(const Gpt& gpt, const Graph& graph, const Mesh& mesh, std::string_view name,
               std::string_view layout, Priority priority, std::vector<Constraint>& out) {
  auto names = gpt.names();
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i].ends_with(name))
      out.push_back({static_cast<Val>(i), parse_layout(layout, mesh, *graph.types[i]), priority});
}

std::vector<Constraint> divide_data(const Gpt& gpt, const Graph& graph, const Mesh& mesh) {
  std::vector<Constraint> list;
  for (Val v : {gpt.tokens(), gpt.tokens() + 1})
    list.push_back({v, parse_layout("@[data,-]", mesh, *graph.types[static_cast<size_t>(v)])});
  return list;
}

/// What blocks are added to: sums with the type of the embedded tokens, forwards.
std::vector<Val> residuals(const Gpt& gpt, const Graph& graph) {
  TypeRef type = intern(DType::f32, {gpt.rows, gpt.length, gpt.width});
  std::vector<Val> list;
  for (const GraphOp& op : graph.ops)
    if (op.op->name == "add" && graph.types[static_cast<size_t>(op.out)] == type)
      if (static_cast<int64_t>(list.size()) < 2 * gpt.layers) list.push_back(op.out);
  return list;
}

std::string counts(const Graph& graph) {
  std::string text;
  for (std::string_view name : {"all_sum", "all_gather", "reduce_scatter", "all_to_all"})
    if (int n = count_ops(graph, name))
      text += format("{}{} {}", text.empty() ? "" : ", ", n, name);
  return text;
}

/// What a worker gathers, in bytes of whole values.
int64_t gathered_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const sharding::Traffic& one : sharding::traffic_of(graph))
    if (one.name == "all_gather") bytes += one.bytes;
  return bytes;
}

}  // namespace

TEST_CASE("collectives of a training step") {
  Gpt gpt{2, 16, 4, 24, 8, 4};
  int parameters = static_cast<int>(gpt.names().size());
  Graph graph = gpt.step();
  Mesh mesh = parse_mesh("data=4, model=2");
  std::vector<Constraint> data = divide_data(gpt, graph, mesh), stored = data, tensor = data;
  for (const std::string& name : gpt.names()) {
    bool is_gain = name.ends_with("norm1") || name.ends_with("norm2");
    bool has_columns = name.ends_with("qkv") || name.ends_with("up");
    std::string_view layout = is_gain ? "@[data]" : has_columns ? "@[-,data]" : "@[data,-]";
    constrain(gpt, graph, mesh, name, layout, Priority::stored, stored);
  }
  for (std::string_view name : {"out", "down"})
    constrain(gpt, graph, mesh, name, "@[-,model]", Priority::parameter, tensor);
  std::vector<Constraint> both = tensor;
  both.insert(both.end(), stored.begin(), stored.end());
  auto counted = [&](const std::vector<Constraint>& constraints) {
    return counts(sharding::shard(graph, mesh, constraints).local.graph);
  };
  // One sum for every gradient and one for the loss.
  CHECK(counted(data) == format("{} all_sum", parameters + 1));
  // Parameters are gathered forwards and backwards, gradients scattered. Between the uses of the
  // last `down` only the embedding is gathered, which is smaller: one gather serves both.
  CHECK(counted(stored) ==
        format("1 all_sum, {} all_gather, {} reduce_scatter", 2 * parameters - 1, parameters));
  int64_t bytes = 0, down = 4 * gpt.width * 4 * gpt.width;
  for (int i = 0; i < parameters; ++i) bytes += graph.types[static_cast<size_t>(i)]->bytes();
  CHECK(gathered_bytes(sharding::shard(graph, mesh, stored).local.graph) == 2 * bytes - down);
  // Two sums of activations a layer, forwards and backwards.
  CHECK(counted(tensor) == format("{} all_sum", parameters + 1 + 4 * gpt.layers));
  // Residuals divided by positions: a sum becomes a scatter, and a gather in front of the next
  // product. Norms and their gains keep small sums.
  std::vector<Constraint> sequence = tensor;
  for (Constraint& c : sequence) c.priority = Priority::data;
  for (Val v : residuals(gpt, graph)) {
    TypeRef type = graph.types[static_cast<size_t>(v)];
    sequence.push_back({v, parse_layout("@[data,model,-]", mesh, *type), Priority::parameter});
  }
  int64_t l = gpt.layers;
  CHECK(counted(sequence) == format("{} all_sum, {} all_gather, {} reduce_scatter",
                                    parameters + 1 + 2 * l + 2, 4 * l, 4 * l));
  CHECK(counted(both) == format("{} all_sum, {} all_gather, {} reduce_scatter", 1 + 4 * gpt.layers,
                                2 * parameters - 1, parameters));
}

TEST_CASE("a training step on any number of workers gives the same bits") {
  Gpt gpt{1, 8, 2, 12, 8, 4};
  Graph graph = gpt.step();
  Tensors in = random_inputs(graph, 3), expected;
  for (Val v : {gpt.tokens(), gpt.tokens() + 1})
    in[static_cast<size_t>(v)] = abs(in[static_cast<size_t>(v)]);
  for (size_t i = 2 * gpt.names().size(); i < 3 * gpt.names().size(); ++i) in[i] = abs(in[i]);
  for (std::string_view text :
       {"data=1:8, model=1:2", "data=2:8, model=1:2", "data=4:8, model=2", "data=8, model=2"}) {
    Mesh mesh = parse_mesh(text);
    std::vector<Constraint> constraints = divide_data(gpt, graph, mesh);
    constrain(gpt, graph, mesh, "down", "@[-,model]", Priority::parameter, constraints);
    constrain(gpt, graph, mesh, "out", "@[-,model]", Priority::parameter, constraints);
    constrain(gpt, graph, mesh, "up", "@[-,data]", Priority::stored, constraints);
    Val residual = residuals(gpt, graph)[1];
    Layout positions =
        parse_layout("@[data,model,-]", mesh, *graph.types[static_cast<size_t>(residual)]);
    constraints.push_back({residual, positions, Priority::parameter});
    Tensors made = run_partitioned(sharding::shard(graph, mesh, constraints).local, mesh, in);
    if (expected.empty()) expected = made;
    CHECK_MESSAGE(first_difference(expected, made).empty(), text);
  }
  Tensor loss = values_eagerly(graph, in)[0];
  CHECK(expected[0].item<float>() == doctest::Approx(loss.item<float>()));
}
