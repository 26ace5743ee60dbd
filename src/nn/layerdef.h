#pragma once
// LayerDef: everything the library knows about a layer, as one constant value. The class in C++,
// the class in Python and the block of logical models follow from it (docs/design/031-layers.md).
//
//     constinit const LayerDef Linear = Layer<LinearAttrs>{.name = "Linear", …};
#include <algorithm>
#include <optional>
#include <span>

#include "nn/checks.h"
#include "ops/rules.h"

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
struct TensorDef {
  std::string_view name, shape;
  Draw initial = nullptr;
  std::string_view when = {};  // the attributes, "affine bias", that are all true if it exists
  bool is_state = false;
};

/// Shapes are sizes: numbers, attributes, names of any size, and at most one "..." for any axes.
/// "*" is any shape; " | " separates shapes, of which the last is the one that errors show.
struct InputDef {
  std::string_view name, shape;
  std::optional<DType> usual = {};  // of an input of whose type a model says nothing
};

/// What a layer computes with.
struct LayerCall {
  std::string_view layer;  // its name in errors: that of the class
  const Tensors& in;
  Tensors& held;  // by TensorDef; null: absent. `forward` may replace states
  bool training = false;
  Tensor key = {};  // of draws; null: from the random state of the thread
};

/// A function of a layer: `forward`, and those that Python and C++ call by name.
struct FunctionDef {
  std::string_view name, doc;
  List<InputDef, 3> inputs;
  std::string_view output = "*";
  std::string_view (*result)(const void* attrs) = nullptr;  // the output, where it depends on them
  Tensor (*run)(const void* attrs, const LayerCall& call) = nullptr;
};

/// Another library's name of an argument.
struct AlsoCalled {
  std::string_view theirs, ours;
};

/// `times` divides `whole`; shapes call the quotient `part`.
struct MultipleDef {
  std::string_view whole, times, part;
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
  List<MultipleDef, 2> multiples;
  void (*prepare)(void* attrs, std::string_view layer) = nullptr;
  List<TensorDef, 6> tensors;
  List<FunctionDef, 2> functions;  // the first is `forward`
  bool draws = false;              // in training

  const FunctionDef& forward() const { return functions[0]; }
  bool has_state() const {
    return std::ranges::any_of(tensors, [](const TensorDef& t) { return t.is_state; });
  }
};

namespace layers {

/// Checks attributes and makes them canonical. `layer` begins errors.
template <class A>
struct AttrsRule {
  void (*f)(void*, std::string_view) = nullptr;
  constexpr AttrsRule() = default;
  template <class L>
  constexpr AttrsRule(L) {
    static_assert(std::is_invocable_v<L, A&, std::string_view>, "prepare takes (Attrs&, layer)");
    f = [](void* a, std::string_view layer) { L{}(*static_cast<A*>(a), layer); };
  }
};

/// The builder of a record, with rules that take the attributes as their own type.
template <class A = NoAttrs>
struct Layer {
  std::string_view name, doc, example, module;
  std::string_view base = {};
  std::string_view shown = {};
  List<AlsoCalled, 4> also_called = {};
  std::string_view inferred = {}, keyword_only = {};
  List<MultipleDef, 2> multiples = {};
  AttrsRule<A> prepare = {};
  List<TensorDef, 6> tensors = {};
  List<InputDef, 3> inputs;
  std::string_view output;
  ops::Rule<A, std::string_view> result = {};
  bool draws = false;
  ops::Rule<A, Tensor, const LayerCall&> forward;
  FunctionDef also = {};  // one more function

  constexpr operator LayerDef() const {
    LayerDef def;
    def.name = name, def.doc = doc, def.example = example, def.module = module, def.base = base;
    def.shown = shown, def.attrs = &attr_kind<A>, def.also_called = also_called;
    def.inferred = inferred, def.keyword_only = keyword_only, def.multiples = multiples;
    def.prepare = prepare.f, def.tensors = tensors, def.draws = draws;
    FunctionDef call{"forward", {}, inputs, output, result.f, forward.f};
    def.functions =
        also.name.empty() ? List<FunctionDef, 2>{call} : List<FunctionDef, 2>{call, also};
    return def;
  }
};

/// Uniform between plus and minus 1 / sqrt(inputs), the number of weights behind an output.
Tensor by_inputs(const void* attrs, const DrawCall& call);
Tensor standard_normal(const void* attrs, const DrawCall& call);
Tensor all_ones(const void* attrs, const DrawCall& call);
Tensor all_zeros(const void* attrs, const DrawCall& call);

}  // namespace layers

/// Every layer, by name (generated).
std::span<const LayerDef* const> layer_table();
/// By name; null when unknown.
const LayerDef* find_layer(std::string_view name);

}  // namespace tn::nn
