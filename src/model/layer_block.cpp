#include "model/layer_block.h"

#include <algorithm>

#include "base/error.h"
#include "ir/visit_field.h"
#include "tenon/ops.h"

namespace tn::model {
namespace {

const Field* find_field(const FieldList& fields, std::string_view name) {
  auto found = std::ranges::find(fields.items, name,
                                 [](const Field& f) { return std::string_view(f.name); });
  return found == fields.items.end() ? nullptr : &*found;
}

/// Whether inference is to find the attribute.
bool left_open(const nn::LayerDef& def, const Field& f) {
  return nn::has_word(def.inferred, f.name) && nn::is_unknown(f);
}

/// A layer and its attributes, as blocks keep them.
struct LayerOf {
  const nn::LayerDef& def;
  AttrBuffer attrs, options;

  FieldList fields() const { return list_fields(*def.attrs, const_cast<char*>(attrs.data)); }
  std::string settings() const;
  std::string shape(std::string_view pattern, bool has_channels) const;
  std::string known_shape(std::string_view pattern) const;
  Terminal terminal(const nn::TensorDef& tensor, size_t first,
                    const std::shared_ptr<const LayerOf>& self) const;
  std::vector<Terminal> inputs() const;
  std::vector<Terminal> outputs() const;
  Tensors read_held(Tensors::const_iterator& next) const;
  Tensors compute(const BlockCall& call, const std::vector<LayerOf>& children) const;
};

/// An attribute as readers see it: of equal numbers, one.
std::string value_text(const Field& f) {
  auto list_text = [](const Ints& list) {
    bool equal = std::ranges::all_of(list, [&](int64_t i) { return i == list[0]; });
    std::vector<std::string> items;
    for (int64_t i : list) items.push_back(format("{}", i));
    return equal && !list.empty() ? items[0] : format("[{}]", join(items, ", "));
  };
  return visit_field(f, Overloads{
                            [](bool v) { return std::string(v ? "true" : "false"); },
                            [](int64_t v) { return format("{}", v); },
                            [](double v) { return format("{}", v); },
                            [](Axis v) { return format("{}", v.i); },
                            [&](const Ints& v) { return list_text(v); },
                            [&](uint8_t v) { return std::string(f.choices[v]); },
                            [](const auto&) { return std::string("…"); },
                        });
}

/// The attributes and options that are known and not as usual.
std::string LayerOf::settings() const {
  FieldList all = fields();
  std::vector<std::string> texts;
  for (size_t i = 0; i < all.items.size(); ++i) {
    const Field& f = all.items[i];
    if (left_open(def, f) || nn::is_usual(def, attrs.data, i)) continue;
    std::string_view name = f.name;
    if (f.kind == FieldKind::choice && name.ends_with("_by")) name.remove_suffix(3);
    texts.push_back(format("{}={}", name, value_text(f)));
  }
  const AttrKind& kind = *def.forward().options;
  AttrBuffer usual(kind);
  FieldList given = list_fields(kind, const_cast<char*>(options.data));
  FieldList defaults = list_fields(kind, usual.data);
  for (size_t i = 0; i < given.items.size(); ++i)
    if (value_text(given.items[i]) != value_text(defaults.items[i]))
      texts.push_back(format("{}={}", given.items[i].name, value_text(given.items[i])));
  return format("{}", join(texts, ", "));
}

/// A shape as terminals have it: lists among the attributes are spread, other names stay.
std::string LayerOf::shape(std::string_view pattern, bool has_channels) const {
  FieldList known = fields();
  size_t either = pattern.find(" | ");  // one of several: the first, and more axes
  std::string all(pattern.substr(0, either));
  if (either != pattern.npos) all += " ...";
  std::vector<std::string> sizes;
  std::string_view rest = all;
  while (!rest.empty()) {
    std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    for (const nn::MultipleDef& m : def.multiples)  // one part is the whole
      if (m.part == word && *static_cast<int64_t*>(find_field(known, m.times)->at) == 1)
        word = m.whole;
    if (size_t times = word.find('*'); times != 0 && times != word.npos) {
      const Field* part = find_field(known, word.substr(times + 1));
      sizes.push_back(format("{}", (word[0] - '0') * *static_cast<int64_t*>(part->at)));
      continue;
    }
    const Field* f = find_field(known, word);
    if (f && f->kind == FieldKind::ints && !left_open(def, *f))
      for (int64_t size : *static_cast<Ints*>(f->at))
        sizes.push_back(size == -1 ? "_" : format("{}", size));
    else if (f && f->set != nullptr)
      sizes.push_back(format("{}", *static_cast<int64_t*>(f->at)));
    else
      sizes.emplace_back(word);
  }
  const Field* last = find_field(known, "channels_last");
  if (has_channels && last && *static_cast<bool*>(last->at) && sizes.size() > 2)
    std::rotate(sizes.begin() + 1, sizes.begin() + 2, sizes.end());
  return format("{}", join(sizes, " "));
}

/// A shape of a layer inside another one, which does not have its names: all sizes are known.
std::string LayerOf::known_shape(std::string_view pattern) const {
  std::vector<std::string> sizes;
  for (const nn::PatternSize& size : nn::pattern_of(def, attrs.data, pattern))
    sizes.push_back(format("{}", std::get<int64_t>(size)));
  return format("{}", join(sizes, " "));
}

Terminal LayerOf::terminal(const nn::TensorDef& tensor, size_t first,
                           const std::shared_ptr<const LayerOf>& self) const {
  if (tensor.is_given())
    return {.name = std::string(tensor.name), .shape = std::string(tensor.shape), .optional = true};
  return {.name = std::string(tensor.name),
          .role = tensor.is_state ? Role::state : Role::parameter,
          .shape = shape(tensor.shape, false),
          .initial = [&tensor, self, first](const InitialCall& call) {
            return tensor.initial(self->attrs.data,
                                  {call.shape, call.block[first], call.type, call.key});
          }};
}

std::vector<Terminal> LayerOf::inputs() const {
  std::vector<Terminal> made;
  const nn::FunctionDef& forward = def.forward();
  for (const nn::InputDef& in : forward.inputs) {
    bool first = in.name == "x" || forward.inputs.size() == 1;
    std::string name(!in.terminal.empty() ? in.terminal : first ? "input" : in.name);
    for (int i = 0; i < in.count; ++i)
      made.push_back({.name = in.count > 1 ? format("{}{}", name, i) : name,
                      .shape = shape(in.shape_for(attrs.data), true),
                      .optional = in.optional,
                      .usual = in.usual});
  }
  return made;
}

std::vector<Terminal> LayerOf::outputs() const {
  const nn::FunctionDef& forward = def.forward();
  std::string_view output = forward.result ? forward.result(attrs.data) : forward.output;
  if (forward.results.size() == 0)
    return {{.name = "output", .role = Role::output, .shape = shape(output, true)}};
  std::vector<Terminal> made;
  for (const nn::ResultDef& r : forward.results)
    for (std::string_view name : nn::words_of(r.count > 1 ? r.parts : r.name))
      made.push_back(
          {.name = std::string(name), .role = Role::output, .shape = shape(r.shape, true)});
  return made;
}

Tensors LayerOf::read_held(Tensors::const_iterator& next) const {
  Tensors held;
  for (const nn::TensorDef& tensor : def.tensors)
    held.push_back(nn::has_tensor(def, tensor, attrs.data) ? *next++ : Tensor());
  return held;
}

Tensors LayerOf::compute(const BlockCall& call, const std::vector<LayerOf>& children) const {
  Tensors::const_iterator next = call.in.begin() + std::ssize(inputs());
  Tensors in(call.in.begin(), next), held = read_held(next);
  std::vector<Tensors> inside;
  for (const LayerOf& child : children) inside.push_back(child.read_held(next));
  auto call_child = [&](int i, const Tensor& x) {
    const LayerOf& child = children[static_cast<size_t>(i)];
    return nn::call_layer(child.def, child.def.forward(), child.attrs.data,
                          {.layer = child.def.name,
                           .in = {x},
                           .held = inside[static_cast<size_t>(i)],
                           .training = call.training,
                           .key = call.key,
                           .options = child.options.data})[0];
  };
  Tensors results = nn::call_layer(def, def.forward(), attrs.data,
                                   {.layer = def.name,
                                    .in = in,
                                    .held = held,
                                    .training = call.training,
                                    .key = call.key,
                                    .options = options.data,
                                    .call_child = call_child});
  for (int i = 0; i < def.tensors.size(); ++i)
    if (const Tensor& now = held[static_cast<size_t>(i)]; now.defined() && def.tensors[i].is_state)
      results.push_back(now);
  return results;
}

/// Adds the parameters and states of a layer, under `prefix`.
void add_tensors(std::vector<Terminal>& terminals, const std::shared_ptr<const LayerOf>& layer,
                 const std::string& prefix, std::string_view zeros) {
  size_t first = terminals.size();
  for (const nn::TensorDef& tensor : layer->def.tensors) {
    if (!nn::has_tensor(layer->def, tensor, layer->attrs.data)) continue;
    terminals.push_back(layer->terminal(tensor, first, layer));
    terminals.back().name = prefix + terminals.back().name;
    if (nn::has_word(zeros, tensor.name))
      terminals.back().initial = [](const InitialCall& call) {
        return tn::zeros(call.shape, call.type);
      };
  }
}

}  // namespace

Block layer_block(const nn::LayerDef& def, const AttrBuffer& attrs, const AttrBuffer& options) {
  auto layer = std::make_shared<LayerOf>(LayerOf{def, attrs, options});
  nn::prepare_attrs(def, layer->attrs.data, def.name, true);
  BlockDef block{.kind = std::string(def.name), .terminals = {}, .settings = layer->settings()};
  for (const Field& f : layer->fields().items)
    if (f.kind == FieldKind::integer && nn::is_size(def, f) && !left_open(def, f))
      block.sizes.emplace(f.name, *static_cast<int64_t*>(f.at));
  for (const nn::MultipleDef& m : def.multiples) {
    int64_t times = block.sizes.at(std::string(m.times));
    if (times > 1) block.multiples.push_back({std::string(m.whole), times, std::string(m.part)});
  }
  block.terminals = layer->inputs();
  add_tensors(block.terminals, layer, "", "");
  std::vector<LayerOf> children;
  for (const nn::ChildDef& child : def.children) {
    children.push_back({*child.layer, nn::child_attrs(def, layer->attrs.data, child),
                        AttrBuffer(*child.layer->forward().options)});
    auto inside = std::make_shared<LayerOf>(children.back());
    size_t first = block.terminals.size();
    add_tensors(block.terminals, inside, format("{}_", child.name), child.zeros);
    for (size_t i = first; i < block.terminals.size(); ++i)
      block.terminals[i].shape = inside->known_shape(block.terminals[i].shape);
  }
  for (Terminal& output : layer->outputs()) block.terminals.push_back(std::move(output));
  block.draws = def.draws ? Draws::in_training : Draws::never;
  block.same_type = true;
  block.compute = [layer, children](const BlockCall& call) {
    return layer->compute(call, children);
  };
  return block;
}

Block layer_block(const nn::LayerDef& def, const void* const* fields, const void* const* options) {
  AttrBuffer attrs, given;
  pack(*def.attrs, attrs.data, fields);
  pack(*def.forward().options, given.data, options);
  return layer_block(def, attrs, given);
}

}  // namespace tn::model
