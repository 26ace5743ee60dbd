#pragma once
// Layouts: which digits of which dimensions of a tensor are divided among the workers of a mesh.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/type.h"

namespace tn {

/// A named axis of a mesh.
struct MeshAxis {
  std::string name;
  int64_t size = 1;   // workers along the axis
  int64_t parts = 1;  // into which folds are dealt: `size` times a power of two, any for one worker
  int64_t parts_per_worker() const { return parts / size; }
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

/// Workers in a grid. Worker numbers are row-major in the coordinates.
struct Mesh {
  static constexpr int kMostAxes = 8;
  std::vector<MeshAxis> axes;

  int count() const { return static_cast<int>(axes.size()); }
  const MeshAxis& operator[](int axis) const { return axes[static_cast<size_t>(axis)]; }
  int64_t workers() const;
  /// The number of the axis of this name; -1 when there is none.
  int find(std::string_view name) const;
  friend bool operator==(const Mesh&, const Mesh&) = default;
};

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

/// "data=4, model=2:8": names, sizes, and parts where they are not the sizes.
std::string to_text(const Mesh& mesh);
Mesh parse_mesh(std::string_view text);
/// "@[data,-,model:3]": a dimension has "-", or axes with their radix where it is not 1, joined by
/// "+". Then "stored(data)" and "partial(model)".
std::string to_text(const Mesh& mesh, const Layout& layout, int rank);
/// The inverse; without a radix an axis comes after those named before it. Fails where `type` has
/// no such digits.
Layout parse_layout(std::string_view text, const Mesh& mesh, const Type& type);

}  // namespace tn
