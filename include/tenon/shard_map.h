#pragma once
// shard_map: a function written for one worker's part of its arguments, run on every worker of a
// mesh. Workers exchange data by collectives along axes of the mesh.
//
//     auto mean = tn::shard_map(
//         [](tn::Tensor x) {
//           return tn::distributed::all_sum(tn::sum(x), tn::distributed::axis("data")) / 8;
//         },
//         mesh, {"data"}, {tn::ShardSpec()});
#include "tenon/mesh.h"
#include "tenon/vmap.h"

namespace tn {

/// A layout for each argument or result.
using ShardSpecs = std::vector<ShardSpec>;

namespace flat {

/// Calls `f` once, with the types of the parts that a worker holds of `args`. What it records runs
/// on every worker. `in_specs` are by tensor; `out_specs` is called once the results are known.
Tensors call_on_workers(const Function& f, const Tensors& args, const Mesh& mesh,
                        const ShardSpecs& in_specs, const Callback<ShardSpecs()>& out_specs);

}  // namespace flat

namespace typed {

/// One layout a tensor, from one layout a tree of `counts` tensors each.
ShardSpecs specs_by_tensor(const ShardSpecs& specs, const std::vector<size_t>& counts,
                           std::string_view what);

template <class F>
struct OnWorkers : CallableAs<OnWorkers<F>, F> {
  F f;
  Mesh mesh;
  ShardSpecs in_specs, out_specs;
  std::source_location place;

  OnWorkers(F function, Mesh grid, ShardSpecs in, ShardSpecs out, std::source_location at)
      : f(std::move(function)),
        mesh(std::move(grid)),
        in_specs(std::move(in)),
        out_specs(std::move(out)),
        place(at) {}

  template <class... A>
  auto call(const std::source_location& at, A&&... args) const {
    check_callable<F, Value<A>...>();
    flat::Place here(at);
    Run<F, Value<A>...> run("shard_map", f, std::forward<A>(args)...);
    std::vector<size_t> counts;
    for (size_t i = 0; i < sizeof...(A); ++i)
      counts.push_back(run.in.first[i + 1] - run.in.first[i]);
    Tensors made = flat::call_on_workers(
        run.function(), run.in.tensors, mesh, specs_by_tensor(in_specs, counts, "arguments"),
        [&] { return specs_by_tensor(out_specs, counts_of(*run.out), "results"); });
    return run.result(std::move(made));
  }
};

}  // namespace typed

/// `f` on the part of each argument that a worker of the mesh holds, run on every worker. There is
/// a layout for each argument, and for each element of a tuple that `f` returns; it holds for all
/// tensors in it. A result that an axis does not divide must be equal on all workers along it.
template <typed::IsFunction F>
auto shard_map(F f, const Mesh& mesh, ShardSpecs in_specs, ShardSpecs out_specs,
               std::source_location place = std::source_location::current()) {
  return typed::OnWorkers<F>(std::move(f), mesh, std::move(in_specs), std::move(out_specs), place);
}

}  // namespace tn
