#pragma once
// Layouts: which digits of which dimensions of a tensor are divided among the workers of a mesh.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/type.h"
#include "tenon/mesh.h"

namespace tn {

/// The place of a mesh axis in a dimension of extent n: the dimension counts as [radix, parts,
/// n / (radix·parts)], and the middle digit is dealt to the workers. Radix 1 divides into blocks;
/// radix 3 divides each third of a fused q, k, v.
struct Digit {
  int dim = -1;  // -1: the axis does not divide the tensor
  int64_t radix = 1;
  explicit operator bool() const { return dim >= 0; }
  friend bool operator==(const Digit&, const Digit&) = default;
};

/// A digit for each axis of the mesh. A worker holds the elements whose digits are its coordinates.
struct Layout {
  std::vector<Digit> digits;
  uint32_t partial = 0;  // mesh axes along which the workers hold terms of a fold
  uint32_t stored = 0;   // mesh axes that divide the tensor in memory only; ops gather it

  Layout() = default;
  explicit Layout(const Mesh& mesh) : digits(static_cast<size_t>(mesh.count())) {}
  Digit& operator[](int axis) { return digits[static_cast<size_t>(axis)]; }
  const Digit& operator[](int axis) const { return digits[static_cast<size_t>(axis)]; }
  bool is_stored(int axis) const { return stored >> axis & 1; }
  bool is_partial(int axis) const { return partial >> axis & 1; }
  /// Whether every worker holds the whole tensor.
  bool is_whole() const;
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Whether `extent` has this digit: radix·parts divides it.
bool has_digit(Dim extent, int64_t radix, int64_t parts);
/// Whether `digit` can be added for `axis`: its dimension has it, and no other axis overlaps.
bool has_room(const Mesh& mesh, const Layout& layout, const Shape& shape, int axis, Digit digit);
/// The radix of a digit in what a worker holds, where the digits in front of it are gone.
int64_t local_radix(const Mesh& mesh, const Layout& layout, int axis, Digit digit);
/// The shape and type of what a worker holds.
Shape local_shape(const Mesh& mesh, const Layout& layout, Shape shape);
TypeRef local_type(const Mesh& mesh, const Layout& layout, TypeRef type);

/// "stage=0": where in the whole mesh a part is.
std::string coordinates_text(const Mesh& part);
/// From "data=4, model=2:8".
Mesh parse_mesh(std::string_view text);
/// "@[data,-,model:3]": a dimension has "-", or axes with their radix where it is not 1, joined by
/// "+". Then "stored(data)" and "partial(model)".
std::string to_text(const Mesh& mesh, const Layout& layout, int rank);
/// The inverse; without a radix an axis comes after those named before it. Fails where `type` has
/// no such digits.
Layout parse_layout(std::string_view text, const Mesh& mesh, const Type& type);
/// Axis k of `mesh_axes`, which commas separate, divides dimension `axes[k]`. Fails as above.
Layout layout_of(const Mesh& mesh, std::string_view mesh_axes, const Axes& axes, const Type& type);

}  // namespace tn
