#pragma once
// What the functions and the layers of losses share. `kUsual` is the reduction that is left out: of
// functions it differs, of layers it is the mean.
#include "ir/attrs.h"
#include "tenon/tensor.h"

namespace tn::ops {

enum class Reduce : uint8_t { none, mean, sum };
inline constexpr std::string_view kReduces[] = {"none", "mean", "sum"};
constexpr ChoiceNames choice_names(Reduce) { return kReduces; }

struct NamedTensor {
  std::string_view name;
  const Tensor& tensor;
};
/// Fails unless all have one shape: what would broadcast gives a loss that was not meant.
void check_alike(std::string_view loss, std::initializer_list<NamedTensor> given);
/// The loss times `weights`, if there are any, which must not make it larger.
Tensor weighted(std::string_view name, const Tensor& loss, const Tensor& weights);
Tensor reduced(const Tensor& loss, Reduce reduction);

template <Reduce kUsual>
struct LossAttrs {
  Reduce reduction = kUsual;
  static constexpr void fields(auto& a, auto&& f) { f("reduction", a.reduction); }
};

template <Reduce kUsual>
struct HuberAttrs {
  double delta = 1;
  Reduce reduction = kUsual;
  static constexpr void fields(auto& a, auto&& f) {
    f("delta", a.delta), f("reduction", a.reduction);
  }
};

struct SmoothL1Attrs {
  double beta = 1;
  Reduce reduction = Reduce::mean;
  static constexpr void fields(auto& a, auto&& f) {
    f("beta", a.beta), f("reduction", a.reduction);
  }
};

struct GaussianAttrs {
  bool full = false;
  double eps = 1e-6;
  Reduce reduction = Reduce::mean;
  static constexpr void fields(auto& a, auto&& f) {
    f("full", a.full), f("eps", a.eps), f("reduction", a.reduction);
  }
};

template <Reduce kUsual>
struct MarginAttrs {
  double margin = 0;
  Reduce reduction = kUsual;
  static constexpr void fields(auto& a, auto&& f) {
    f("margin", a.margin), f("reduction", a.reduction);
  }
};

template <Reduce kUsual>
struct TripletAttrs {
  Axis axis = -1;
  double p = 2, margin = 1, eps = 1e-6;
  Reduce reduction = kUsual;
  static constexpr void fields(auto& a, auto&& f) {
    f("axis", a.axis), f("p", a.p), f("margin", a.margin), f("eps", a.eps);
    f("reduction", a.reduction);
  }
};

}  // namespace tn::ops
