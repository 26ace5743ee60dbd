#include "tenon_command.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cli/cli.h"
#include "cli/environment.h"

namespace tn::python {

namespace nb = nanobind;

namespace {

nb::list described(const std::vector<InputInfo>& inputs) {
  nb::list list;
  for (const InputInfo& input : inputs) {
    nb::list sizes;
    for (const DimensionInfo& d : input.shape)
      sizes.append(nb::make_tuple(d.min, d.opt, d.max, d.name));
    list.append(
        nb::make_tuple(input.name, std::string(name_of(input.dtype)), sizes, input.is_size));
  }
  return list;
}

/// Those that look like a slip, each with the name that was meant.
std::vector<std::pair<std::string, std::string>> stray_variables() {
  std::vector<std::pair<std::string, std::string>> found;
  for (StrayVariable& v : tn::stray_variables())
    if (!v.nearest.empty()) found.emplace_back(std::move(v.name), std::move(v.nearest));
  return found;
}

}  // namespace

void bind_command_line(nb::module_& m) {
  m.def(
      "_run_command_line",
      [](std::vector<std::string> args, nb::callable compile) {
        auto compile_python = [&](const CompileRequest& r) {
          compile(r.source, described(r.inputs), r.values, r.level, r.output, r.targets, r.debug);
        };
        auto python = nb::cast<std::string>(nb::module_::import_("sys").attr("executable"));
        return run_command_line(std::move(args),
                                {.compile_python = compile_python, .python = python});
      },
      nb::arg("args"), nb::arg("compile"), "Runs a command of `tenon`; returns its exit code.");
  m.def("_stray_variables", stray_variables);
}

}  // namespace tn::python
