#include <cstring>

#include "ir/body.h"
#include "ir/rewrite.h"

namespace tn {

std::vector<Replacement> replacements(std::span<const Binding> sizes) {
  std::vector<Replacement> list;
  for (const Binding& b : sizes) list.push_back({b.symbol, Dim(b.value)});
  return list;
}

static bool substitute(Shape& shape, std::span<const Replacement> replacements) {
  bool changed = false;
  for (Dim& d : shape) {
    if (d.is_const() || d.is_inferred()) continue;
    Dim now = substitute(d, replacements);
    changed |= now != d;
    d = now;
  }
  return changed;
}

TypeRef substitute(TypeRef type, std::span<const Replacement> replacements) {
  if (type->elements > 0) return type;  // an empty one may have symbols
  Type now = *type;
  return substitute(now.shape, replacements) ? intern(now) : type;
}

static const Attrs* substitute(const Attrs* attrs, std::span<const Replacement> replacements) {
  if (!attrs) return nullptr;
  std::vector<char> copy(attrs->data, attrs->data + attrs->kind->size);
  bool changed = false;
  for (const Field& f : list_fields(*attrs->kind, copy.data()).items) {
    if (f.set && !*f.set) continue;
    if (f.kind == FieldKind::shape) changed |= substitute(*static_cast<Shape*>(f.at), replacements);
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
