// Layers that only move elements.
#include "nn/layer_decls.h"
#include "tenon/ops.h"

namespace tn::nn::layers {
namespace {

struct FlattenAttrs {
  int64_t start_axis = 1, end_axis = -1;
  static constexpr void fields(auto& a, auto&& f) {
    f("start_axis", a.start_axis), f("end_axis", a.end_axis);
  }
};

}  // namespace

constinit const LayerDef Flatten = Layer<FlattenAttrs>{
    .name = "Flatten",
    .doc = "The axes from `start_axis` to `end_axis` as one; by default all but the batch.",
    .example = R"(>>> tn.nn.Flatten()(tn.zeros((5, 2, 3, 4))).shape
(5, 24)
)",
    .module = "reshaping",
    .shown = "start_axis={start_axis}, end_axis={end_axis}",
    .also_called = {{"start_dim", "start_axis"}, {"end_dim", "end_axis"}},
    .inputs = {{"x", "*"}},
    .output = "*",
    .forward =
        [](const FlattenAttrs& a, const LayerCall& call) {
          return flatten(call.in[0], static_cast<int>(a.start_axis), static_cast<int>(a.end_axis));
        },
};

}  // namespace tn::nn::layers
