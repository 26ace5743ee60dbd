#include "model/layer_block.h"

#include <algorithm>

#include "base/error.h"
#include "ir/visit_field.h"

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
  AttrBuffer attrs;

  FieldList fields() const { return list_fields(*def.attrs, const_cast<char*>(attrs.data)); }
  std::string settings() const;
  std::string shape(std::string_view pattern, bool has_channels) const;
  Terminal terminal(const nn::TensorDef& tensor, const std::shared_ptr<const LayerOf>& self) const;
  Tensors compute(const BlockCall& call) const;
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
                            [&](const Ints& v) { return list_text(v); },
                            [&](uint8_t v) { return std::string(f.choices[v]); },
                            [](const auto&) { return std::string("…"); },
                        });
}

/// The attributes that are known and not as usual.
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
    const Field* f = find_field(known, word);
    if (f && f->kind == FieldKind::ints && !left_open(def, *f))
      for (int64_t size : *static_cast<Ints*>(f->at)) sizes.push_back(format("{}", size));
    else
      sizes.emplace_back(word);
  }
  const Field* last = find_field(known, "channels_last");
  if (has_channels && last && *static_cast<bool*>(last->at) && sizes.size() > 2)
    std::rotate(sizes.begin() + 1, sizes.begin() + 2, sizes.end());
  return format("{}", join(sizes, " "));
}

Terminal LayerOf::terminal(const nn::TensorDef& tensor,
                           const std::shared_ptr<const LayerOf>& self) const {
  size_t first = static_cast<size_t>(def.forward().inputs.size());
  return {.name = std::string(tensor.name),
          .role = tensor.is_state ? Role::state : Role::parameter,
          .shape = shape(tensor.shape, false),
          .initial = [&tensor, self, first](const InitialCall& call) {
            return tensor.initial(self->attrs.data,
                                  {call.shape, call.block[first], call.type, call.key});
          }};
}

Tensors LayerOf::compute(const BlockCall& call) const {
  auto inputs = call.in.begin() + def.forward().inputs.size();
  Tensors in(call.in.begin(), inputs), held;
  for (const nn::TensorDef& tensor : def.tensors)
    held.push_back(nn::has_tensor(def, tensor, attrs.data) ? *inputs++ : Tensor());
  Tensor out = nn::call_layer(
      def, def.forward(), attrs.data,
      {.layer = def.name, .in = in, .held = held, .training = call.training, .key = call.key});
  Tensors results{std::move(out)};
  for (int i = 0; i < def.tensors.size(); ++i)
    if (const Tensor& now = held[static_cast<size_t>(i)]; now && def.tensors[i].is_state)
      results.push_back(now);
  return results;
}

}  // namespace

Block layer_block(const nn::LayerDef& def, const AttrBuffer& attrs) {
  auto layer = std::make_shared<LayerOf>(LayerOf{def, attrs});
  nn::prepare_attrs(def, layer->attrs.data, def.name, true);
  BlockDef block{.kind = std::string(def.name), .terminals = {}, .settings = layer->settings()};
  for (const Field& f : layer->fields().items)
    if (f.kind == FieldKind::integer && nn::is_size(def, f) && !left_open(def, f))
      block.sizes.emplace(f.name, *static_cast<int64_t*>(f.at));
  for (const nn::MultipleDef& m : def.multiples) {
    int64_t times = block.sizes.at(std::string(m.times));
    if (times > 1) block.multiples.push_back({std::string(m.whole), times, std::string(m.part)});
  }
  const nn::FunctionDef& forward = def.forward();
  for (const nn::InputDef& in : forward.inputs) {
    bool first = in.name == "x" || forward.inputs.size() == 1;
    block.terminals.push_back({.name = first ? "input" : std::string(in.name),
                               .shape = layer->shape(in.shape, true),
                               .usual = in.usual});
  }
  for (const nn::TensorDef& tensor : def.tensors)
    if (nn::has_tensor(def, tensor, attrs.data))
      block.terminals.push_back(layer->terminal(tensor, layer));
  std::string_view output = forward.result ? forward.result(layer->attrs.data) : forward.output;
  block.terminals.push_back(
      {.name = "output", .role = Role::output, .shape = layer->shape(output, true)});
  block.draws = def.draws ? Draws::in_training : Draws::never;
  block.same_type = true;
  block.compute = [layer](const BlockCall& call) { return layer->compute(call); };
  return block;
}

Block layer_block(const nn::LayerDef& def, const void* const* fields) {
  AttrBuffer attrs;
  pack(*def.attrs, attrs.data, fields);
  return layer_block(def, attrs);
}

}  // namespace tn::model
