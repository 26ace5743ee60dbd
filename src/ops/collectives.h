#pragma once
// The attributes of collectives. Tensors are divided by digits, as in ir/mesh_layout.h.
#include "ir/opdef.h"

namespace tn::ops {

/// The workers along one axis of a mesh.
struct GroupAttrs {
  std::string_view mesh_axis;
  int64_t workers = 1;
  static constexpr void fields(auto& a, auto&& f) {
    f("mesh_axis", a.mesh_axis, required), f("workers", a.workers, required);
  }
};

enum class AllFold : uint8_t { prod, max, min, all, any };
inline constexpr std::string_view kAllFolds[] = {"prod", "max", "min", "all", "any"};
constexpr ChoiceNames choice_names(AllFold) { return kAllFolds; }

struct AllFoldAttrs {
  std::string_view mesh_axis;
  int64_t workers = 1;
  AllFold mode = AllFold::max;
  static constexpr void fields(auto& a, auto&& f) {
    f("mesh_axis", a.mesh_axis, required), f("workers", a.workers, required);
    f("mode", a.mode, required);
  }
};

/// One of the workers along an axis of a mesh.
struct RootAttrs {
  std::string_view mesh_axis;
  int64_t workers = 1, root = 0;
  static constexpr void fields(auto& a, auto&& f) {
    f("mesh_axis", a.mesh_axis, required), f("workers", a.workers, required);
    f("root", a.root, required);
  }
};

/// The digit of extent `workers` that the coordinate of a worker selects: `axis` of the whole
/// tensor counts as [radix, workers, rest]. Gathers of one value with another `use` are kept apart:
/// in between, the whole value needs no memory.
struct DigitAttrs {
  std::string_view mesh_axis;
  int64_t workers = 1;
  Axis axis;
  int64_t radix = 1, use = 0;
  static constexpr void fields(auto& a, auto&& f) {
    f("mesh_axis", a.mesh_axis, required), f("workers", a.workers, required);
    f("axis", a.axis, required), f("radix", a.radix), f("use", a.use);
  }
};

/// Divided by the digit at `axis` and `radix` before, by that at `to_axis` and `to_radix` after.
struct ExchangeAttrs {
  std::string_view mesh_axis;
  int64_t workers = 1;
  Axis axis;
  int64_t radix = 1;
  Axis to_axis;
  int64_t to_radix = 1;
  static constexpr void fields(auto& a, auto&& f) {
    f("mesh_axis", a.mesh_axis, required), f("workers", a.workers, required);
    f("axis", a.axis, required), f("radix", a.radix);
    f("to_axis", a.to_axis, required), f("to_radix", a.to_radix);
  }
};

/// Another worker of a group, which a message is for.
struct SendAttrs {
  std::string_view mesh_axis;
  int64_t workers = 1, peer = 0;
  static constexpr void fields(auto& a, auto&& f) {
    f("mesh_axis", a.mesh_axis, required), f("workers", a.workers, required);
    f("peer", a.peer, required);
  }
};

/// Another worker of a group, which a message comes from, and what it holds.
struct ReceiveAttrs {
  std::string_view mesh_axis;
  int64_t workers = 1, peer = 0;
  Shape shape;
  DType dtype = DType::f32;
  static constexpr void fields(auto& a, auto&& f) {
    f("mesh_axis", a.mesh_axis, required), f("workers", a.workers, required);
    f("peer", a.peer, required), f("shape", a.shape, required), f("dtype", a.dtype, required);
  }
};

/// Whether workers compute the op together. The first attribute is the axis of the mesh.
bool is_collective(const OpDef& op);
/// Whether it needs other workers: collectives, broadcasts and messages.
bool needs_workers(const OpDef& op);

}  // namespace tn::ops
