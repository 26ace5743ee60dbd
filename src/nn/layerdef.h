#pragma once
// LayerDef: everything the library knows about a layer, as one constant value. The class in C++,
// the class in Python and the block of logical models follow from it (docs/design/031-layers.md).
//
//     constinit const LayerDef Linear = Layer<LinearAttrs>{.name = "Linear", …};
#include <algorithm>
#include <optional>
#include <span>

#include "ir/opdef.h"
#include "nn/checks.h"
#include "tenon/callback.h"

namespace tn::nn {

/// What a parameter or a state is drawn for.
struct DrawCall {
  const Shape& shape;
  const Shape& first;  // of the first tensor of the layer: a bias is drawn as its weight is
  DType type = DType::f32;
  Tensor key = {};  // null: from the random state of the thread
};
using Draw = Tensor (*)(const void* attrs, const DrawCall& call);

/// A tensor of the layer: a parameter, or state that calls replace and training leaves alone.
/// Without an initial value it is an argument that may be left out, and is not trained.
struct TensorDef {
  std::string_view name, shape;
  Draw initial = nullptr;
  std::string_view when = {};  // the attributes, "affine bias", that are all true if it exists
  bool is_state = false;
  bool (*exists)(const void* attrs) = nullptr;  // where `when` cannot tell

  constexpr bool is_given() const { return initial == nullptr; }
};

/// Shapes are sizes: numbers, attributes, names of any size, and at most one "..." for any axes.
/// "*" is any shape; " | " separates shapes, of which the last is the one that errors show. Sizes
/// of tensors may be multiples, "3*dims".
struct InputDef {
  std::string_view name, shape = "*";
  std::optional<DType> usual = {};  // of an input of whose type a model says nothing
  std::string_view (*shape_of)(const void* attrs) = nullptr;  // where it depends on them
  bool optional = false;
  int count = 1;                   // of tensors: several are a tuple
  bool last = false;               // after the options
  std::string_view terminal = {};  // its name in blocks, where that is another one

  std::string_view shape_for(const void* attrs) const { return shape_of ? shape_of(attrs) : shape; }
};

struct ResultDef {
  std::string_view name, shape = "*";
  int count = 1;                // of tensors: several are a tuple
  std::string_view parts = {};  // the names of several in blocks
};

/// What a layer computes with.
struct LayerCall {
  std::string_view layer;  // its name in errors: that of the class
  const Tensors& in;       // null: left out
  Tensors& held;           // by TensorDef; null: absent. `forward` may replace states
  bool training = false;
  Tensor key = {};  // of draws; null: from the random state of the thread
  const void* options = nullptr;
  Callback<Tensor(int child, const Tensor& x)> call_child = {};

  template <class O>
  const O& options_as() const {
    return *static_cast<const O*>(options);
  }
};

/// A function of a layer: `forward`, and those that Python and C++ call by name.
struct FunctionDef {
  std::string_view name, doc, example = {};
  List<InputDef, 5> inputs;
  std::string_view output = "*";
  std::string_view (*result)(const void* attrs) = nullptr;  // the output, where it depends on them
  List<ResultDef, 2> results = {};                          // in place of one output
  const AttrKind* options = &attr_kind<NoAttrs>;            // given in calls; settings of blocks
  Tensors (*run)(const void* attrs, const LayerCall& call) = nullptr;
};

/// Another library's name of an argument.
struct AlsoCalled {
  std::string_view theirs, ours;
};

/// `times` divides `whole`; shapes call the quotient `part`.
struct MultipleDef {
  std::string_view whole, times, part;
};

struct LayerDef;
/// A layer inside a layer. Its arguments are attributes of the outer one: "dims, dims, bias".
struct ChildDef {
  std::string_view name;
  const LayerDef* layer = nullptr;
  std::string_view arguments;
  std::string_view zeros = {};  // its tensors that begin as zeros
};

struct LayerDef {
  std::string_view name, doc;
  std::string_view example;  // lines of a Python session
  std::string_view module;   // of Python: "linear" of tenon.nn.linear
  std::string_view base;     // the layer that Python's class derives from, or none
  std::string_view shown;    // "{input_dims} -> {output_dims}" in `repr`; "{*shape}": all of a list
  const AttrKind* attrs = &attr_kind<NoAttrs>;
  List<AlsoCalled, 4> also_called;
  std::string_view inferred;      // sizes that blocks may leave out
  std::string_view keyword_only;  // attributes that Python takes by name only
  std::string_view open;          // lists of sizes of which some may be -1, in Python None
  List<MultipleDef, 2> multiples;
  void (*prepare)(void* attrs, std::string_view layer) = nullptr;
  List<TensorDef, 6> tensors;
  List<ChildDef, 2> children;
  List<FunctionDef, 2> functions;  // the first is `forward`
  bool draws = false;              // in training

  const FunctionDef& forward() const { return functions[0]; }
  bool has_state() const {
    return std::ranges::any_of(tensors, [](const TensorDef& t) { return t.is_state; });
  }
};

/// Every layer, by name (generated).
std::span<const LayerDef* const> layer_table();
/// By name; null when unknown.
const LayerDef* find_layer(std::string_view name);

}  // namespace tn::nn
