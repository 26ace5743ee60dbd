#include "ir/mesh_layout.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace tn {

int64_t Mesh::workers() const {
  int64_t count = 1;
  for (const MeshAxis& axis : axes)  // of any text: it does not overflow
    count = count > 0 && axis.size > INT64_MAX / count ? INT64_MAX : count * axis.size;
  return count;
}

int Mesh::find(std::string_view name) const {
  auto at = std::ranges::find(axes, name, &MeshAxis::name);
  return at == axes.end() ? -1 : static_cast<int>(at - axes.begin());
}

Mesh Mesh::at(std::string_view axis, int64_t coordinate) const {
  int own = find(axis);
  if (own < 0) fail("mesh: at names an axis that the mesh does not have: '{}'", axis);
  if (coordinate < 0 || coordinate >= (*this)[own].size)
    fail(Hint{"workers are counted from 0"}, "mesh: there is no {}={}: the axis has {} worker{}",
         axis, coordinate, (*this)[own].size, (*this)[own].size == 1 ? "" : "s");
  Mesh part = *this;
  if (!is_part()) part.whole_axes = axes, part.fixed.assign(axes.size(), -1);
  for (size_t t = 0; t < part.fixed.size(); ++t)
    if (part.whole_axes[t].name == axis) part.fixed[t] = coordinate;
  part.axes.erase(part.axes.begin() + own);
  return part;
}

Mesh Mesh::whole() const { return is_part() ? Mesh{whole_axes} : *this; }

bool Layout::is_whole() const {
  return partial == 0 && std::ranges::none_of(digits, [](const Digit& d) { return bool(d); });
}

bool has_digit(Dim extent, int64_t radix, int64_t parts) {
  return !extent.is(0) && divides(radix * parts, extent);
}

bool has_room(const Mesh& mesh, const Layout& layout, const Shape& shape, int axis, Digit digit) {
  int64_t end = digit.radix * mesh[axis].parts;
  if (!has_digit(shape[digit.dim], digit.radix, mesh[axis].parts)) return false;
  for (int u = 0; u < mesh.count(); ++u) {
    if (u == axis || layout[u].dim != digit.dim) continue;
    int64_t other = layout[u].radix, other_end = other * mesh[u].parts;
    if (other % end != 0 && digit.radix % other_end != 0) return false;
  }
  return true;
}

int64_t local_radix(const Mesh& mesh, const Layout& layout, int axis, Digit digit) {
  int64_t radix = digit.radix;
  for (int u = 0; u < mesh.count(); ++u) {
    bool in_front = u != axis && layout[u].dim == digit.dim && layout[u].radix < digit.radix;
    if (in_front) radix /= mesh[u].size;
  }
  return radix;
}

Shape local_shape(const Mesh& mesh, const Layout& layout, Shape shape) {
  for (int t = 0; t < mesh.count(); ++t)
    if (layout[t]) shape[layout[t].dim] = floor_div(shape[layout[t].dim], mesh[t].size);
  return shape;
}

TypeRef local_type(const Mesh& mesh, const Layout& layout, TypeRef type) {
  return intern(Type{type->dtype, local_shape(mesh, layout, type->shape), type->device});
}

namespace {

std::string names_in(const Mesh& mesh, uint32_t set) {
  std::vector<std::string_view> names;
  for (int t = 0; t < mesh.count(); ++t)
    if (set >> t & 1) names.push_back(mesh[t].name);
  return format("{}", join(names, ","));
}

std::string_view without_spaces(std::string_view s) {
  s.remove_prefix(std::min(s.find_first_not_of(' '), s.size()));
  return s.substr(0, s.find_last_not_of(' ') + 1);
}

/// The pieces between separators, trimmed; none of an empty text.
std::vector<std::string_view> pieces(std::string_view text, char separator) {
  std::vector<std::string_view> list;
  while (!without_spaces(text).empty()) {
    size_t end = std::min(text.find(separator), text.size());
    list.push_back(without_spaces(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return list;
}

/// The positive number that is all of `text`; 0 when it is none.
int64_t count_in(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool is_all = error == std::errc() && end == text.data() + text.size();
  return is_all && value > 0 ? value : 0;
}

int find_axis(const Mesh& mesh, std::string_view name) {
  int axis = mesh.find(name);
  if (axis < 0) fail("layout: the mesh has no axis '{}': {}", name, to_text(mesh));
  return axis;
}

}  // namespace

std::string coordinates_text(const Mesh& part) {
  std::vector<std::string> fixed;
  for (size_t t = 0; t < part.fixed.size(); ++t)
    if (part.fixed[t] >= 0)
      fixed.push_back(format("{}={}", part.whole_axes[t].name, part.fixed[t]));
  return format("{}", join(fixed, ", "));
}

std::string to_text(const Mesh& mesh) {
  std::vector<std::string> axes;
  for (const MeshAxis& axis : mesh.axes) {
    axes.push_back(format("{}={}", axis.name, axis.size));
    if (axis.parts != axis.size) axes.back() += format(":{}", axis.parts);
  }
  std::string text = format("{}", join(axes, ", "));
  if (!mesh.is_part()) return text;
  return format("{}{}at {} of {}", text, text.empty() ? "" : " ", coordinates_text(mesh),
                to_text(mesh.whole()));
}

/// "data=2 at stage=0 of stage=2, data=2", from "at" on.
static Mesh parse_part(std::string_view own, std::string_view rest, std::string_view text) {
  constexpr std::string_view kOf = " of ";
  size_t of = rest.find(kOf);
  std::string_view whole = rest.substr(std::min(of + kOf.size(), rest.size()));
  if (of == rest.npos || whole.starts_with("at ") || whole.find(" at ") != whole.npos)
    fail("mesh: a part of a mesh is 'at axis=number of axes': '{}'", text);
  Mesh part = parse_mesh(whole);
  for (std::string_view piece : pieces(rest.substr(0, of), ',')) {
    size_t sign = std::min(piece.find('='), piece.size());
    std::string_view number = piece.substr(std::min(sign + 1, piece.size()));
    bool is_zero = number == "0";
    int64_t at = is_zero ? 0 : count_in(number);
    part = part.at(piece.substr(0, sign), at || is_zero ? at : -1);
  }
  if (!part.is_part() || to_text(part) != format("{}{}at {}", own, own.empty() ? "" : " ", rest))
    fail("mesh: a part of a mesh is 'at axis=number of axes': '{}'", text);
  return part;
}

Mesh parse_mesh(std::string_view text) {
  constexpr std::string_view kAt = "at ";
  size_t at = text.starts_with(kAt) ? 0 : text.find(" at ");
  if (at != text.npos)
    return parse_part(text.substr(0, at), text.substr(at + kAt.size() + (at > 0)), text);
  Mesh mesh;
  for (std::string_view piece : pieces(text, ',')) {
    size_t sign = std::min(piece.find('='), piece.size());
    std::string_view counts = piece.substr(std::min(sign + 1, piece.size()));
    size_t colon = std::min(counts.find(':'), counts.size());
    MeshAxis axis{std::string(piece.substr(0, sign)), count_in(counts.substr(0, colon)), 1};
    axis.parts = colon < counts.size() ? count_in(counts.substr(colon + 1)) : axis.size;
    bool fits = axis.size > 0 && axis.parts > 0 && axis.parts % axis.size == 0;
    if (axis.name.empty() || !fits)
      fail(Hint{"write name=workers or name=workers:parts"},
           "mesh: parts are a multiple of the workers: '{}'", piece);
    if (mesh.find(axis.name) >= 0 || mesh.count() == Mesh::kMostAxes)
      fail("mesh: at most {} axes, each with a name of its own: '{}'", Mesh::kMostAxes, text);
    mesh.axes.push_back(std::move(axis));
  }
  return mesh;
}

std::string to_text(const Mesh& mesh, const Layout& layout, int rank) {
  std::vector<std::string> dims;
  for (int k = 0; k < rank; ++k) {
    std::vector<int> here;
    for (int t = 0; t < mesh.count(); ++t)
      if (layout[t].dim == k) here.push_back(t);
    std::ranges::sort(here, {}, [&](int t) { return layout[t].radix; });
    std::vector<std::string> names;
    int64_t next = 1;
    for (int t : here) {
      bool follows = layout[t].radix == next;
      names.push_back(follows ? mesh[t].name : format("{}:{}", mesh[t].name, layout[t].radix));
      next = layout[t].radix * mesh[t].parts;
    }
    dims.push_back(names.empty() ? "-" : format("{}", join(names, "+")));
  }
  std::string text = format("@[{}]", join(dims, ","));
  if (layout.stored) text += format(" stored({})", names_in(mesh, layout.stored));
  if (layout.partial) text += format(" partial({})", names_in(mesh, layout.partial));
  return text;
}

static void parse_dimension(std::string_view text, int dim, const Mesh& mesh, const Type& type,
                            Layout& layout) {
  int64_t next = 1;
  for (std::string_view piece : text == "-" ? std::vector<std::string_view>() : pieces(text, '+')) {
    size_t colon = std::min(piece.find(':'), piece.size());
    int axis = find_axis(mesh, piece.substr(0, colon));
    int64_t radix = colon < piece.size() ? count_in(piece.substr(colon + 1)) : next;
    Digit digit{dim, radix};
    bool is_large = radix > INT64_MAX / mesh[axis].parts;
    if (radix == 0 || is_large || layout[axis] || !has_room(mesh, layout, type.shape, axis, digit))
      fail(Hint{format("the extent must be divisible by the radix times {}", mesh[axis].parts)},
           "layout: axis '{}' does not fit dimension {} of {}: '{}'", mesh[axis].name, dim, type,
           text);
    layout[axis] = digit;
    next = radix * mesh[axis].parts;
  }
}

/// What to do about an extent that is no multiple of the parts.
static std::string how_to_divide(Dim extent, int64_t parts) {
  if (!extent.is_const()) return "an extent that is divided must be a constant";
  std::string text;
  if (int64_t n = extent.is_const() ? extent.value() : 0; n % parts) {
    text = format("pad it from {} to {}, ", n, (n / parts + 1) * parts);
    if (n > parts)
      text += format("drop the last {} (tn.data.batches(..., drop_last=True)), ", n % parts);
  }
  return text + "choose another dimension, or leave it whole";
}

Layout layout_of(const Mesh& mesh, std::string_view mesh_axes, const Axes& axes, const Type& type) {
  std::vector<std::string_view> names = pieces(mesh_axes, ',');
  if (static_cast<int>(names.size()) != axes.size())
    fail("shard: {} axes of the mesh for {} dimensions", names.size(), axes.size());
  Layout layout(mesh);
  std::vector<int64_t> next(static_cast<size_t>(type.rank()), 1);  // radix, by dimension
  for (int k = 0; k < axes.size(); ++k) {
    int axis = mesh.find(names[static_cast<size_t>(k)]), dim = axes[k].i;
    if (axis < 0)
      fail(Hint{format("its axes are {}", to_text(mesh))}, "shard: the mesh has no axis '{}'",
           names[static_cast<size_t>(k)]);
    if (dim < 0 || dim >= type.rank()) fail("shard: there is no dimension {}: {}", dim, type);
    int64_t& radix = next[static_cast<size_t>(dim)];
    if (layout[axis]) fail("shard: '{}' divides two dimensions: {}", mesh[axis].name, type);
    if (!has_room(mesh, layout, type.shape, axis, {dim, radix}))
      fail(Hint{how_to_divide(type.shape[dim], radix * mesh[axis].parts)},
           "shard: axis '{}' cannot divide dimension {} into {} equal parts: {}", mesh[axis].name,
           dim, radix * mesh[axis].parts, type);
    if (mesh[axis].parts == 1) continue;  // whole as well
    layout[axis] = {dim, radix};
    radix *= mesh[axis].parts;
  }
  return layout;
}

Layout parse_layout(std::string_view text, const Mesh& mesh, const Type& type) {
  Layout layout(mesh);
  std::string_view whole = text = without_spaces(text);
  size_t end = text.find(']');
  std::vector<std::string_view> dims;
  if (text.starts_with("@[") && end != text.npos) dims = pieces(text.substr(2, end - 2), ',');
  if (!text.starts_with("@[") || end == text.npos || static_cast<int>(dims.size()) != type.rank())
    fail(Hint{"write @[data,-]: a name or '-' for each dimension"},
         "layout: '{}' does not describe {}", whole, type);
  for (int k = 0; k < type.rank(); ++k)
    parse_dimension(dims[static_cast<size_t>(k)], k, mesh, type, layout);
  for (std::string_view rest : pieces(without_spaces(text.substr(end + 1)), ' ')) {
    size_t open = std::min(rest.find('('), rest.size());
    bool is_stored = rest.substr(0, open) == "stored";
    if ((!is_stored && rest.substr(0, open) != "partial") || !rest.ends_with(')'))
      fail("layout: 'stored(...)' or 'partial(...)' was expected: '{}'", rest);
    for (std::string_view name : pieces(rest.substr(open + 1, rest.size() - open - 2), ','))
      (is_stored ? layout.stored : layout.partial) |= 1u << find_axis(mesh, name);
  }
  return layout;
}

}  // namespace tn
