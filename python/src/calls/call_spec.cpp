// Calls of ops from Python: arguments are matched with parameters, converted, and handed to the op.
#include "calls/call_spec.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "ir/emit.h"
#include "ir/named_calls.h"
#include "ir/node.h"
#include "tenon/backward.h"

namespace tn::python {
namespace {

constexpr size_t kMostParams = 24;

/// Spellings of other libraries, looked at only after a miss.
struct Foreign {
  std::string_view theirs, ours;
};
constexpr std::array<Foreign, 29> kForeign = {{
    {"dim", "axis"},
    {"dim", "axes"},
    {"dims", "axis"},
    {"dims", "axes"},
    {"dims", "repetitions"},
    {"axes", "axis"},
    {"dim1", "axis1"},
    {"dim2", "axis2"},
    {"start_dim", "start_axis"},
    {"end_dim", "end_axis"},
    {"keepdim", "keepdims"},
    {"diagonal", "k"},
    {"input", "x"},
    {"input", "x1"},
    {"a", "x"},
    {"a", "x1"},
    {"other", "x2"},
    {"tensors", "arrays"},
    {"index", "indices"},
    {"size", "shape"},
    {"sizes", "shape"},
    {"shifts", "shift"},
    {"steps", "num"},
    {"value", "src"},
    {"ddof", "correction"},
    {"query", "q"},
    {"key", "k"},
    {"value", "v"},
    {"attn_mask", "mask"},
}};

std::string_view text_of(PyObject* unicode) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(unicode, &size);
  if (!text) throw nb::python_error();
  return {text, static_cast<size_t>(size)};
}

int find_param(const CallSpec& spec, std::string_view name) {
  for (size_t i = 0; i < spec.params.size(); ++i)
    if (spec.params[i].text == name) return static_cast<int>(i);
  return -1;
}

int find_foreign(const CallSpec& spec, std::string_view name) {
  for (const Foreign& f : kForeign) {
    if (f.theirs != name) continue;
    int found = find_param(spec, f.ours);
    if (found >= 0) return found;
  }
  return -1;
}

[[noreturn]] void unknown_keyword(const CallSpec& spec, std::string_view name) {
  std::vector<std::string_view> names;
  for (const CallParam& p : spec.params) names.push_back(p.text);
  std::string_view near = nearest_name(name, names);
  Hint hint{!near.empty() ? format("did you mean {}?", near)
                          : format("it takes {}", join(names, ", "))};
  fail(Fault::type, hint, "{}: unknown keyword: {}", user_name(*spec.op), name);
}

bool is_sequence(PyObject* o) { return o && (PyList_Check(o) || PyTuple_Check(o)); }

/// `dim=()` of a reduction is every axis in PyTorch; `axis=()` is none, as in NumPy.
bool is_every_dim(const CallSpec& spec, PyObject* name, PyObject* value) {
  if (!is_sequence(value) || PySequence_Fast_GET_SIZE(value) || text_of(name) != "dim")
    return false;
  return find_param(spec, "keepdims") >= 0 || find_param(spec, "keepdim") >= 0;
}

/// Keywords every function of the array API may get although tensors do not need them.
bool is_harmless(const CallSpec& spec, std::string_view name, PyObject* value) {
  // NumPy's functions pass these on.
  if ((name == "out" || name == "dtype") && value == Py_None) return true;
  // Of PyTorch's attention: heads of keys are always shared, nothing is ever dropped.
  bool attends = find_param(spec, "is_causal") >= 0;
  if (attends && name == "enable_gqa") return true;
  if (attends && name == "dropout_p") return PyObject_IsTrue(value) == 0;
  bool copies = spec.op->family == Family::movement || find_param(spec, "dtype") >= 0;
  return name == "copy" && copies;
}

/// Ops that make tensors of a shape, rather than of the values of others.
bool creates(const CallSpec& spec) {
  bool shaped = find_param(spec, "shape") >= 0 && find_param(spec, "dtype") >= 0;
  return shaped || spec.op->args.size() == 0 || spec.op->name.ends_with("_like");
}

/// How the op is called that PyTorch means by the name, where that is another one; or null.
const CallSpec* torch_spec(const CallSpec& spec) {
  const OpDef* op = find_op(format("torch.{}", spec.op->name));
  return op ? &spec_of(*op) : nullptr;
}

/// The arguments of one call, by parameter.
struct Arguments {
  const CallSpec& spec;
  std::array<PyObject*, kMostParams> given{};  // borrowed; null: not given
  std::span<PyObject* const> rest;             // positional members of a list parameter
  std::vector<nb::object> keep;
  bool requires_grad = false;       // of what the op creates
  Maybe<Device> device = {};        // where results are wanted
  const CallSpec* torch = nullptr;  // the call can only be PyTorch's: this is the op it means

  void positional(PyObject* const* args, size_t count);
  void keyword(PyObject* name, PyObject* value);
  void spread();
  bool gathers(size_t param, PyObject* const* args, size_t count);
  bool lacks_required() const;
  std::optional<Device> leading_device() const;
  void check_place(size_t param, PyObject* value) const;
};

bool Arguments::lacks_required() const {
  for (size_t i = 0; i < spec.params.size(); ++i)
    if (spec.params[i].required && !given[i]) return true;
  return false;
}

bool is_plain_int(PyObject* o) { return PyIndex_Check(o) && !PyBool_Check(o) && !is_tensor(o); }

/// `reshape(x, 2, 3)`: integers in a row where a list is wanted and no number could follow.
bool Arguments::gathers(size_t param, PyObject* const* args, size_t count) {
  const CallParam& p = spec.params[param];
  if (p.role != CallParam::Role::field || count < 2) return false;
  FieldKind kind = spec.fields[static_cast<size_t>(p.place)].kind;
  bool list = kind == FieldKind::shape || kind == FieldKind::perm || kind == FieldKind::ints ||
              kind == FieldKind::offsets;
  if (!list || !is_plain_int(args[0]) || !is_plain_int(args[1])) return false;
  if (param + 1 == spec.params.size()) return true;
  const CallParam& next = spec.params[param + 1];
  if (next.role != CallParam::Role::field) return false;
  FieldKind other = spec.fields[static_cast<size_t>(next.place)].kind;
  return other == FieldKind::dtype || other == FieldKind::choice || other == FieldKind::text;
}

/// diff(x, 2) takes two differences in NumPy and PyTorch, where no operand comes second.
void Arguments::check_place(size_t param, PyObject* value) const {
  const CallParam& p = spec.params[param];
  bool number = is_plain_int(value) || PyFloat_CheckExact(value);
  if (p.role != CallParam::Role::operand || p.required || !number || spec.fields.empty()) return;
  std::vector<std::string_view> names;
  for (const FieldSlot& field : spec.fields) names.push_back(field.name);
  nb::str shown = nb::repr(value);
  const char* text = shown.c_str();
  fail(Fault::type, Hint{format("name it: {}={}, or one of {}", p.text, text, join(names, ", "))},
       "{}: {} by position: is it {}?", user_name(*spec.op), text, p.text);
}

void Arguments::positional(PyObject* const* args, size_t count) {
  size_t param = 0;
  for (size_t i = 0; i < count; ++i, ++param) {
    if (param == spec.params.size())
      fail(Fault::type, "{}: {} arguments given, it takes at most {}", user_name(*spec.op), count,
           spec.params.size());
    bool list = spec.params[param].role == CallParam::Role::list;
    if (list && !PyList_Check(args[i]) && !PyTuple_Check(args[i])) {
      rest = {args + i, count - i};
      given[param] = args[i];
      return;
    }
    if (gathers(param, args + i, count - i)) {
      size_t end = i;
      while (end < count && is_plain_int(args[end])) ++end;
      nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(end - i)));
      for (size_t k = i; k < end; ++k)
        PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(k - i), Py_NewRef(args[k]));
      given[param] = tuple.ptr();
      keep.push_back(std::move(tuple));
      i = end - 1;
      continue;
    }
    check_place(param, args[i]);
    given[param] = args[i];
  }
}

void Arguments::keyword(PyObject* name, PyObject* value) {
  int found = -1;
  for (size_t i = 0; i < spec.params.size() && found < 0; ++i)
    if (spec.params[i].name == name) found = static_cast<int>(i);
  if (found < 0) {
    std::string_view text = text_of(name);
    found = find_param(spec, text);
    if (found < 0)
      if (const CallSpec* other = torch_spec(spec); other && find_param(*other, text) >= 0) {
        torch = other;
        return;
      }
    if (found < 0) found = find_foreign(spec, text);
    if (found < 0 && text == "device") {
      if (value != Py_None) device = read_device(value);
      return;
    }
    if (found < 0 && is_harmless(spec, text, value)) return;
    if (found < 0 && text == "requires_grad" && creates(spec)) {
      int wanted = PyObject_IsTrue(value);
      if (wanted < 0) throw nb::python_error();
      requires_grad = wanted;
      return;
    }
    if (found < 0) unknown_keyword(spec, text);
  }
  if (given[static_cast<size_t>(found)])
    fail(Fault::type, "{}: {} is given twice", user_name(*spec.op),
         spec.params[static_cast<size_t>(found)].text);
  if (!is_every_dim(spec, name, value)) given[static_cast<size_t>(found)] = value;
}

/// One argument that stands for two fields: `split(x, [1, 3])` gives indices where sections stand,
/// `tensordot(x, y, axes=([1], [0]))` the axes of both operands.
void Arguments::spread() {
  for (size_t i = 0; i + 1 < spec.params.size(); ++i) {
    const CallParam &p = spec.params[i], &next = spec.params[i + 1];
    if (p.role != CallParam::Role::field || !is_sequence(given[i])) continue;
    auto kind_of = [&](const CallParam& param) {
      bool field = param.role == CallParam::Role::field;
      return field ? spec.fields[static_cast<size_t>(param.place)].kind : FieldKind{};
    };
    if (kind_of(p) == FieldKind::integer) {
      for (size_t k = i + 1; k < spec.params.size(); ++k)
        if (kind_of(spec.params[k]) == FieldKind::offsets && !given[k] && given[i])
          std::swap(given[i], given[k]);
      continue;
    }
    if (given[i + 1]) continue;
    PyObject* pair = given[i];
    bool two = next.text == format("x2_{}", p.text) && PySequence_Fast_GET_SIZE(pair) == 2;
    if (!two || !is_sequence(PySequence_Fast_GET_ITEM(pair, 0))) continue;
    given[i] = PySequence_Fast_GET_ITEM(pair, 0);
    given[i + 1] = PySequence_Fast_GET_ITEM(pair, 1);
  }
}

/// The one that was asked for, or that of the first tensor.
std::optional<Device> Arguments::leading_device() const {
  if (device) return *device;
  std::span<PyObject* const> own(given.data(), spec.params.size());
  for (std::span<PyObject* const> list : {own, rest})
    for (PyObject* value : list) {
      if (is_sequence(value) && PySequence_Fast_GET_SIZE(value) > 0)
        value = PySequence_Fast_GET_ITEM(value, 0);
      if (auto found = value ? python::leading_device(value) : std::nullopt) return found;
    }
  return {};
}

/// Operands and attributes, converted.
struct Prepared {
  Tensors in;
  AttrBuffer attrs;
};

Tensor as_tensor(const Operand& operand) {
  if (operand.tensor) return *operand.tensor;
  if (operand.absent) return {};
  return make_scalar(operand.scalar, default_dtype(operand.scalar.kind), true);
}

void add_operand(const CallSpec& spec, Prepared& p, PyObject* value, std::string_view name) {
  OperandHolder holder;
  if (value && !read_operand(value, holder))
    fail(Fault::type, "{}: {} is not a tensor or a number: {}", user_name(*spec.op), name,
         type_name(value));
  p.in.push_back(as_tensor(holder.operand));
}

/// Writes an attribute, if it is given.
void set_field(const CallSpec& spec, Arguments& args, size_t param, char* attrs) {
  const FieldSlot& field = spec.fields[static_cast<size_t>(spec.params[param].place)];
  PyObject* value = args.given[param];
  bool none = value == Py_None, may_be_none = field.set >= 0;
  if (value && !none)
    field.write(attrs, value, args.keep);
  else if (none && may_be_none)
    attrs[field.set] = false;
  else if (spec.params[param].required)
    fail(Fault::type, "{}: argument {} is missing", user_name(*spec.op), spec.params[param].text);
}

void prepare(const CallSpec& spec, Arguments& args, Prepared& p) {
  if (!spec.fields.empty()) spec.op->attrs->init(p.attrs.data);
  for (size_t i = 0; i < spec.params.size(); ++i) {
    const CallParam& param = spec.params[i];
    if (param.role == CallParam::Role::field) {
      set_field(spec, args, i, p.attrs.data);
      continue;
    }
    PyObject* value = args.given[i] == Py_None ? nullptr : args.given[i];
    if (!value && param.required) {
      Hint hint{spec.op->name == "where" ? "where a condition holds says tn.nonzero(condition)"
                                         : ""};
      fail(Fault::type, hint, "{}: argument {} is missing", user_name(*spec.op), param.text);
    }
    if (param.role == CallParam::Role::operand) {
      add_operand(spec, p, value, param.text);
    } else if (!args.rest.empty()) {
      for (PyObject* item : args.rest) add_operand(spec, p, item, param.text);
    } else {
      nb::object items = checked(PySequence_Fast(value, "a list of tensors is needed"));
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(items.ptr()); ++k)
        add_operand(spec, p, PySequence_Fast_GET_ITEM(items.ptr(), k), param.text);
      args.keep.push_back(std::move(items));
    }
  }
}

nb::object wrap_results(const CallSpec& spec, Tensors&& out) {
  if (spec.result) {
    nb::object made = nb::steal(PyStructSequence_New(spec.result));
    for (size_t i = 0; i < out.size(); ++i)
      PyStructSequence_SetItem(made.ptr(), static_cast<Py_ssize_t>(i), wrap(std::move(out[i])));
    return made;
  }
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(out.size())));
  for (size_t i = 0; i < out.size(); ++i)
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), wrap(std::move(out[i])));
  return tuple;
}

/// One tensor and no attributes: most calls of elementwise functions.
bool is_short(const CallSpec& spec, size_t count, PyObject* keywords) {
  return spec.fields.empty() && !keywords && count == spec.params.size() && count <= 2 &&
         !spec.has_list && spec.op->results.size() == 0;
}

nb::object call_short(const CallSpec& spec, PyObject* const* args, size_t count) {
  OperandHolder holders[2];
  const Operand* in[2];
  for (size_t i = 0; i < count; ++i) {
    if (args[i] == Py_None && spec.op->args[static_cast<int>(i)].optional) {
      in[i] = &holders[i].operand;
      continue;
    }
    if (!read_operand(args[i], holders[i], args[count - 1 - i]))
      fail(Fault::type, "{}: {} is not a tensor or a number: {}", user_name(*spec.op),
           spec.params[i].text, type_name(args[i]));
    in[i] = &holders[i].operand;
  }
  return wrapped(call_one(*spec.op, {in, count}, nullptr));
}

/// Attributes in order, without operands.
void place_attributes(Arguments& arguments, nb::tuple attributes) {
  const CallSpec& spec = arguments.spec;
  size_t next = 0;
  for (size_t i = 0; i < spec.params.size() && next < attributes.size(); ++i)
    if (spec.params[i].role == CallParam::Role::field)
      arguments.given[i] = attributes[next++].ptr();
  if (next < attributes.size())
    fail(Fault::type, "{}: {} attributes given, it has {}", user_name(*spec.op), attributes.size(),
         next);
}

}  // namespace

GivenArguments read_given(const CallSpec& spec, nb::tuple attributes, nb::dict keywords) {
  Arguments arguments{spec, {}, {}, {}};
  place_attributes(arguments, attributes);
  for (auto [name, value] : keywords) arguments.keyword(name.ptr(), value.ptr());
  if (arguments.torch)
    fail(Fault::type, Hint{"give axis and keepdims in place of dim and keepdim"},
         "{}: PyTorch's keywords select an op with other results, which is not a block",
         user_name(*spec.op));
  arguments.spread();
  GivenArguments read{AttrBuffer(*spec.op->attrs), {}};
  char* attrs = read.attrs.data;
  Prepared operands;
  for (size_t i = 0; i < spec.params.size(); ++i) {
    const CallParam& param = spec.params[i];
    PyObject* value = arguments.given[i] == Py_None ? nullptr : arguments.given[i];
    if (param.role == CallParam::Role::field)
      set_field(spec, arguments, i, attrs);
    else if (param.role == CallParam::Role::list && value)
      fail(Fault::type, Hint{"connect them when the block is added to a model"},
           "{}: {} are inputs of the block, not options", user_name(*spec.op), param.text);
    else
      add_operand(spec, operands, value, param.text);
  }
  for (const FieldSlot& field : spec.fields) {
    if (field.kind != FieldKind::text) continue;
    auto& text = *reinterpret_cast<std::string_view*>(attrs + field.at);
    text = intern(text);  // Python's strings may end before the attributes do
  }
  read.operands = std::move(operands.in);
  return read;
}

nb::object call_python(const CallSpec& spec, PyObject* const* args, size_t count,
                       PyObject* keywords) {
  if (is_short(spec, count, keywords)) return call_short(spec, args, count);
  Arguments arguments{spec, {}, {}, {}};
  arguments.positional(args, count);
  Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  for (Py_ssize_t i = 0; i < named; ++i)
    arguments.keyword(PyTuple_GET_ITEM(keywords, i), args[count + static_cast<size_t>(i)]);
  // gather(x, 1, index) gives what is no list of indices, and no axes.
  if (spec.has_list && arguments.lacks_required()) arguments.torch = torch_spec(spec);
  if (arguments.torch) return call_python(*arguments.torch, args, count, keywords);
  arguments.spread();
  Prepared p;
  p.in.reserve(static_cast<size_t>(spec.op->args.size()));
  std::optional<DeviceScope> made_at;  // of lists among the operands, too
  if (auto device = arguments.leading_device()) made_at.emplace(*device);
  prepare(spec, arguments, p);
  Tensors out = call_with(*spec.op, std::move(p.in), p.attrs.data);
  if (arguments.device)
    for (Tensor& t : out) t = t.to(*arguments.device);
  if (arguments.requires_grad) require_grad(out[0]);
  if (spec.op->results.size() == 0) return wrapped(std::move(out[0]));
  return wrap_results(spec, std::move(out));
}

}  // namespace tn::python
