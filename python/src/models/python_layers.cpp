// Layers in Python: modules with the attributes and tensors that their records name, and blocks.
#include "models/python_layers.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <deque>

#include "base/error.h"
#include "calls/call_spec.h"
#include "calls/list_function.h"
#include "model/layer_block.h"
#include "nn/layer_calls.h"
#include "nn/recurrent_steps.h"
#include "tenon/ops.h"

namespace tn::python {
namespace {

using nn::LayerDef;

/// A layer with what is needed to read its attributes.
struct LayerSpec {
  const LayerDef& def;
  FieldList fields;  // names and kinds only
  std::vector<FieldSlot> slots = make_slots(def.name, *def.attrs, fields);
  std::vector<int> decides;   // by field: the tensor that exists if it is true, or -1
  std::vector<int> named;     // by field: the field of a name in place of its numbers, or -1
  std::vector<bool> is_name;  // by field: whether it is such a field, which users do not see
  std::vector<std::vector<FieldSlot>> options;  // by function

  explicit LayerSpec(const LayerDef& layer) : def(layer), is_name(slots.size()) {
    for (size_t i = 0; i < slots.size(); ++i) {
      named.push_back(nn::named_field(fields, i));
      if (named[i] >= 0) is_name[static_cast<size_t>(named[i])] = true;
    }
    for (const nn::FunctionDef& function : def.functions) {
      FieldList list;
      options.push_back(make_slots(def.name, *function.options, list));
    }
    for (const FieldSlot& slot : slots) {
      decides.push_back(-1);
      for (int i = 0; i < def.tensors.size() && decides.back() < 0; ++i) {
        std::string_view when = def.tensors[i].when;
        if (when == slot.name || when.ends_with(format(" {}", slot.name))) decides.back() = i;
      }
    }
  }
};

const LayerSpec& spec_of_layer(std::string_view name) {
  static auto& specs = *new std::deque<LayerSpec>;  // filled while Python's lock is held
  for (const LayerSpec& spec : specs)
    if (spec.def.name == name) return spec;
  const LayerDef* def = nn::find_layer(name);
  invariant(def != nullptr, "no layer '{}'", name);
  return specs.emplace_back(*def);
}

/// What errors call a module: its class, which may be the user's.
std::string_view layer_name(nb::handle module) { return type_name(module.ptr()); }

/// The number of a name that is given in place of numbers.
uint8_t read_name(const FieldSlot& numbers, const FieldSlot& names, std::string_view layer,
                  nb::handle value) {
  auto text = nb::cast<std::string_view>(value);
  std::vector<std::string> known;
  for (size_t i = 1; i < names.choices.size(); ++i) {
    if (names.choices[i] == text) return static_cast<uint8_t>(i);
    known.push_back(format("'{}'", names.choices[i]));
  }
  fail("{}: {} must be numbers, {}, not '{}'", layer, numbers.name, join(known, " or "), text);
}

/// Sizes of which some are None, which is -1.
nb::object without_none(nb::handle value) {
  if (value.is_none()) return nb::int_(-1);
  if (!nb::isinstance<nb::list>(value) && !nb::isinstance<nb::tuple>(value))
    return nb::borrow(value);
  nb::list sizes;
  for (nb::handle size : value) sizes.append(without_none(size));
  return sizes;
}

/// The same, as users see it.
nb::object with_none(nb::object sizes) {
  nb::list all;
  for (nb::handle size : sizes)
    all.append(nb::cast<int64_t>(size) == -1 ? nb::none() : nb::borrow(size));
  return nb::tuple(all);
}

/// Writes an attribute as users give it. A choice may be the function of its name.
void write_field(const LayerSpec& spec, size_t i, std::string_view layer, char* attrs,
                 nb::handle value) {
  std::vector<nb::object> keep;
  nb::object changed;
  if (nn::has_word(spec.def.open, spec.slots[i].name))
    value = changed = without_none(value);
  else if (spec.slots[i].kind == FieldKind::choice && PyCallable_Check(value.ptr()))
    value = changed = nb::getattr(value, "__name__", value);
  FieldSlot slot = spec.slots[i];
  slot.op = layer;
  if (spec.named[i] >= 0 && PyUnicode_Check(value.ptr())) {
    const FieldSlot& names = spec.slots[static_cast<size_t>(spec.named[i])];
    attrs[names.at] = static_cast<char>(read_name(slot, names, layer, value));
  } else if (value.is_none() && slot.set >= 0)
    *reinterpret_cast<bool*>(attrs + slot.set) = false;
  else
    slot.write(attrs, value.ptr(), keep);
}

/// An attribute of a module; those that earlier versions pickled may have another library's name.
nb::object layer_attribute(const LayerDef& def, nb::handle module, const char* name) {
  nb::object found = nb::steal(PyObject_GetAttrString(module.ptr(), name));
  if (found.is_valid()) return found;
  nb::python_error missing;
  for (const nn::AlsoCalled& also : def.also_called)
    if (also.ours == name) return module.attr(as_str(also.theirs));
  throw missing;
}

Tensors read_held(const LayerDef& def, nb::handle module) {
  Tensors held;
  for (const nn::TensorDef& tensor : def.tensors) {
    nb::object value = tensor.exists ? nb::getattr(module, as_str(tensor.name), nb::none())
                                     : module.attr(as_str(tensor.name));
    held.push_back(value.is_none() ? Tensor() : read_tensor(value.ptr(), tensor.name));
  }
  return held;
}

/// The attributes of a module. Those that decide which tensors exist are seen from these.
AttrBuffer read_attrs(const LayerSpec& spec, nb::handle module, const Tensors& held) {
  const LayerDef& def = spec.def;
  AttrBuffer attrs(*def.attrs);
  for (size_t i = 0; i < spec.slots.size(); ++i) {
    const FieldSlot& slot = spec.slots[i];
    if (spec.is_name[i]) continue;
    if (int tensor = spec.decides[i]; tensor >= 0)
      *reinterpret_cast<bool*>(attrs.data + slot.at) = held[static_cast<size_t>(tensor)].defined();
    else
      write_field(spec, i, layer_name(module), attrs.data, layer_attribute(def, module, slot.name));
  }
  return attrs;
}

/// An attribute as users see it: a name, where that is given in place of numbers.
nb::object shown_field(const LayerSpec& spec, const FieldList& fields, size_t i) {
  if (nn::has_word(spec.def.open, fields.items[i].name))
    return with_none(field_object(fields.items[i]));
  if (spec.named[i] < 0) return field_object(fields.items[i]);
  const Field& name = fields.items[static_cast<size_t>(spec.named[i])];
  return field_object(*static_cast<uint8_t*>(name.at) ? name : fields.items[i]);
}

/// A layer inside a layer, as a module of its own.
nb::object make_child(const nn::ChildDef& child, AttrBuffer attrs) {
  const LayerSpec& spec = spec_of_layer(child.layer->name);
  FieldList fields = list_fields(*child.layer->attrs, attrs.data);
  nb::dict options;
  for (size_t i = 0; i < fields.items.size(); ++i)
    if (!spec.is_name[i]) options[fields.items[i].name] = shown_field(spec, fields, i);
  nb::object made = nb::module_::import_("tenon.nn").attr(as_str(child.layer->name))(**options);
  for (const nn::TensorDef& tensor : child.layer->tensors) {
    if (!nn::has_word(child.zeros, tensor.name)) continue;
    nb::object value = made.attr(as_str(tensor.name));
    if (!value.is_none())
      made.attr(as_str(tensor.name)) = wrapped(zeros(read_tensor(value.ptr(), "").shape()));
  }
  return made;
}

void make_layer(const std::string& name, nb::handle module, nb::args values) {
  const LayerSpec& spec = spec_of_layer(name);
  std::string_view layer = layer_name(module);
  AttrBuffer attrs(*spec.def.attrs);
  size_t next = 0;
  for (size_t i = 0; i < spec.slots.size(); ++i)
    if (!spec.is_name[i]) write_field(spec, i, layer, attrs.data, values[next++]);
  nn::prepare_attrs(spec.def, attrs.data, layer);
  FieldList fields = list_fields(*spec.def.attrs, attrs.data);
  for (size_t i = 0; i < fields.items.size(); ++i)
    if (spec.decides[i] < 0 && !spec.is_name[i])
      module.attr(fields.items[i].name) = shown_field(spec, fields, i);
  Tensors held = nn::draw_tensors(spec.def, attrs.data);
  for (int i = 0; i < spec.def.tensors.size(); ++i) {
    Tensor& drawn = held[static_cast<size_t>(i)];
    nb::object value = drawn.defined() ? wrapped(std::move(drawn)) : nb::none();
    if (spec.def.tensors[i].is_given()) value = nb::borrow(values[next++]);
    module.attr(as_str(spec.def.tensors[i].name)) = value;
  }
  for (const nn::ChildDef& child : spec.def.children)
    module.attr(as_str(child.name)) =
        make_child(child, nn::child_attrs(spec.def, attrs.data, child));
}

Tensor read_input(nb::handle x, std::string_view layer) {
  if (!is_tensor(x.ptr()) && !nb::hasattr(x, "shape"))
    fail(Fault::type, "{}: expected a tensor, given a {}", layer, type_name(x.ptr()));
  return read_tensor(x.ptr(), layer);
}

/// Adds the tensors of an input; null ones if it is left out.
void read_inputs(const nn::InputDef& input, nb::handle value, std::string_view layer, Tensors& in) {
  size_t count = static_cast<size_t>(input.count);
  if (input.optional && value.is_none()) return in.resize(in.size() + count);
  if (count == 1) return in.push_back(read_input(value, layer));
  bool several = nb::isinstance<nb::tuple>(value) || nb::isinstance<nb::list>(value);
  if (!several || nb::len(value) != count)
    fail("{}: a {} is {} tensors, given a {}", layer, input.name, count, type_name(value.ptr()));
  for (nb::handle x : value) in.push_back(read_input(x, layer));
}

/// The results of a function as users see them: a tensor, or tuples.
nb::object wrap_results(const nn::FunctionDef& function, Tensors out) {
  if (function.results.size() == 0) return wrapped(std::move(out[0]));
  nb::list all;
  auto next = out.begin();
  for (const nn::ResultDef& r : function.results) {
    nb::list several;
    for (int i = 0; i < r.count; ++i) several.append(wrapped(std::move(*next++)));
    if (r.count == 1)
      all.append(several[0]);
    else
      all.append(nb::tuple(several));
  }
  return function.results.size() == 1 ? nb::object(all[0]) : nb::object(nb::tuple(all));
}

/// `values` are the inputs and options in the order of Python's signature.
nb::object run_layer(const std::string& name, const std::string& function, nb::handle module,
                     nb::args values) {
  const LayerSpec& spec = spec_of_layer(name);
  const LayerDef& def = spec.def;
  auto called = std::ranges::find(def.functions, function, &nn::FunctionDef::name);
  invariant(called != def.functions.end(), "{} has no function {}", name, function);
  std::string_view layer = layer_name(module);
  Tensors in, held = read_held(def, module);
  AttrBuffer attrs = read_attrs(spec, module, held), options(*called->options);
  size_t next = 0;
  auto read = [&](bool last) {
    for (const nn::InputDef& input : called->inputs)
      if (input.last == last) read_inputs(input, values[next++], layer, in);
  };
  read(false);
  std::vector<nb::object> keep;
  for (FieldSlot slot : spec.options[static_cast<size_t>(called - def.functions.begin())]) {
    slot.op = layer;
    slot.write(options.data, values[next++].ptr(), keep);
  }
  read(true);
  bool asks = def.draws || def.has_state();
  Tensors before = held;
  Tensors out = nn::call_layer(def, *called, attrs.data,
                               {.layer = layer,
                                .in = in,
                                .held = held,
                                .training = asks && nb::cast<bool>(module.attr("training")),
                                .options = options.data,
                                .call_child = [&](int i, const Tensor& x) {
                                  nb::object y =
                                      module.attr(as_str(def.children[i].name))(wrapped(Tensor(x)));
                                  return read_tensor(y.ptr(), def.children[i].name);
                                }});
  for (int i = 0; i < def.tensors.size(); ++i) {
    Tensor& now = held[static_cast<size_t>(i)];
    if (now.defined() && now.node() != before[static_cast<size_t>(i)].node())
      module.attr(as_str(def.tensors[i].name)) = wrapped(std::move(now));
  }
  return wrap_results(*called, std::move(out));
}

/// Of equal numbers, one.
nb::object one_for_all(nb::object value) {
  if (!nb::isinstance<nb::tuple>(value) || nb::len(value) == 0) return value;
  nb::object first = value[0];
  for (nb::handle item : value)
    if (!item.equal(first)) return value;
  return first;
}

/// "3", or "3, 4" of several; `spread`: also where they are equal.
std::string size_text(nb::object value, bool spread) {
  if (!spread) value = one_for_all(value);
  if (!spread || !nb::isinstance<nb::tuple>(value)) return nb::str(value).c_str();
  std::vector<std::string> sizes;
  for (nb::handle item : value) sizes.emplace_back(nb::str(item).c_str());
  return format("{}", join(sizes, ", "));
}

/// The sizes as the record shows them, then the options that are not as usual, by name.
std::string describe_layer(const std::string& name, nb::handle module) {
  const LayerSpec& spec = spec_of_layer(name);
  Tensors held = read_held(spec.def, module);
  AttrBuffer attrs = read_attrs(spec, module, held);
  FieldList fields = list_fields(*spec.def.attrs, attrs.data);
  std::string shown(spec.def.shown);
  std::vector<std::string> texts;
  for (size_t i = 0; i < fields.items.size(); ++i) {
    if (spec.is_name[i]) continue;
    nb::object value = shown_field(spec, fields, i);
    const char* field = fields.items[i].name;
    bool is_shown = false;
    for (bool spread : {false, true}) {
      std::string place = format("{{{}{}}}", spread ? "*" : "", field);
      size_t at = shown.find(place);
      if (at == shown.npos) continue;
      shown.replace(at, place.size(), size_text(value, spread));
      is_shown = true;
    }
    bool usual = nn::is_usual(spec.def, attrs.data, i);
    if (spec.named[i] >= 0)
      usual &= nn::is_usual(spec.def, attrs.data, static_cast<size_t>(spec.named[i]));
    if (!is_shown && !usual) {
      texts.push_back(format("{}={}", field, nb::repr(one_for_all(value)).c_str()));
    }
  }
  for (int i = 0; i < spec.def.tensors.size(); ++i)
    if (const Tensor& given = held[static_cast<size_t>(i)];
        given.defined() && spec.def.tensors[i].is_given())
      texts.push_back(
          format("{}={}{}", spec.def.tensors[i].name, name_of(given.dtype()), given.shape()));
  if (!shown.empty()) texts.insert(texts.begin(), shown);
  return format("{}", join(texts, ", "));
}

/// The place of an argument, by our name or another library's.
size_t find_argument(const LayerSpec& spec, std::string_view name) {
  for (const nn::AlsoCalled& also : spec.def.also_called)
    if (also.theirs == name) name = also.ours;
  std::vector<std::string_view> names;
  for (size_t i = 0; i < spec.slots.size(); ++i) {
    if (spec.is_name[i]) continue;
    if (spec.slots[i].name == name) return i;
    names.emplace_back(spec.slots[i].name);
  }
  std::string_view near = nearest_name(name, names);
  fail(Fault::type, Hint{near.empty() ? "" : format("did you mean {}?", near)},
       "{}: unknown keyword: {}", spec.def.name, name);
}

bool is_option(const LayerSpec& spec, std::string_view name) {
  return std::ranges::any_of(spec.options[0],
                             [&](const FieldSlot& slot) { return slot.name == name; });
}

/// One argument alone is the first size that cannot be inferred: `Linear(8)`.
size_t first_place(const LayerSpec& spec, size_t given) {
  size_t place = 0;
  while (place < spec.slots.size() && nn::has_word(spec.def.inferred, spec.slots[place].name))
    ++place;
  bool skips = given == 1 && place < spec.slots.size() && spec.fields.items[place].required;
  return skips ? place : 0;
}

model::Block make_layer_block(const std::string& name, nb::tuple args, nb::dict keywords) {
  const LayerSpec& spec = spec_of_layer(name);
  std::vector<nb::object> given(spec.slots.size());
  size_t place = first_place(spec, args.size());
  size_t most = given.size() - static_cast<size_t>(std::ranges::count(spec.is_name, true));
  if (args.size() > most)
    fail(Fault::type, "{}: {} arguments given, it takes at most {}", name, args.size(), most);
  for (nb::handle value : args) {
    while (spec.is_name[place]) ++place;
    given[place++] = nb::borrow(value);
  }
  for (auto [key, value] : keywords) {
    if (is_option(spec, nb::cast<std::string_view>(key))) continue;
    size_t at = find_argument(spec, nb::cast<std::string_view>(key));
    if (given[at].is_valid()) fail(Fault::type, "{}: {} is given twice", name, spec.slots[at].name);
    given[at] = nb::borrow(value);
  }
  AttrBuffer attrs(*spec.def.attrs), options(*spec.def.forward().options);
  std::vector<nb::object> keep;
  for (FieldSlot slot : spec.options[0]) {  // of calls: by name
    if (!keywords.contains(slot.name)) continue;
    slot.op = name;
    slot.write(options.data, nb::object(keywords[slot.name]).ptr(), keep);
  }
  for (size_t i = 0; i < given.size(); ++i) {
    const FieldSlot& slot = spec.slots[i];
    bool may_lack = nn::has_word(spec.def.inferred, slot.name);
    if (!given[i].is_valid() || (may_lack && given[i].is_none())) {
      if (spec.fields.items[i].required && !may_lack)
        fail(Fault::type, Hint{format("{}(..., {}=...)", name, slot.name)},
             "{}: argument {} is missing", name, slot.name);
      continue;
    }
    write_field(spec, i, name, attrs.data, given[i]);
    Field size{.name = slot.name, .kind = slot.kind, .at = attrs.data + slot.at};
    if (may_lack) nn::check_size(size, name);
  }
  return model::layer_block(spec.def, attrs, options);
}

/// The next state of a recurrent layer at one position, of tensors [inputs, recurrent, *state].
nb::list recurrent_step(std::string_view kind, nb::handle tensors) {
  Tensors in = read_tensors(tensors, kind);
  auto step = kind == "LSTM" ? nn::lstm_step : nn::gru_step;
  return tensor_list(step(in[0], in[1], Tensors(in.begin() + 2, in.end())));
}

}  // namespace

void bind_layers(nb::module_& m) {
  m.def("_make_layer", make_layer, users_call);
  m.def("_run_layer", run_layer, users_call);
  m.def("_describe_layer", describe_layer);
  m.def("_recurrent_step", recurrent_step, users_call);
  m.def("_layer_block", make_layer_block, users_call);
  m.def("_layer_docs", [] {
    nb::dict docs;
    for (const LayerDef* def : nn::layer_table()) docs[as_str(def->name)] = as_str(def->doc);
    return docs;
  });
}

}  // namespace tn::python
