// Control flow on flat lists of tensors. The trees of arguments and results are python/tenon's.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "calls/list_function.h"
#include "core.h"
#include "python_interpreter.h"
#include "tenon/control_flow.h"
#include "tenon/debug.h"
#include "tenon/flat.h"

namespace tn::python {

/// One list in both directions: the carry, then slices of xs or ys.
static flat::ScanBody scan_body(nb::object body, size_t carries) {
  return [f = python_function(std::move(body), "scan"), carries](
             const Tensors& carry, const Tensors& x) -> flat::ScanResult {
    Tensors args = carry;
    args.insert(args.end(), x.begin(), x.end());
    Tensors out = f(args);
    auto middle = out.begin() + static_cast<ptrdiff_t>(std::min(carries, out.size()));
    return {{out.begin(), middle}, {middle, out.end()}};
  };
}

/// The user's rules, each called with lists of tensors; None is a rule that is not given.
static flat::CustomRules custom_rules(nb::object vjp, nb::object jvp, nb::object vmap) {
  flat::CustomRules rules;
  if (!vjp.is_none())
    rules.vjp = [f = keep(std::move(vjp))](const Tensors& primals, const Tensors& cotangents,
                                           const Tensors& outputs) {
      OwnPlaces own;
      return read_tensors(
          nb::borrow(f.get())(tensor_list(primals), tensor_list(cotangents), tensor_list(outputs)),
          "vjp");
    };
  if (!jvp.is_none())
    rules.jvp = [f = keep(std::move(jvp))](const Tensors& primals, const Tensors& tangents) {
      OwnPlaces own;
      return read_tensors(nb::borrow(f.get())(tensor_list(primals), tensor_list(tangents)), "jvp");
    };
  if (!vmap.is_none())
    rules.vmap = [f = keep(std::move(vmap))](const Tensors& args, const std::vector<bool>& batched,
                                             int64_t size) {
      OwnPlaces own;
      nb::list flags;
      for (bool b : batched) flags.append(b);
      nb::object made = nb::borrow(f.get())(size, flags, tensor_list(args));
      std::vector<bool> out_batched;
      for (nb::handle b : made[1]) out_batched.push_back(nb::cast<bool>(b));
      return std::pair(read_tensors(made[0], "vmap"), out_batched);
    };
  return rules;
}

/// Python's sys.stdout, as it is at the time.
static void print_to_python(std::string_view line) {
  PythonLock lock;
  if (!lock) return;
  try {
    nb::object out = nb::module_::import_("sys").attr("stdout");
    out.attr("write")(nb::str(line.data(), line.size()) + nb::str("\n"));
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("tenon.print");
  }
}

static void bind_custom_and_effects(nb::module_& m) {
  m.def(
      "_custom",
      [](nb::object f, nb::handle args, nb::object vjp, nb::object jvp, nb::object vmap,
         std::vector<std::string> constants) {
        flat::CustomRules rules = custom_rules(std::move(vjp), std::move(jvp), std::move(vmap));
        rules.constants = std::move(constants);
        Function custom = tn::flat::custom_function(
            python_function(std::move(f), "custom_function"), std::move(rules));
        return tensor_list(custom(read_tensors(args, "custom_function")));
      },
      users_call, nb::arg("f"), nb::arg("args"), nb::arg("vjp") = nb::none(),
      nb::arg("jvp") = nb::none(), nb::arg("vmap") = nb::none(),
      nb::arg("constants") = std::vector<std::string>(),
      "vjp(primals, cotangents, outputs), jvp(primals, tangents), and vmap(size, batched, args), "
      "which returns results and which of them are batched. `constants` names the last arguments, "
      "which rules are not given.");
  m.def(
      "print",
      [](const std::string& text, nb::args values) {
        tn::print(text, read_tensors(values, "print"));
      },
      users_call, nb::arg("text"), nb::arg("values"),
      "Prints `text` with a value in place of every `{}`. Inside a traced function it prints when "
      "that runs: once for every example of vmap, once for every step of a loop.");
  m.def(
      "check",
      [](nb::handle condition, const std::string& text, nb::args values) {
        tn::check(read_tensor(condition.ptr(), "check"), text, read_tensors(values, "check"));
      },
      users_call, nb::arg("condition"), nb::arg("text"), nb::arg("values"),
      "Fails with `text`, in which values stand as in `print`, unless all of `condition` is true. "
      "Inside a traced function it fails when that runs.");
  set_print_sink(print_to_python);
}

void bind_control_flow(nb::module_& m) {
  m.def(
      "_number", [](nb::handle x) { return wrapped(read_tensor(x.ptr(), "number")); }, users_call,
      nb::arg("x"), "A number as a tensor that adopts the type of its partner.");
  m.def(
      "_cond",
      [](nb::handle pred, nb::object then, nb::object otherwise, nb::handle operands) {
        return tensor_list(tn::flat::cond(
            read_tensor(pred.ptr(), "cond"), python_function(std::move(then), "cond"),
            python_function(std::move(otherwise), "cond"), read_tensors(operands, "cond")));
      },
      users_call);
  m.def(
      "_while_loop",
      [](nb::object go_on, nb::object body, nb::handle carry) {
        return tensor_list(tn::flat::while_loop(python_function(std::move(go_on), "while_loop"),
                                                python_function(std::move(body), "while_loop"),
                                                read_tensors(carry, "while_loop")));
      },
      users_call);
  m.def(
      "_scan",
      [](nb::object body, nb::handle carry, nb::handle xs, std::optional<int64_t> length,
         bool reverse) {
        Tensors start = read_tensors(carry, "scan");
        flat::ScanResult made = tn::flat::scan(
            scan_body(std::move(body), start.size()), start, read_tensors(xs, "scan"),
            length ? Maybe<int64_t>(*length) : Maybe<int64_t>(), reverse);
        return nb::make_tuple(tensor_list(made.carry), tensor_list(made.ys));
      },
      users_call, nb::arg("body"), nb::arg("carry"), nb::arg("xs"), nb::arg("length") = nb::none(),
      nb::arg("reverse") = false,
      "The body takes one list, carry and slices of xs, and returns one, carry and slices of ys.");
  m.def(
      "_checkpoint",
      [](nb::object f, nb::handle args, int segments) {
        return tensor_list(tn::flat::checkpoint(python_function(std::move(f), "checkpoint"),
                                                segments)(read_tensors(args, "checkpoint")));
      },
      users_call, nb::arg("f"), nb::arg("args"), nb::arg("segments") = 1);
  bind_custom_and_effects(m);
}

}  // namespace tn::python
