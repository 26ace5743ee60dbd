// Explicit collectives: each function records an op of src/ops/collectives.cpp, except in a group
// of one worker.
#include "tenon/distributed.h"

#include "base/error.h"
#include "ir/emit.h"
#include "ir/place.h"
#include "ir/trace.h"
#include "mesh/shard_map.h"
#include "ops/collectives.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/mesh.h"
#include "tenon/ops.h"
#include "workers/worker_watch.h"
#include "workers/world.h"

namespace tn::distributed {
namespace {

void check_not_on_mesh(std::string_view op, const Tensor& x, const Group& group) {
  if (group.size() == 1 || mesh::mesh_of_shard_map() || !is_mesh(x.device())) return;
  fail(Hint{"x.sum() and gradients are already those of all workers; x.local is this worker's "
            "block, and device=\"cpu\" makes a tensor that each worker has for itself",
            "sum(x) and gradients are already those of all workers; blocks(x)[0] is this worker's "
            "block, and a DeviceScope of the CPU makes tensors that each worker has for itself"},
       "{}: a tensor on a mesh is one tensor, which all workers hold together: {}", op,
       *type_of(x));
}

/// What a sum over workers adds: of bool how many, as the sum of one tensor does.
Tensor terms_of(std::string_view op, const Tensor& x, const Group& group) {
  check_not_on_mesh(op, x, group);
  return x.dtype() == DType::b1 ? cast_to(x, DType::i64) : x;
}

/// The numbers of each group count what it is asked for.
void number(Node& node) {
  const auto& group = *reinterpret_cast<const ops::GroupAttrs*>(node.attrs->data);  // the first
  if (group.workers == 1 || Trace::tracing() || mesh::mesh_of_shard_map()) return;
  if (workers::Transport* known = workers::find_group(group.mesh_axis))
    node.loc = node.loc.marked(known->asked.recorded++);
}

[[maybe_unused]] const bool is_installed = [] {
  workers::install_kernels();
  number_meeting = number;
  return true;
}();

Tensor all_extreme(const Tensor& x, const Group& group, ops::AllFold mode) {
  std::string_view name = mode == ops::AllFold::max ? "all_max" : "all_min";
  if (is_complex(x.dtype())) fail("{}: complex numbers have no order: {}", name, *type_of(x));
  check_not_on_mesh(name, x, group);
  if (group.size() == 1) return x;
  return emit(ops::all_fold, {x}, ops::AllFoldAttrs{intern(group.name()), group.size(), mode});
}

/// The parts of `x` along axis 0 belong to the workers.
ops::DigitAttrs rows_of(const Group& group) {
  return {.mesh_axis = intern(group.name()), .workers = group.size(), .axis = Axis(0)};
}

void check_rows(std::string_view op, const Tensor& x, const Group& group) {
  if (x.rank() == 0 || x.dim(0) % group.size() != 0)
    fail("{}: {} workers do not divide axis 0: {}", op, group.size(), *type_of(x));
}

/// Runs a message now, or in a traced function after the effects before it. `done` follows.
Tensors perform_message(const OpDef& op, Tensors in, const void* attrs, size_t done) {
  if (const Trace* trace = Trace::tracing()) {
    if (trace->anchor.defined()) in.push_back(trace->anchor);
    if (!trace->effects.empty()) in.push_back(trace->effects.back());
  }
  Tensors out = emit_all(op, in, attrs);
  Trace::perform(out[done]);
  return out;
}

void check_peer(std::string_view op, int peer, const Group& group) {
  if (peer < 0 || peer >= group.size())
    fail("{}: there is no worker {}: the group has {}", op, peer, group.size());
  if (peer == group.rank()) fail("{}: worker {} cannot send to or receive from itself", op, peer);
}

}  // namespace

Group::Group(std::string name) : name_(std::move(name)) {
  const workers::Transport& transport = workers::group(name_);
  rank_ = transport.rank(), size_ = transport.size();
}

int Group::rank() const {
  if (rank_ < 0)
    fail(Hint{"use tn.distributed.axis_index(name), a tensor",
              "use tn::distributed::axis_index(name), a tensor"},
         "workers: the rank along '{}' is not known at trace time: the function is traced once for "
         "all workers",
         name_);
  return rank_;
}

Group axis(const std::string& name) {
  const Mesh* mesh = mesh::mesh_of_shard_map();
  if (!mesh)
    fail(Hint{"call it in a function that shard_map runs"},
         "workers: no mesh with an axis '{}' is active here", name);
  int number = mesh->find(name);
  if (number < 0)
    fail(Hint{format("its axes are {}", to_text(*mesh))}, "workers: the mesh has no axis '{}'",
         name);
  return Group(name, static_cast<int>((*mesh)[number].size));
}

Tensor axis_index(const std::string& name, Place place) {
  LocScope scope(place);
  Group group = axis(name);
  Tensor all = arange(group.size(), {}, 1, DType::i32);
  if (group.size() == 1) return reshape(all, {});
  return reshape(emit(ops::slice_of_worker, {all}, rows_of(group)), {});
}

Group Group::split(int color, int key) const {
  return Group(workers::split_group(name_, color, key));
}

void Group::barrier() const {
  std::string place = user_place ? user_place() : std::string();
  workers::CollectiveCall call{.place = place};
  workers::watched(name_, size_, call, [&] { workers::group(name_).run(call); });
}

Group init() {
  if (mesh::mesh_of_shard_map())
    fail(
        Hint{
            "name it: axis=\"data\"; there are no messages there: exchange parts with all_to_all, "
            "or read them from an all_gather",
            "name it: tn::distributed::axis(\"data\"); there are no messages there: exchange parts "
            "with all_to_all, or read them from an all_gather"},
        "workers: in the function of shard_map a collective is along an axis of the mesh");
  return Group{std::string(workers::kWorld)};
}

Tensor all_sum(const Tensor& given, const Group& group, Place place) {
  LocScope scope(place);
  Tensor x = terms_of("all_sum", given, group);
  if (group.size() == 1) return x;
  ops::GroupAttrs attrs{intern(group.name()), group.size()};
  // Without a mesh every value may vary by worker, so cotangents of all workers are summed.
  return emit(ops::vary, {emit(ops::all_sum, {x}, attrs)}, attrs);
}

Tensor all_max(const Tensor& x, const Group& group, Place place) {
  LocScope scope(place);
  return all_extreme(x, group, ops::AllFold::max);
}

Tensor all_min(const Tensor& x, const Group& group, Place place) {
  LocScope scope(place);
  return all_extreme(x, group, ops::AllFold::min);
}

Tensor all_gather(const Tensor& x, const Group& group, Place place) {
  LocScope scope(place);
  check_not_on_mesh("all_gather", x, group);
  Tensor rows = x.rank() == 0 ? reshape(x, {1}) : x;
  if (group.size() == 1) return rows;
  return emit(ops::all_gather, {rows}, rows_of(group));
}

Tensor sum_scatter(const Tensor& given, const Group& group, Place place) {
  LocScope scope(place);
  Tensor x = terms_of("sum_scatter", given, group);
  check_rows("sum_scatter", x, group);
  if (group.size() == 1) return x;
  return emit(ops::reduce_scatter, {x}, rows_of(group));
}

Tensor all_to_all(const Tensor& x, const Group& group, Place place) {
  LocScope scope(place);
  check_not_on_mesh("all_to_all", x, group);
  check_rows("all_to_all", x, group);
  if (group.size() == 1) return x;
  // One axis for the parts that are sent, one for those that arrive.
  Shape shape = x.shape(), split = {Dim(group.size()), Dim(1)};
  split[1] = floor_div(shape[0], group.size());
  for (int i = 1; i < shape.rank(); ++i) split.push_back(shape[i]);
  ops::ExchangeAttrs attrs{.mesh_axis = intern(group.name()),
                           .workers = group.size(),
                           .axis = Axis(1),
                           .to_axis = Axis(0)};
  return reshape(emit(ops::all_to_all, {reshape(x, split)}, attrs), shape);
}

/// There derivatives pass through the way in and out, which sum and share cotangents themselves.
static void check_outside_shard_map(std::string_view who) {
  if (mesh::mesh_of_shard_map())
    fail(Hint{"use all_sum, or the value itself: inside shard_map their gradients are correct"},
         "{}: not allowed inside shard_map", who);
}

Tensor sum_gradients(const Tensor& x, const Group& group, Place place) {
  LocScope scope(place);
  check_not_on_mesh("sum_gradients", x, group);
  check_outside_shard_map("sum_gradients");
  if (group.size() == 1) return x;
  return emit(ops::vary, {x}, ops::GroupAttrs{intern(group.name()), group.size()});
}

Tensor sum_replicated(const Tensor& given, const Group& group, Place place) {
  LocScope scope(place);
  Tensor x = terms_of("sum_replicated", given, group);
  check_outside_shard_map("sum_replicated");
  if (group.size() == 1) return x;
  return emit(ops::all_sum, {x}, ops::GroupAttrs{intern(group.name()), group.size()});
}

Tensor send(const Tensor& x, int to, const Group& group, Place place) {
  LocScope scope(place);
  check_peer("send", to, group);
  ops::SendAttrs attrs{intern(group.name()), group.size(), to};
  perform_message(ops::send, {cast_to(x, x.dtype())}, &attrs, 0);
  return x;
}

Tensor recv(const Shape& shape, DType dtype, int from, const Group& group, Place place) {
  LocScope scope(place);
  check_peer("recv", from, group);
  ops::check_sizes("recv", shape);
  ops::ReceiveAttrs attrs{intern(group.name()), group.size(), from, shape, dtype};
  return perform_message(ops::recv, {}, &attrs, 1)[0];
}

Tensor recv_like(const Tensor& x, int from, const Group& group, Place place) {
  return recv(x.shape(), x.dtype(), from, group, place);
}

Tensor broadcast(const Tensor& x, int root, const Group& group, Place place) {
  LocScope scope(place);
  if (root < 0 || root >= group.size())
    fail("broadcast: there is no worker {}: the group has {}", root, group.size());
  if (group.size() == 1) return x;
  return emit(ops::all_broadcast, {x}, ops::RootAttrs{intern(group.name()), group.size(), root});
}

}  // namespace tn::distributed
