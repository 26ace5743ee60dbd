// python/tenon/nn/NAME.py: the classes of layers, which hold their class_attributes and tensors.
#include <algorithm>
#include <map>

#include "cli/gen.h"
#include "nn/layer_calls.h"

namespace tn {
namespace {

using nn::FunctionDef;
using nn::LayerDef;

constexpr size_t kPythonColumns = 100;

/// Whether a field holds the name given in place of the numbers of another: users see only that.
bool is_name_field(const Param& p) {
  return p.kind == FieldKind::choice && p.name.ends_with("_by");
}
bool may_be_named(const LayerDef& def, const Param& p) {
  std::vector<Param> all = field_params(*def.attrs);
  return std::ranges::any_of(all, [&](const Param& other) {
    return is_name_field(other) && other.name == p.name + "_by";
  });
}

std::string argument_type(const LayerDef& def, const Param& p) {
  if (nn::has_word(def.open, p.name)) return "int | Sequence[int | None] | None";
  std::string type(names_of(p.kind).python);
  if (p.kind == FieldKind::boolean) type = "bool";
  if (p.kind == FieldKind::choice) type = "str";
  return p.maybe ? type + " | None" : type;
}

/// What an attribute holds: lists are tuples.
std::string held_type(const LayerDef& def, const Param& p) {
  if (nn::has_word(def.open, p.name)) return "tuple[int | None, ...]";
  if (p.kind != FieldKind::ints) return argument_type(def, p);
  return p.maybe ? "tuple[int, ...] | None" : "tuple[int, ...]";
}

/// A default as users write it: a list of one number is that number.
std::string usual_text(const Param& p) {
  std::string_view text = p.python_default;
  return std::string(text.ends_with(",)") ? text.substr(1, text.size() - 3) : text);
}

/// The docstring of a class or a function.
std::string docstring(std::string_view doc, std::string_view example, std::string_view indent) {
  std::string text = wrapped(format("\"\"\"{}", doc), indent, kPythonColumns);
  if (example.empty()) {
    text.pop_back();
    return text + "\"\"\"\n";
  }
  return text + "\n" + wrapped(example, format("{}    ", indent), kPythonColumns) +
         format("{}\"\"\"\n", indent);
}

/// A definition or a call, with an argument a line where it is too long.
std::string python_definition(std::string_view before, const std::vector<std::string>& arguments,
                              std::string_view after, std::string_view indent = "    ") {
  std::string line = format("{}{}({}){}\n", indent, before, join(arguments, ", "), after);
  if (line.size() <= kPythonColumns) return line;
  std::string text = format("{}{}(\n", indent, before);
  for (const std::string& argument : arguments) text += format("{}    {},\n", indent, argument);
  return text + format("{}){}\n", indent, after);
}

std::string class_attributes(const LayerDef& def) {
  std::string text;
  for (const Param& p : field_params(*def.attrs)) {
    if (nn::is_presence(def, p.name) || is_name_field(p)) continue;
    text += format("    {}: {}{}", p.name, held_type(def, p), may_be_named(def, p) ? " | str" : "");
    text += p.required ? "\n" : format(" = {}\n", p.python_default);
  }
  std::vector<std::string> states;
  for (const nn::TensorDef& t : def.tensors) {
    bool may_lack = t.is_given() || !t.when.empty() || t.exists;
    text += format("    {}: tn.Tensor{}\n", t.name, may_lack ? " | None" : "");
    if (t.is_state || t.is_given()) states.push_back(format("\"{}\"", t.name));
  }
  for (const nn::ChildDef& c : def.children) text += format("    {}: {}\n", c.name, c.layer->name);
  if (!states.empty())
    text += format("    buffers = ({}{})\n", join(states, ", "), states.size() == 1 ? "," : "");
  return text.empty() ? "" : "\n" + text;
}

std::string python_constructor(const LayerDef& def) {
  std::vector<std::string> arguments{"self"}, names{format("\"{}\"", def.name), "self"};
  bool named = false;
  for (const Param& p : field_params(*def.attrs)) {
    if (is_name_field(p)) continue;
    if (!named && nn::has_word(def.keyword_only, p.name)) arguments.emplace_back("*"), named = true;
    std::string usual = p.required ? "" : format(" = {}", usual_text(p));
    std::string_view or_name = may_be_named(def, p) ? " | str" : "";
    arguments.push_back(format("{}: {}{}{}", p.name, argument_type(def, p), or_name, usual));
    names.push_back(p.name);
  }
  for (const nn::TensorDef& t : def.tensors) {
    if (!t.is_given()) continue;
    arguments.push_back(format("{}: tn.Tensor | None = None", t.name));
    names.emplace_back(t.name);
  }
  std::vector<std::string> also;
  for (const nn::AlsoCalled& a : def.also_called)
    also.push_back(format("{}=\"{}\"", a.theirs, a.ours));
  std::string text = "\n";
  if (!also.empty()) text += python_definition("@also_called", also, "");
  text += python_definition("def __init__", arguments, " -> None:");
  return text + python_definition("_core._make_layer", names, "", "        ");
}

/// "tn.Tensor", or a tuple of as many
std::string tensors_type(int count) {
  if (count == 1) return "tn.Tensor";
  return format("tuple[{}]",
                join(std::vector<std::string>(static_cast<size_t>(count), "tn.Tensor"), ", "));
}

std::string returned_type(const FunctionDef& f) {
  std::vector<std::string> types;
  for (const nn::ResultDef& r : f.results) types.push_back(tensors_type(r.count));
  if (types.size() < 2) return types.empty() ? "tn.Tensor" : types[0];
  return format("tuple[{}]", join(types, ", "));
}

std::string function_text(const LayerDef& def, const FunctionDef& f) {
  std::vector<std::string> arguments{"self"};
  std::vector<std::string> names{format("\"{}\"", def.name), format("\"{}\"", f.name), "self"};
  auto add_inputs = [&](bool last) {
    for (const nn::InputDef& in : f.inputs) {
      if (in.last != last) continue;
      arguments.push_back(
          format("{}: {}{}", in.name, tensors_type(in.count), in.optional ? " | None = None" : ""));
      names.emplace_back(in.name);
    }
  };
  add_inputs(false);
  for (const Param& p : field_params(*f.options)) {
    std::string usual = p.required ? "" : format(" = {}", p.python_default);
    arguments.push_back(format("{}: {}{}", p.name, argument_type(def, p), usual));
    names.push_back(p.name);
  }
  add_inputs(true);
  std::string text = "\n" + python_definition(format("def {}", f.name), arguments,
                                              format(" -> {}:", returned_type(f)));
  if (!f.doc.empty()) text += docstring(f.doc, f.example, "        ");
  return text + python_definition("return _core._run_layer", names, "", "        ");
}

std::string python_class(const LayerDef& def) {
  std::string text =
      format("\n\nclass {}({}):\n", def.name, def.base.empty() ? "Module" : def.base);
  text += docstring(def.doc, def.example, "    ") + class_attributes(def) + python_constructor(def);
  for (const FunctionDef& f : def.functions) text += function_text(def, f);
  return text + format(
                    "\n    def describe(self) -> str:\n"
                    "        return _core._describe_layer(\"{}\", self)\n",
                    def.name);
}

std::string module_text(const std::vector<const LayerDef*>& layers) {
  std::vector<std::string> names;
  std::string classes;
  for (const LayerDef* def : layers) {
    names.emplace_back(def->name);
    classes += python_class(*def);
  }
  std::map<std::string_view, std::string_view> inside;  // layers of other modules
  for (const LayerDef* def : layers)
    for (const nn::ChildDef& c : def->children) inside[c.layer->module] = c.layer->name;
  auto uses = [&](std::string_view word) { return classes.find(word) != classes.npos; };
  std::string text = "# Generated by `tenon gen` from src/nn/layers; edits are lost.\n";
  text += wrapped(format("\"\"\"The layers {}.\"\"\"", join(names, ", ")), "", kPythonColumns);
  text += "\nfrom __future__ import annotations\n\n";
  if (uses("Sequence[")) text += "from collections.abc import Sequence\n\n";
  text += "import tenon as tn\n\nfrom .. import _core\n";
  if (uses("@also_called")) text += "from .checks import also_called\n";
  for (auto [module, layer] : inside) text += format("from .{} import {}\n", module, layer);
  return text + "from .module import Module\n" + classes;
}

/// What ruff orders imports by: names in capitals are first, and case does not matter.
std::pair<bool, std::string> import_order(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return tolower(c); });
  return {std::ranges::any_of(name, [](unsigned char c) { return islower(c) != 0; }), text};
}

/// The module that has all of them, for `tenon.nn`.
std::string all_layers(const std::map<std::string, std::vector<const LayerDef*>>& modules) {
  std::string text = "# Generated by `tenon gen` from src/nn/layers; edits are lost.\n";
  text += "\"\"\"All layers that have a record.\"\"\"\n\n";
  for (const auto& [name, layers] : modules) {
    std::vector<std::string_view> names;
    for (const LayerDef* def : layers) names.push_back(def->name);
    std::ranges::sort(names, {}, import_order);
    std::string line = format("from .{} import {}\n", name, join(names, ", "));
    if (line.size() > kPythonColumns)
      line = format("from .{} import (\n    {},\n)\n", name, join(names, ",\n    "));
    text += line;
  }
  text += "\n__all__ = [\n";
  for (const LayerDef* def : nn::layer_table()) text += format("    \"{}\",\n", def->name);
  return text + "]\n";
}

}  // namespace

std::vector<GeneratedFile> python_layers() {
  std::map<std::string, std::vector<const LayerDef*>> modules;
  for (const LayerDef* def : nn::layer_table()) modules[std::string(def->module)].push_back(def);
  std::vector<GeneratedFile> files{{"python/tenon/nn/layers.py", all_layers(modules)}};
  for (const auto& [name, layers] : modules)
    files.push_back({format("python/tenon/nn/{}.py", name), module_text(layers)});
  return files;
}

}  // namespace tn
