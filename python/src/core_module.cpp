// The module tenon._core.
#include <nanobind/stl/string.h>

#include "core.h"
#include "models/python_layers.h"
#include "tenon_command.h"
#include "tensors/dims.h"
#include "watching/python_signals.h"

NB_MODULE(_core, m) {
  using namespace tn::python;
  namespace nb = nanobind;
  nb::set_leak_warnings(false);  // types and dtypes live as long as the process
  m.doc() = "The compiled part of tenon.";
  bind_errors(m);
  install_places();
  install_host_lock();
  bind_dtypes(m);
  bind_dims(m);
  bind_tensor(m);
  bind_creation(m);
  bind_runtime(m);
  add_indexing(m);
  bind_samples(m);
  bind_trees(m);
  bind_tree_transforms(m);
  bind_stand_ins(m);
  bind_backward(m);
  bind_parameters(m);
  bind_compile(m);
  bind_executable(m);
  bind_files(m);
  bind_explain(m);
  bind_random(m);
  bind_control_flow(m);
  bind_modes(m);
  bind_models(m);
  bind_model_blocks(m);
  bind_optimizer_rules(m);
  bind_layers(m);
  bind_signals(m);
  bind_command_line(m);
  bind_distributed(m);
  bind_meshes(m);
  m.def("_set_package_folder", &set_package_folder);
  m.attr("__version__") = TENON_VERSION;
  bind_ops(m);
}
