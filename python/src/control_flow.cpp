// Control flow on flat lists of tensors. The trees of arguments and results are python/tenon's.
#include "tenon/control_flow.h"

#include <nanobind/stl/optional.h>

#include "core.h"
#include "python_function.h"

namespace tn::python {

/// One list in both directions: the carry, then slices of xs or ys.
static ScanBody scan_body(nb::object body, size_t carries) {
  return [f = python_function(std::move(body), "scan"), carries](const Tensors& carry,
                                                                 const Tensors& x) -> ScanResult {
    Tensors args = carry;
    args.insert(args.end(), x.begin(), x.end());
    Tensors out = f(args);
    auto middle = out.begin() + static_cast<ptrdiff_t>(std::min(carries, out.size()));
    return {{out.begin(), middle}, {middle, out.end()}};
  };
}

void bind_control_flow(nb::module_& m) {
  m.def("_cond", [](nb::handle pred, nb::object then, nb::object otherwise, nb::handle operands) {
    UserCall call;
    return tensor_list(
        tn::cond(read_tensor(pred.ptr(), "cond"), python_function(std::move(then), "cond"),
                 python_function(std::move(otherwise), "cond"), read_tensors(operands, "cond")));
  });
  m.def("_while_loop", [](nb::object go_on, nb::object body, nb::handle carry) {
    UserCall call;
    return tensor_list(tn::while_loop(python_function(std::move(go_on), "while_loop"),
                                      python_function(std::move(body), "while_loop"),
                                      read_tensors(carry, "while_loop")));
  });
  m.def(
      "_scan",
      [](nb::object body, nb::handle carry, nb::handle xs, std::optional<int64_t> length,
         bool reverse) {
        UserCall call;
        Tensors start = read_tensors(carry, "scan");
        ScanResult made =
            tn::scan(scan_body(std::move(body), start.size()), start, read_tensors(xs, "scan"),
                     length ? Maybe<int64_t>(*length) : Maybe<int64_t>(), reverse);
        return nb::make_tuple(tensor_list(made.carry), tensor_list(made.ys));
      },
      nb::arg("body"), nb::arg("carry"), nb::arg("xs"), nb::arg("length") = nb::none(),
      nb::arg("reverse") = false,
      "The body takes one list, carry and slices of xs, and returns one, carry and slices of ys.");
  m.def("_checkpoint", [](nb::object f, nb::handle args) {
    UserCall call;
    return tensor_list(tn::checkpoint(python_function(std::move(f), "checkpoint"))(
        read_tensors(args, "checkpoint")));
  });
}

}  // namespace tn::python
