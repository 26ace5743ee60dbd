#include <cstring>

#include "ir/body.h"
#include "ir/rewrite.h"

namespace tn {

std::vector<Replacement> replacements(std::span<const Binding> sizes) {
  std::vector<Replacement> list;
  for (const Binding& b : sizes) list.push_back({b.symbol, Dim(b.value)});
  return list;
}

/// Of a size, an offset, or a list of them: whether it changed.
template <class T>
static bool replace(T& value, std::span<const Replacement> replacements) {
  bool changed = false;
  if constexpr (requires { value.begin(); }) {
    for (auto& item : value) changed |= replace(item, replacements);
  } else {
    if (value.is_const() || identical(value, T(-1))) return false;
    T now = substitute(value, replacements);
    changed = !identical(now, value);
    value = now;
  }
  return changed;
}

TypeRef substitute(TypeRef type, std::span<const Replacement> replacements) {
  if (type->elements > 0) return type;  // an empty one may have symbols
  Type now = *type;
  return replace(now.shape, replacements) ? intern(now) : type;
}

static const Attrs* substitute(const Attrs* attrs, std::span<const Replacement> replacements) {
  if (!attrs) return nullptr;
  std::vector<char> copy(attrs->data, attrs->data + attrs->kind->size);
  bool changed = false;
  for (const Field& f : list_fields(*attrs->kind, copy.data()).items) {
    if (f.set && !*f.set) continue;
    if (f.kind == FieldKind::size) changed |= replace(*static_cast<Dim*>(f.at), replacements);
    if (f.kind == FieldKind::shape) changed |= replace(*static_cast<Shape*>(f.at), replacements);
    if (f.kind == FieldKind::offsets)
      changed |= replace(*static_cast<Offsets*>(f.at), replacements);
    if (f.kind != FieldKind::graph) continue;
    GraphRef& body = *static_cast<GraphRef*>(f.at);
    GraphRef now = intern(substitute(*body, replacements));
    changed |= now != body;
    body = now;
  }
  return changed ? intern(*attrs->kind, copy.data()) : attrs;
}

Graph substitute(const Graph& graph, std::span<const Replacement> replacements) {
  Graph out = graph;
  if (replacements.empty()) return out;
  for (TypeRef& type : out.types) type = substitute(type, replacements);
  for (GraphOp& op : out.ops) op.attrs = substitute(op.attrs, replacements);
  return out;
}

}  // namespace tn
