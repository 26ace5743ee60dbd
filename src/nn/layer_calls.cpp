#include "nn/layer_calls.h"

#include "ir/node.h"
#include "ir/sizes.h"
#include "ir/visit_field.h"
#include "nn/initial.h"
#include "nn/module_state.h"
#include "tenon/ops.h"

namespace tn::nn {

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

namespace {

FieldList fields_of(const LayerDef& def, const void* attrs) {
  return list_fields(*def.attrs, const_cast<void*>(attrs));
}

const Field* find_field(const FieldList& fields, std::string_view name) {
  for (const Field& f : fields.items)
    if (f.name == name) return &f;
  return nullptr;
}

int64_t& integer_in(const Field& field) { return *static_cast<int64_t*>(field.at); }
const Ints& ints_in(const Field& field) { return *static_cast<Ints*>(field.at); }

bool is_true(const FieldList& fields, std::string_view name) {
  const Field* f = find_field(fields, name);
  return f && *static_cast<bool*>(f->at);
}

/// Sizes that the attributes leave open, from the tensors of the layer.
void find_sizes(const LayerDef& def, void* attrs, const Tensors& held) {
  FieldList fields = fields_of(def, attrs);
  for (int i = 0; i < def.tensors.size(); ++i) {
    const Tensor& tensor = held[static_cast<size_t>(i)];
    if (!tensor.defined()) continue;
    std::vector<std::string_view> words = words_of(def.tensors[i].shape);
    if (std::ssize(words) != tensor.rank()) continue;
    for (int axis = 0; axis < tensor.rank(); ++axis) {
      const Field* f = find_field(fields, words[static_cast<size_t>(axis)]);
      if (f && f->kind == FieldKind::integer && integer_in(*f) == 0)
        integer_in(*f) = tensor.dim(axis);
    }
  }
}

/// The layout that the layer does not have, where the input has that.
Hint hint_for_layout(const LayerDef& def, const void* attrs, const InputDef& in, const Tensor& x) {
  AttrBuffer other(*def.attrs, attrs);
  FieldList fields = fields_of(def, other.data);
  const Field* last = find_field(fields, "channels_last");
  if (!last) return {};
  bool& flag = *static_cast<bool*>(last->at);
  flag = !flag;
  Pattern pattern = patterns_of(def, other.data, in.shape_for(other.data)).back();
  bool names_channels = std::ranges::any_of(
      pattern, [](const PatternSize& size) { return std::holds_alternative<int64_t>(size); });
  if (!names_channels || !fits(x.shape(), pattern)) return {};
  return {format("{} is for channels_last={}", to_text(pattern), flag ? "True" : "False"),
          format("{} is for channels_last = {}", to_text(pattern), flag)};
}

void check_input(const LayerDef& def, const void* attrs, const InputDef& in, const Tensor& x,
                 std::string_view layer) {
  if (!x.defined() && in.optional) return;
  if (!x.defined()) fail(Fault::type, "{}: expected a tensor", layer);
  std::string_view shape = in.shape_for(attrs);
  if (shape == "*") return;
  std::vector<Pattern> patterns = patterns_of(def, attrs, shape);
  for (const Pattern& pattern : patterns)
    if (fits(x.shape(), pattern)) return;
  fail(hint_for_layout(def, attrs, in, x), "{}: expected {}, given {}", layer,
       to_text(patterns.back()), *type_of(x));
}

}  // namespace

namespace layers {

Tensor by_inputs(const void*, const DrawCall& call) {
  int64_t inputs = 1;
  for (int axis = 1; axis < call.first.rank(); ++axis) inputs *= call.first[axis].value();
  return drawn_uniform(call.shape, inputs, {call.type, call.key});
}

Tensor standard_normal(const void*, const DrawCall& call) {
  return random::normal(call.shape, 0.0, 1.0, call.type, call.key);
}

Tensor all_ones(const void*, const DrawCall& call) { return ones(call.shape, call.type); }
Tensor all_zeros(const void*, const DrawCall& call) { return zeros(call.shape, call.type); }

}  // namespace layers

const LayerDef* find_layer(std::string_view name) {
  auto found = std::ranges::lower_bound(layer_table(), name, {}, &LayerDef::name);
  bool known = found != layer_table().end() && (*found)->name == name;
  return known ? *found : nullptr;
}

bool has_word(std::string_view names, std::string_view word) {
  return std::ranges::count(words_of(names), word) > 0;
}

bool is_presence(const LayerDef& def, std::string_view attribute) {
  return std::ranges::any_of(def.tensors,
                             [&](const TensorDef& t) { return has_word(t.when, attribute); });
}

bool is_size(const LayerDef& def, const Field& field) {
  bool integers = field.kind == FieldKind::integer || field.kind == FieldKind::ints;
  if (!integers || field.set != nullptr) return false;
  for (const TensorDef& t : def.tensors)
    if (has_word(t.shape, field.name)) return true;
  for (const FunctionDef& function : def.functions)
    for (const InputDef& in : function.inputs)
      if (has_word(in.shape, field.name)) return true;
  return std::ranges::any_of(def.multiples,
                             [&](const MultipleDef& m) { return m.times == field.name; });
}

bool has_tensor(const LayerDef& def, const TensorDef& tensor, const void* attrs) {
  if (tensor.exists && !tensor.exists(attrs)) return false;
  FieldList fields = fields_of(def, attrs);
  return std::ranges::all_of(words_of(tensor.when),
                             [&](std::string_view name) { return is_true(fields, name); });
}

int named_field(const FieldList& fields, size_t i) {
  std::string name = format("{}_by", fields.items[i].name);
  const Field* found = fields.items[i].kind == FieldKind::ints ? find_field(fields, name) : nullptr;
  return found ? static_cast<int>(found - fields.items.data()) : -1;
}

uint8_t choice_of(const LayerDef& def, size_t field, std::string_view name, const Place& at) {
  LocScope scope(at);
  FieldList fields = list_fields(*def.attrs, nullptr);
  ChoiceNames choices = fields.items[field].choices;
  auto found = std::ranges::find(choices, name);
  if (found == choices.end())
    fail("{}: {} must be one of {}: '{}'", def.name, fields.items[field].name, join(choices, ", "),
         name);
  return static_cast<uint8_t>(found - choices.begin());
}

Pattern pattern_of(const LayerDef& def, const void* attrs, std::string_view shape) {
  FieldList fields = fields_of(def, attrs);
  Pattern pattern;
  for (std::string_view word : words_of(shape)) {
    auto part = std::ranges::find(def.multiples, word, &MultipleDef::part);
    if (part != def.multiples.end()) {
      int64_t whole = integer_in(*find_field(fields, part->whole));
      if (whole != 0)
        pattern.emplace_back(whole / integer_in(*find_field(fields, part->times)));
      else
        pattern.emplace_back(word);
      continue;
    }
    if (size_t times = word.find('*'); times != 0 && times != word.npos) {
      int64_t size = integer_in(*find_field(fields, word.substr(times + 1)));
      pattern.emplace_back((word[0] - '0') * size);
      continue;
    }
    const Field* f = find_field(fields, word);
    bool integers = f && (f->kind == FieldKind::integer || f->kind == FieldKind::ints);
    if (!integers || is_unknown(*f))
      pattern.emplace_back(word);
    else if (f->kind == FieldKind::ints)
      for (int64_t size : ints_in(*f)) pattern.emplace_back(size);
    else
      pattern.emplace_back(integer_in(*f));
  }
  return pattern;
}

std::vector<Pattern> patterns_of(const LayerDef& def, const void* attrs, std::string_view shape) {
  constexpr std::string_view kOr = " | ";
  bool channels_last = is_true(fields_of(def, attrs), "channels_last");
  std::vector<Pattern> patterns;
  while (true) {
    size_t end = shape.find(kOr);
    Pattern pattern = pattern_of(def, attrs, shape.substr(0, end));
    if (channels_last && pattern.size() > 2)
      std::rotate(pattern.begin() + 1, pattern.begin() + 2, pattern.end());
    patterns.push_back(std::move(pattern));
    if (end == shape.npos) return patterns;
    shape.remove_prefix(end + kOr.size());
  }
}

bool is_unknown(const Field& size) {
  return size.kind == FieldKind::ints ? ints_in(size).empty() : integer_in(size) == 0;
}

void check_size(const Field& field, std::string_view layer) {
  if (field.kind == FieldKind::integer)
    return check_sizes(layer, {{field.name, integer_in(field)}});
  if (ints_in(field).empty()) fail("{}: {} has no sizes", layer, field.name);
  for (int64_t size : ints_in(field)) check_sizes(layer, {{field.name, size}});
}

void prepare_attrs(const LayerDef& def, void* attrs, std::string_view layer, bool may_infer) {
  FieldList fields = fields_of(def, attrs);
  for (const Field& f : fields.items) {
    if (!is_size(def, f)) continue;
    bool open = may_infer && has_word(def.inferred, f.name) && is_unknown(f);
    if (!open) check_size(f, layer);
  }
  for (const MultipleDef& m : def.multiples) {
    int64_t whole = integer_in(*find_field(fields, m.whole));
    if (whole > 0)
      check_divides(layer, {m.times, integer_in(*find_field(fields, m.times))}, {{m.whole, whole}});
  }
  if (def.prepare) def.prepare(attrs, layer);
}

bool is_usual(const LayerDef& def, const void* attrs, size_t i) {
  AttrBuffer defaults(*def.attrs), other(*def.attrs, attrs);
  FieldList usual = fields_of(def, defaults.data), changed = fields_of(def, other.data);
  const Field &from = usual.items[i], &to = changed.items[i];
  if (to.required) return false;
  if (to.set) *to.set = *from.set;
  visit_field(to, [&]<class T>(T& value) {
    value = *static_cast<T*>(from.at);
    return 0;
  });
  if (def.prepare) def.prepare(other.data, def.name);
  return equal(*def.attrs, attrs, other.data);
}

Tensors draw_tensors(const LayerDef& def, const void* attrs) {
  Tensors made;
  Shape first;
  for (const TensorDef& tensor : def.tensors) {
    made.emplace_back();
    if (tensor.is_given() || !has_tensor(def, tensor, attrs)) continue;
    Shape shape;
    for (const PatternSize& size : pattern_of(def, attrs, tensor.shape))
      shape.push_back(std::get<int64_t>(size));
    if (first.rank() == 0) first = shape;
    made.back() = tensor.initial(attrs, {.shape = shape, .first = first});
  }
  return made;
}

AttrBuffer child_attrs(const LayerDef& def, const void* attrs, const ChildDef& child) {
  AttrBuffer made(*child.layer->attrs);
  FieldList from = fields_of(def, attrs), to = fields_of(*child.layer, made.data);
  size_t place = 0;
  for (std::string_view word : words_of(child.arguments)) {
    if (word.ends_with(',')) word.remove_suffix(1);
    visit_field(to.items[place++], [&]<class T>(T& value) {
      value = *static_cast<T*>(find_field(from, word)->at);
      return 0;
    });
  }
  return made;
}

Tensors call_layer(const LayerDef& def, const FunctionDef& function, const void* given,
                   const LayerCall& call) {
  AttrBuffer attrs(*def.attrs, given);
  if (!def.inferred.empty()) find_sizes(def, attrs.data, call.held);
  auto next = call.in.begin();
  for (const InputDef& input : function.inputs)
    for (int i = 0; i < input.count; ++i) check_input(def, attrs.data, input, *next++, call.layer);
  return function.run(attrs.data, call);
}

/// Writes attributes where `pack` reads them.
static void unpack(const AttrKind& kind, void* attrs, void* const* fields) {
  FieldList list = list_fields(kind, attrs);
  for (size_t i = 0; i < list.items.size(); ++i) {
    const Field& f = list.items[i];
    if (f.set) *static_cast<bool*>(fields[i]) = *f.set;
    ptrdiff_t skip = f.set ? static_cast<char*>(f.at) - reinterpret_cast<char*>(f.set) : 0;
    visit_field(f, [&]<class T>(T& v) {
      *reinterpret_cast<T*>(static_cast<char*>(fields[i]) + skip) = v;
      return 0;
    });
  }
}

void make_layer(const LayerDef& def, void* const* fields, std::span<Tensor* const> tensors,
                const Place& at) {
  LocScope scope(at);
  AttrBuffer attrs;
  pack(*def.attrs, attrs.data, fields);
  prepare_attrs(def, attrs.data, def.name);
  unpack(*def.attrs, attrs.data, fields);
  Tensors made = draw_tensors(def, attrs.data);
  for (size_t i = 0; i < tensors.size(); ++i)
    if (made[i].defined()) *tensors[i] = std::move(made[i]);
}

Tensor given(const Operand& x) {
  bool absent = x.absent || (x.tensor && !x.tensor->defined());
  return absent ? Tensor() : taken(x);
}

void give(Tensors& in, const LayerDef& def, const InputDef& input, const Tensors& several) {
  size_t count = static_cast<size_t>(input.count);
  if (!several.empty() && several.size() != count)
    fail("{}: a {} is {} tensors, given {}", def.name, input.name, count, several.size());
  in.insert(in.end(), several.begin(), several.end());
  if (several.empty()) in.resize(in.size() + count);
}

Tensors run_layer(const LayerDef& def, const ObjectCall& call) {
  const FunctionDef& function = def.functions[call.function];
  AttrBuffer attrs, options;
  static constexpr bool kPresent = true;  // what exists is seen from the tensors
  std::vector<const void*> given(call.fields, call.fields + def.attrs->fields);
  std::ranges::replace(given, nullptr, static_cast<const void*>(&kPresent));
  pack(*def.attrs, attrs.data, given.data());
  pack(*function.options, options.data, call.options);
  Tensors held;
  bool moves = false;
  for (size_t i = 0; i < call.tensors.size(); ++i) {
    held.push_back(*call.tensors[i]);
    moves |= call.training && held[i].defined() && def.tensors[static_cast<int>(i)].is_state;
  }
  if (moves && call.is_constant)
    fail(Hint{"declare forward without const, or call eval()"},
         "{}: a const module cannot be trained: training updates its running statistics", def.name);
  Tensors out = call_layer(def, function, attrs.data,
                           {.layer = def.name,
                            .in = call.in,
                            .held = held,
                            .training = call.training,
                            .options = options.data,
                            .call_child = call.call_child});
  auto is_traced = [](const Tensor& t) { return t.defined() && t.node()->traced; };
  for (size_t i = 0; moves && i < held.size(); ++i) {
    bool leaves = is_traced(held[i]) && !is_traced(*call.tensors[i]);
    if (leaves && !is_carried_out(call.tensors[i]))
      fail(Hint{"call eval(), or name the model as state: tn::compile(f, std::tie(model))"},
           "{}: training updates its running statistics, which are not part of the traced function",
           def.name);
  }
  for (size_t i = 0; moves && i < held.size(); ++i) *call.tensors[i] = held[i];
  return out;
}

}  // namespace tn::nn
