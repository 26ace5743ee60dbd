#pragma once
// What Fourier transforms over one axis and over several are given.
#include "ir/attrs.h"
#include "ops/fft_kind.h"

namespace tn {

inline constexpr std::string_view kFftKinds[] = {"c2c", "r2c", "c2r"};
constexpr ChoiceNames choice_names(FftKind) { return kFftKinds; }

}  // namespace tn

namespace tn::ops {

/// What a transform is divided by, beside its scale: for lengths that are known when it runs.
enum class Divisor : uint8_t { one, root, length };
inline constexpr std::string_view kDivisors[] = {"one", "root", "length"};
constexpr ChoiceNames choice_names(Divisor) { return kDivisors; }

struct FftAxisAttrs {
  FftKind kind = FftKind::c2c;
  bool inverse = false;
  double scale = 1;
  Maybe<Dim> n;
  Axis axis = -1;
  Divisor divisor = Divisor::one;
  static constexpr void fields(auto& a, auto&& f) {
    f("kind", a.kind), f("inverse", a.inverse), f("scale", a.scale), f("n", a.n);
    f("axis", a.axis), f("divisor", a.divisor);
  }
};

/// Which direction is divided by n: backward, both by its root, or forward.
enum class Norm : uint8_t { backward, ortho, forward };
inline constexpr std::string_view kNorms[] = {"backward", "ortho", "forward"};
constexpr ChoiceNames choice_names(Norm) { return kNorms; }

struct FftnAttrs {
  Maybe<Offsets> s;
  Maybe<Ints> axes;
  Norm norm = Norm::backward;
  static constexpr void fields(auto& a, auto&& f) {
    f("s", a.s), f("axes", a.axes), f("norm", a.norm);
  }
};

}  // namespace tn::ops
