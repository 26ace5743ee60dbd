// Meshes and the layouts of tensors.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "calls/list_function.h"
#include "core.h"
#include "mesh/shard_map.h"
#include "runtime/device.h"

namespace tn::python {
namespace {

using SizeTuple = std::tuple<std::string, int64_t, int64_t>;

/// The name of its device.
std::string mesh_device(const std::vector<SizeTuple>& sizes) {
  UserCall call;
  std::vector<MeshSize> list;
  for (const auto& [name, size, parts] : sizes) list.push_back({name, size, parts});
  nb::gil_scoped_release free;
  return to_text(device_of(make_mesh(list)));
}

std::vector<SizeTuple> mesh_axes(const std::string& device) {
  UserCall call;
  std::vector<SizeTuple> list;
  for (const MeshAxis& axis : mesh_of(Device(device)).axes)
    list.emplace_back(axis.name, axis.size, axis.parts);
  return list;
}

/// The name of a part of a mesh.
std::string mesh_at(const std::string& device,
                    const std::vector<std::pair<std::string, int64_t>>& coordinates) {
  UserCall call;
  Mesh part = mesh_of(Device(device));
  for (const auto& [axis, coordinate] : coordinates) part = part.at(axis, coordinate);
  nb::gil_scoped_release free;
  return to_text(device_of(part));
}

std::string mesh_whole(const std::string& device) {
  UserCall call;
  return to_text(device_of(mesh_of(Device(device)).whole()));
}

nb::dict mesh_fixed(const std::string& device) {
  UserCall call;
  Mesh mesh = mesh_of(Device(device));
  nb::dict made;
  for (size_t t = 0; t < mesh.fixed.size(); ++t)
    if (mesh.fixed[t] >= 0) made[mesh.whole_axes[t].name.c_str()] = mesh.fixed[t];
  return made;
}

nb::object shard_tensor(nb::handle x, const std::vector<std::string>& axes, bool is_stored,
                        bool is_parameter, bool anywhere) {
  UserCall call;
  ShardSpec spec(axes);
  spec.stored = is_stored, spec.is_parameter = is_parameter, spec.anywhere = anywhere;
  return wrapped(shard(self_tensor(x.ptr()), spec));
}

using AxisNames = std::vector<std::vector<std::string>>;  // by tensor and dimension

ShardSpecs specs_of(const AxisNames& names) { return {names.begin(), names.end()}; }

nb::list call_on_workers(nb::object f, nb::handle args, const std::string& device,
                         const AxisNames& in_specs, nb::object out_specs,
                         nb::object name_of_state) {
  UserCall call;
  Device there = device.empty() ? current_device() : Device(device);
  if (!is_mesh(there))
    fail(Hint{"make one: `with tn.Mesh(data=-1):`, or give it: tn.shard_map(f, mesh, ...)"},
         "shard_map: there is no mesh");
  auto made_specs = [&] { return specs_of(nb::cast<AxisNames>(out_specs())); };
  auto state = [&](size_t result) { return nb::cast<std::string>(name_of_state(result)); };
  return tensor_list(mesh::call_on_workers(python_function(std::move(f), "shard_map"),
                                           read_tensors(args, "shard_map"), mesh_of(there),
                                           specs_of(in_specs), made_specs, state));
}

nb::list block_list(nb::handle x) {
  UserCall call;
  nb::list list;
  for (Tensor& block : blocks(self_tensor(x.ptr()))) list.append(wrapped(std::move(block)));
  return list;
}

}  // namespace

void bind_meshes(nb::module_& m) {
  m.def("_mesh_device", mesh_device, nb::arg("sizes"));
  m.def("_mesh_axes", mesh_axes, nb::arg("device"));
  m.def("_mesh_at", mesh_at, nb::arg("device"), nb::arg("coordinates"));
  m.def("_mesh_whole", mesh_whole, nb::arg("device"));
  m.def("_mesh_fixed", mesh_fixed, nb::arg("device"));
  m.def("_shard", shard_tensor, nb::arg("x"), nb::arg("axes"), nb::arg("stored"),
        nb::arg("is_parameter"), nb::arg("anywhere"));
  m.def(
      "_layout",
      [](nb::handle x) {
        UserCall call;
        return layout(self_tensor(x.ptr()));
      },
      nb::arg("x"));
  m.def("_shard_map", call_on_workers, nb::arg("f"), nb::arg("args"), nb::arg("device"),
        nb::arg("in_specs"), nb::arg("out_specs"), nb::arg("name_of_state"));
  m.def("_blocks", block_list, nb::arg("x"));
  m.def(
      "_shard_like",
      [](nb::handle x, nb::handle like) {
        UserCall call;
        return wrapped(shard_like(self_tensor(x.ptr()), self_tensor(like.ptr())));
      },
      nb::arg("x"), nb::arg("like"));
  m.def(
      "_gather_blocks",
      [](nb::handle x) {
        UserCall call;
        return wrapped(gather(self_tensor(x.ptr())));
      },
      nb::arg("x"));
  m.def(
      "_set_workers",
      [](int count, int64_t parts) {
        UserCall call;
        set_workers(count, parts);
      },
      nb::arg("count"), nb::arg("parts"));
  m.def("_workers", [] {
    UserCall call;
    return num_workers();
  });
}

}  // namespace tn::python
