// What differs between two calls of a compiled function, for readers.
#include <algorithm>
#include <bit>

#include "base/error.h"
#include "compiled/call_arguments.h"

namespace tn::python {

namespace {

std::string number_text(const CallKey::Number& n) {
  if (!n.real) return format("{}", static_cast<int64_t>(n.bits));
  return short_repr(nb::float_(std::bit_cast<double>(n.bits)));
}

template <class T>
const T* with_leaf(const std::vector<T>& list, size_t leaf) {
  auto found = std::ranges::find(list, leaf, &T::leaf);
  return found == list.end() ? nullptr : &*found;
}

std::string part_text(const CallKey::Part& part) {
  if (part.structure) return part.structure->text();
  return part.leaves == 1 ? "a single value" : format("{} values", part.leaves);
}

}  // namespace

std::string short_repr(nb::handle o) {
  constexpr size_t kLongestText = 60;
  try {  // the user's may fail
    std::string text = nb::repr(o).c_str();
    if (text.size() > kLongestText) text.replace(kLongestText, text.size(), "...");
    return text;
  } catch (nb::python_error&) {
    return format("a {}", type_name(o.ptr()));
  }
}

std::string CallKey::name(size_t part, const Names& names) const {
  if (part < positional) return part < names.size() ? names[part] : format("argument {}", part);
  size_t keyword = part - positional;
  size_t named = keywords.is_valid() ? nb::len(keywords) : 0;
  if (keyword < named) return nb::str(keywords[keyword]).c_str();
  return keyword == named ? "inputs" : "gradients of inputs";
}

std::string CallKey::path(size_t leaf, const Names& names) const {
  size_t part = 0;
  for (; leaf >= parts[part].leaves; ++part) leaf -= parts[part].leaves;
  return name(part, names) + (parts[part].structure ? parts[part].structure->path(leaf) : "");
}

std::pair<std::string, nb::object> CallKey::place_of_data(size_t k, const Names& names) const {
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].structure) continue;
    const std::vector<Structure::Node>& nodes = parts[i].structure->nodes();
    for (size_t at = 0; at < nodes.size(); ++at) {
      if (!nodes[at].data.is_valid() || k-- > 0) continue;
      bool named = nodes[at].type->kind == TreeType::Kind::dataclass;
      return {name(i, names) + parts[i].structure->path_of_node(at),
              named ? nodes[at].type->constants : nb::none()};
    }
  }
  return {"the arguments", nb::none()};
}

nb::list CallKey::tree_classes() const {
  nb::list found;
  for (const Part& part : parts) {
    if (!part.structure) continue;
    for (const Structure::Node& node : part.structure->nodes())
      if (node.type->cls.is_valid() && !PySequence_Contains(found.ptr(), node.type->cls.ptr()))
        found.append(node.type->cls);
  }
  return found;
}

std::string CallKey::text(size_t leaf) const {
  if (const Number* n = with_leaf(numbers, leaf)) return number_text(*n);
  if (const Constant* c = with_leaf(constants, leaf)) {
    PyObject* value = c->weak ? referent(c->value.ptr()) : c->value.ptr();
    return short_repr(value ? value : Py_None);
  }
  return format("{}", *types[static_cast<size_t>(std::ranges::find(at, leaf) - at.begin())]);
}

bool CallKey::has_arguments_of(const CallKey& other) const {
  return positional == other.positional && parts.size() == other.parts.size() &&
         keywords.is_valid() == other.keywords.is_valid() &&
         (!keywords.is_valid() || same_object(keywords.ptr(), other.keywords.ptr()));
}

std::string CallKey::arguments_text() const {
  std::string text = format("of {} positional arguments", positional);
  if (keywords.is_valid()) text += format(" and {}", short_repr(keywords));
  return text;
}

std::vector<Difference> CallKey::differences(const CallKey& known, const Names& names) const {
  if (!has_arguments_of(known))
    return {{TraceReason::structure, "the call", known.arguments_text(), arguments_text()}};
  std::vector<Difference> out;
  for (size_t i = 0; i < parts.size(); ++i) {
    std::string from = part_text(known.parts[i]), to = part_text(parts[i]);
    if (known.parts[i].leaves != parts[i].leaves || from != to)
      out.push_back({TraceReason::structure, name(i, names), std::move(from), std::move(to)});
  }
  if (!out.empty()) return out;
  size_t leaves = 0;
  for (const Part& part : parts) leaves += part.leaves;
  for (size_t leaf = 0; leaf < leaves; ++leaf) {
    auto now = std::ranges::find(at, leaf), before = std::ranges::find(known.at, leaf);
    if (now != at.end() && before != known.at.end()) {
      add_differences(path(leaf, names),
                      known.types[static_cast<size_t>(before - known.at.begin())],
                      types[static_cast<size_t>(now - at.begin())], out);
      bool kept = this->kept[static_cast<size_t>(now - at.begin())];
      if (kept != known.kept[static_cast<size_t>(before - known.at.begin())])
        out.push_back({TraceReason::structure, path(leaf, names) + ".requires_grad",
                       kept ? "False" : "True", kept ? "True" : "False"});
      continue;
    }
    const Number *a = with_leaf(known.numbers, leaf), *b = with_leaf(numbers, leaf);
    if (a && b && a->real == b->real && (a->open || a->bits == b->bits)) continue;
    const Constant *c = with_leaf(known.constants, leaf), *d = with_leaf(constants, leaf);
    if (c && d && c->is(*d)) continue;
    out.push_back({a && b ? TraceReason::number : TraceReason::constant, path(leaf, names),
                   known.text(leaf), text(leaf)});
  }
  if (out.empty() && !known.is_like(*this))  // what nodes of trees hold besides leaves
    out.push_back({TraceReason::structure, "the arguments", "other constants", "these"});
  return out;
}

}  // namespace tn::python
