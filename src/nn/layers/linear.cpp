// Layers that are linear in each of their inputs.
#include "nn/layer_decls.h"
#include "tenon/operators.h"

namespace tn::nn::layers {
namespace {

struct LinearAttrs {
  int64_t input_dims = 0, output_dims = 0;
  bool bias = true;
  static constexpr void fields(auto& a, auto&& f) {
    f("input_dims", a.input_dims, required), f("output_dims", a.output_dims, required);
    f("bias", a.bias);
  }
};

struct BilinearAttrs {
  int64_t input1_dims = 0, input2_dims = 0, output_dims = 0;
  bool bias = true;
  static constexpr void fields(auto& a, auto&& f) {
    f("input1_dims", a.input1_dims, required), f("input2_dims", a.input2_dims, required);
    f("output_dims", a.output_dims, required), f("bias", a.bias);
  }
};

/// As PyTorch does, by the first input alone.
Tensor by_first_input(const void*, const DrawCall& call) {
  Shape matrix{call.first[0], call.first[1]};
  return by_inputs(nullptr, {call.shape, matrix, call.type, call.key});
}

struct EmbeddingAttrs {
  int64_t num_embeddings = 0, dims = 0;
  Maybe<int64_t> padding_idx;
  static constexpr void fields(auto& a, auto&& f) {
    f("num_embeddings", a.num_embeddings, required), f("dims", a.dims, required);
    f("padding_idx", a.padding_idx);
  }
};

/// Standard normal, with a row of zeros at the padding.
Tensor embedding_weight(const void* attrs, const DrawCall& call) {
  const auto& a = *static_cast<const EmbeddingAttrs*>(attrs);
  Tensor weight = standard_normal(attrs, call);
  if (!a.padding_idx) return weight;
  Tensor is_padding = equal(arange(a.num_embeddings), *a.padding_idx);
  return where(expand_dims(is_padding, Axes(-1)), 0.0, weight);
}

Tensor embed(const EmbeddingAttrs& a, const LayerCall& call) {
  const Tensor& indices = call.in[0];
  Tensor rows = embedding(call.held[0], indices);
  if (!a.padding_idx) return rows;
  Tensor is_padding = equal(remainder(indices, a.num_embeddings), *a.padding_idx);
  return where(expand_dims(is_padding, Axes(-1)), stop_gradient(rows), rows);
}

}  // namespace

constinit const LayerDef Linear = Layer<LinearAttrs>{
    .name = "Linear",
    .doc =
        "`x @ weight.T + bias`, along the last axis of `x`.\n\n"
        "The weight is [output_dims, input_dims]. It and the bias are drawn uniformly between "
        "plus and minus 1 / sqrt(input_dims).",
    .example = R"(>>> layer = tn.nn.Linear(3, 8)
>>> layer
Linear(3 -> 8)
>>> layer(tn.zeros((5, 3))).shape
(5, 8)
)",
    .module = "linear",
    .shown = "{input_dims} -> {output_dims}",
    .also_called = {{"in_features", "input_dims"}, {"out_features", "output_dims"}},
    .inferred = "input_dims",
    .tensors = {{"weight", "output_dims input_dims", by_inputs},
                {"bias", "output_dims", by_inputs, "bias"}},
    .inputs = {{"x", "... input_dims"}},
    .output = "... output_dims",
    .forward = [](const LinearAttrs&,
                  const LayerCall& call) { return linear(call.in[0], call.held[0], call.held[1]); },
};

constinit const LayerDef Bilinear = Layer<BilinearAttrs>{
    .name = "Bilinear",
    .doc =
        "`y[o] = sum of x1[i] * weight[o, i, j] * x2[j] over i and j, + bias[o]`, along last "
        "axes.",
    .example = R"(>>> layer = tn.nn.Bilinear(3, 4, 2)
>>> layer(tn.zeros((5, 3)), tn.zeros((5, 4))).shape
(5, 2)
)",
    .module = "linear",
    .shown = "{input1_dims}, {input2_dims} -> {output_dims}",
    .also_called = {{"in1_features", "input1_dims"},
                    {"in2_features", "input2_dims"},
                    {"out_features", "output_dims"}},
    .inferred = "input1_dims input2_dims",
    .tensors = {{"weight", "output_dims input1_dims input2_dims", by_first_input},
                {"bias", "output_dims", by_first_input, "bias"}},
    .inputs = {{"x1", "... input1_dims"}, {"x2", "... input2_dims"}},
    .output = "... output_dims",
    .forward =
        [](const BilinearAttrs&, const LayerCall& call) {
          Tensor y = einsum("...i,oij,...j->...o", {call.in[0], call.held[0], call.in[1]});
          return call.held[1].defined() ? y + call.held[1] : y;
        },
};

constinit const LayerDef Embedding = Layer<EmbeddingAttrs>{
    .name = "Embedding",
    .doc =
        "The rows of the weight [num_embeddings, dims] at the given integers, of any shape.\n\n"
        "Negative ones count from the end; one out of bounds is an error, which compiled code "
        "checks under `tn.debug_indices` only and clamps otherwise. The weight is drawn from "
        "the standard normal distribution; its row at `padding_idx` is zero, and no gradient "
        "reaches it.",
    .example = R"(>>> layer = tn.nn.Embedding(100, 8)
>>> layer
Embedding(100 of 8)
>>> layer(tn.array([[3, 1, 4]])).shape
(1, 3, 8)
)",
    .module = "linear",
    .shown = "{num_embeddings} of {dims}",
    .also_called = {{"embedding_dim", "dims"}},
    .prepare =
        [](EmbeddingAttrs& a, std::string_view layer) {
          if (!a.padding_idx) return;
          int64_t row = *a.padding_idx < 0 ? *a.padding_idx + a.num_embeddings : *a.padding_idx;
          if (row < 0 || row >= a.num_embeddings)
            fail(Fault::index, "{}: padding_idx is out of range for {} embeddings: {}", layer,
                 a.num_embeddings, *a.padding_idx);
          a.padding_idx = row;
        },
    .tensors = {{"weight", "num_embeddings dims", embedding_weight}},
    .inputs = {{"indices", "...", DType::i64}},
    .output = "... dims",
    .forward = ops::rule<embed>,
    .also = {.name = "as_linear",
             .doc = "`x @ weight.T`: the logits of a model whose last layer has the weight of its "
                    "first.",
             .inputs = {{"x", "... dims"}},
             .output = "... num_embeddings",
             .run = [](const void*, const LayerCall& call) -> Tensors {
               return {linear(call.in[0], call.held[0])};
             }},
};

}  // namespace tn::nn::layers
