#include "fuzz_check.h"

#include "base/error.h"
#include "compiler/compile_graph.h"
#include "random_kernel.h"
#include "run_graph.h"
#include "runtime/threads.h"

namespace tn {

Tensors run_interpreted(const Graph& graph, const Tensors& in) {
  return run_plan(*compile(graph, {}), graph, in);
}

namespace {

struct WithThreads {
  explicit WithThreads(int count) {
    if (count > 0) set_num_threads(count);
  }
  ~WithThreads() { set_num_threads(before); }
  int before = num_threads();
};

}  // namespace

static Way with_options(std::string name, CompileOptions options, int threads = 0) {
  auto run = [options, threads](const Graph& graph, const Tensors& in) {
    WithThreads count(threads);
    return run_plan(*compile(graph, options), graph, in);
  };
  return {std::move(name), run};
}

std::vector<Way> ways() {
  return {{"op by op", values_eagerly},
          with_options("4 threads", {}, 4),
          with_options("effort 1", {.effort = Effort::e1}),
          with_options("effort 2, 1 thread", {.effort = Effort::e2}, 1),
          with_options("effort 2, 16 threads", {.effort = Effort::e2}, 16),
          with_options("effort 2 without fusion", {.effort = Effort::e2, .off = {"fuse"}})};
}

std::string first_difference(const Tensors& expected, const Tensors& actual) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const Tensor &a = expected[i], &b = actual[i];
    int64_t at = loop::first_difference(a.data(), b.data(), a.size(), a.dtype());
    if (at < 0) continue;
    auto element = [&](const Tensor& x) {
      TypeRef one = intern(Type{real_of(x.dtype()), {}});
      int64_t offset = slot_of(x).offset + at * one->bytes();
      Buffer* buffer = slot_of(x).data.load();
      buffer->refs.fetch_add(1);
      return make_data(BufferRef::adopt_reference(buffer), offset, one).to_string();
    };
    return format("output {}: element {} of {} is {}, not {}", i, at, *type_of(a), element(b),
                  element(a));
  }
  return "";
}

namespace {

struct Example {
  Graph graph;
  Tensors in;
};

std::string difference(const Way& way, const Example& e) {
  Tensors expected = run_interpreted(e.graph, e.in);
  try {
    return first_difference(expected, way.run(e.graph, e.in));
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// The part of an example that computes `outputs`. The value `cut`, if there is one, becomes an
/// input.
Example part_of(const Example& e, const std::vector<Val>& outputs, Val cut = kNoVal) {
  const Graph& graph = e.graph;
  std::vector<bool> wanted(graph.types.size(), false);
  auto want = [&](Val v) { wanted[static_cast<size_t>(v)] = true; };
  auto is_needed = [&](const GraphOp& op) {
    bool needed = false;
    for (Val v = op.out; v < op.out + op.outs; ++v)
      needed |= v != cut && wanted[static_cast<size_t>(v)];
    return needed;
  };
  for (Val v : outputs) want(v);
  for (size_t i = graph.ops.size(); i-- > 0;)
    if (is_needed(graph.ops[i]))
      for (Val v : graph.in(graph.ops[i])) want(v);
  Example part;
  std::vector<Val> now(graph.types.size(), kNoVal);
  auto add_input = [&](Val v, const Tensor& value) {
    now[static_cast<size_t>(v)] =
        part.graph.add_input(format("x{}", part.in.size()), graph.types[static_cast<size_t>(v)]);
    part.in.push_back(value);
  };
  for (Val v = 0; v < graph.inputs(); ++v)
    if (wanted[static_cast<size_t>(v)]) add_input(v, e.in[static_cast<size_t>(v)]);
  if (cut != kNoVal) {
    Example before = part_of(e, {cut});
    add_input(cut, run_interpreted(before.graph, before.in)[0]);
  }
  for (const GraphOp& op : graph.ops) {
    if (!is_needed(op)) continue;
    std::vector<Val> in;
    for (Val v : graph.in(op)) in.push_back(now[static_cast<size_t>(v)]);
    Val out = op.op == &scalar_leaf
                  ? part.graph.add_constant(op.scalar, graph.types[static_cast<size_t>(op.out)])
                  : part.graph.add(*op.op, op.attrs, in, graph.out_types(op));
    for (int32_t k = 0; k < op.outs; ++k)
      if (op.out + k != cut) now[static_cast<size_t>(op.out + k)] = out + k;
  }
  for (Val v : outputs) part.graph.outputs.push_back(now[static_cast<size_t>(v)]);
  return part;
}

/// The first value that differs alone; then, as long as it still does, ops are replaced by what
/// they computed.
Example shrunk(const Way& way, Example e) {
  auto fails = [&](const Example& candidate) {
    try {
      return !difference(way, candidate).empty();
    } catch (const std::exception&) {
      return false;  // the interpreter refuses it
    }
  };
  for (Val v = e.graph.inputs(); v < e.graph.values(); ++v) {
    Example one = part_of(e, {v});
    if (!fails(one)) continue;
    e = std::move(one);
    break;
  }
  for (Val v = e.graph.values() - 1; v >= e.graph.inputs(); --v) {
    if (v == e.graph.outputs[0]) continue;
    Example less = part_of(e, e.graph.outputs, v);
    if (less.graph.ops.size() >= e.graph.ops.size() || !fails(less)) continue;
    e = std::move(less);
    v = e.graph.values();
  }
  return e;
}

}  // namespace

std::string failure_of(const Way& way, const Graph& graph, const Tensors& in) {
  if (difference(way, {graph, in}).empty()) return "";
  Example e = shrunk(way, {graph, in});
  std::string values;
  for (const Tensor& x : e.in)
    if (x.size() <= 64) values += x.to_string() + "\n";
  return format("{}: {}\n{}{}", way.name, difference(way, e), to_text(e.graph), values);
}

}  // namespace tn
