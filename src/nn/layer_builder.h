#pragma once
// Layer: how records are written, with rules that take the attributes as their own type.
#include "nn/layerdef.h"
#include "ops/rules.h"

namespace tn::nn::layers {

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

/// What a layer computes: one tensor, or as many as its results have.
template <class A>
struct ForwardRule {
  Tensors (*f)(const void*, const LayerCall&) = nullptr;
  constexpr ForwardRule() = default;
  template <class L>
  constexpr ForwardRule(L) {
    f = [](const void* a, const LayerCall& call) -> Tensors {
      auto made = L{}(ops::attrs_of<A>(a), call);
      if constexpr (std::is_same_v<decltype(made), Tensors>)
        return made;
      else
        return {std::move(made)};
    };
  }
};

/// The builder of a record, with rules that take the attributes as their own type.
template <class A = NoAttrs>
struct Layer {
  std::string_view name, doc, example, module;
  std::string_view base = {};
  std::string_view shown = {};
  List<AlsoCalled, 4> also_called = {};
  std::string_view inferred = {}, keyword_only = {}, open = {};
  List<MultipleDef, 2> multiples = {};
  AttrsRule<A> prepare = {};
  List<TensorDef, 6> tensors = {};
  List<ChildDef, 2> children = {};
  List<InputDef, 5> inputs;
  std::string_view output = {};
  ops::Rule<A, std::string_view> result = {};
  List<ResultDef, 2> results = {};
  const AttrKind* options = &attr_kind<NoAttrs>;
  bool draws = false;
  ForwardRule<A> forward;
  FunctionDef also = {};  // one more function

  constexpr operator LayerDef() const {
    LayerDef def;
    def.name = name, def.doc = doc, def.example = example, def.module = module, def.base = base;
    def.shown = shown, def.attrs = &attr_kind<A>, def.also_called = also_called;
    def.inferred = inferred, def.keyword_only = keyword_only, def.open = open;
    def.multiples = multiples, def.prepare = prepare.f, def.tensors = tensors;
    def.children = children, def.draws = draws;
    FunctionDef call{"forward", {}, {}, inputs, output, result.f, results, options, forward.f};
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

}  // namespace tn::nn::layers
