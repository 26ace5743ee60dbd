#pragma once
// What Fourier transforms over several axes are given.
#include "ir/attrs.h"

namespace tn::ops {

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
