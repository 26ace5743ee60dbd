// Multi-head attention.
#include "nn/initial.h"
#include "nn/layer_decls.h"
#include "tenon/operators.h"

namespace tn::nn::layers {
namespace {

struct AttentionAttrs {
  int64_t dims = 0, num_heads = 0;
  bool bias = true;
  Maybe<int64_t> key_dims, value_dims;
  bool batch_first = true;
  static constexpr void fields(auto& a, auto&& f) {
    f("dims", a.dims, required), f("num_heads", a.num_heads, required), f("bias", a.bias);
    f("key_dims", a.key_dims), f("value_dims", a.value_dims), f("batch_first", a.batch_first);
  }
};

struct CausalOptions {
  bool causal = false;
  static constexpr void fields(auto& a, auto&& f) { f("causal", a.causal); }
};

const AttentionAttrs& read(const void* attrs) { return *static_cast<const AttentionAttrs*>(attrs); }

/// Whether one weight is for queries, keys and values.
bool is_together(const void* attrs) {
  const AttentionAttrs& a = read(attrs);
  return *a.key_dims == a.dims && *a.value_dims == a.dims;
}
bool is_apart(const void* attrs) { return !is_together(attrs); }

void prepare_attention(AttentionAttrs& a, std::string_view layer) {
  a.key_dims = a.key_dims.value_or(a.dims), a.value_dims = a.value_dims.value_or(a.dims);
  check_sizes(layer, {{"key_dims", *a.key_dims}, {"value_dims", *a.value_dims}});
}

Tensor by_glorot(const void*, const DrawCall& call) {
  return glorot_uniform(call.shape[0].value(), call.shape[1].value(), {call.type, call.key});
}

template <int kWhich>
std::string_view attended_shape(const void* attrs) {
  constexpr std::string_view kFirst[] = {"batch positions dims", "batch keys key_dims",
                                         "batch keys value_dims"};
  constexpr std::string_view kSecond[] = {"positions batch dims", "keys batch key_dims",
                                          "keys batch value_dims"};
  return (read(attrs).batch_first ? kFirst : kSecond)[kWhich];
}

/// Queries, keys and values as [batch, heads, positions, depth]; null ones are the queries or keys.
Tensors project(const AttentionAttrs& a, const LayerCall& call, const Tensor& queries,
                const Tensor& keys, const Tensor& values) {
  bool to_itself = !keys.defined() && !values.defined(), together = is_together(&a);
  const Tensor &weight = call.held[0], &bias = call.held[4];
  Tensors given{queries, keys.defined() ? keys : queries};
  given.push_back(values.defined() ? values : given[1]);
  if (!a.batch_first)
    for (Tensor& x : given) x = swapaxes(x, 0, 1);
  Tensors projected;
  if (together && to_itself) {  // one product instead of three
    projected = split(linear(given[0], weight, bias), 3, -1);
  } else {
    Tensors weights =
        together ? split(weight, 3) : Tensors(call.held.begin() + 1, call.held.begin() + 4);
    Tensors biases = bias.defined() ? split(bias, 3) : Tensors(3);
    for (size_t i = 0; i < 3; ++i) projected.push_back(linear(given[i], weights[i], biases[i]));
  }
  for (Tensor& p : projected) p = swapaxes(unflatten(p, -1, Shape{a.num_heads, -1}), 1, 2);
  return projected;
}

Tensor attend(const AttentionAttrs& a, const LayerCall& call, const Tensors& qkv,
              const Tensor& mask, bool causal) {
  Tensor heads = scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], mask, {}, causal);
  Tensor out = call.call_child(0, flatten(swapaxes(heads, 1, 2), -2, -1));
  return a.batch_first ? out : swapaxes(out, 0, 1);
}

Tensor attention_forward(const AttentionAttrs& a, const LayerCall& call) {
  const Tensors& in = call.in;
  return attend(a, call, project(a, call, in[0], in[1], in[2]), in[3],
                call.options_as<CausalOptions>().causal);
}

/// Of the next positions: in[1] and in[2] are the keys and values before, in[3] is the mask.
Tensors attention_step(const void* attrs, const LayerCall& call) {
  const AttentionAttrs& a = read(attrs);
  Tensors qkv = project(a, call, call.in[0], {}, {});
  if (call.in[1].defined())
    for (size_t i : {1, 2}) qkv[i] = concat({call.in[i], qkv[i]}, -2);
  return {attend(a, call, qkv, call.in[3], true), qkv[1], qkv[2]};
}

}  // namespace

constinit const LayerDef MultiHeadAttention = Layer<AttentionAttrs>{
    .name = "MultiHeadAttention",
    .doc =
        "`softmax(q @ k.T / sqrt(depth)) @ v` in `num_heads` heads of depth `dims / "
        "num_heads`.\n\n"
        "`q`, `k` and `v` are linear in the queries, keys and values, [batch, positions, dims], "
        "and so is the result in the heads. Without keys the queries attend to themselves, "
        "without values these are the keys. With `batch_first=False`, PyTorch's default, all "
        "are [positions, batch, dims]. `mask` broadcasts to [batch, heads, queries, keys]: bool "
        "keeps where true, floats are added. With `causal` a query sees the keys up to its own "
        "position.\n\n"
        "The parameters are PyTorch's: `in_proj_weight` [3 dims, dims] and `in_proj_bias` for "
        "queries, keys and values in this order, then `out_proj`. If keys or values have other "
        "sizes, `key_dims` and `value_dims`, there are `q_proj_weight`, `k_proj_weight` and "
        "`v_proj_weight` instead.",
    .example = R"(>>> attention = tn.nn.MultiHeadAttention(16, num_heads=4)
>>> attention(tn.zeros((2, 5, 16)), causal=True).shape
(2, 5, 16)
>>> attention(tn.zeros((2, 1, 16)), tn.zeros((2, 5, 16))).shape
(2, 1, 16)
)",
    .module = "attention",
    .shown = "{dims} in {num_heads} heads",
    .keyword_only = "batch_first",
    .multiples = {{"dims", "num_heads", "depth"}},
    .prepare = ops::rule<prepare_attention>,
    .tensors =
        {{.name = "in_proj_weight",
          .shape = "3*dims dims",
          .initial = by_glorot,
          .exists = is_together},
         {.name = "q_proj_weight", .shape = "dims dims", .initial = by_glorot, .exists = is_apart},
         {.name = "k_proj_weight",
          .shape = "dims key_dims",
          .initial = by_glorot,
          .exists = is_apart},
         {.name = "v_proj_weight",
          .shape = "dims value_dims",
          .initial = by_glorot,
          .exists = is_apart},
         {"in_proj_bias", "3*dims", all_zeros, "bias"}},
    .children = {{"out_proj", &Linear, "dims, dims, bias", "bias"}},
    .inputs =
        {{.name = "queries", .shape_of = attended_shape<0>, .terminal = "input"},
         {.name = "keys", .shape_of = attended_shape<1>, .optional = true, .terminal = "key"},
         {.name = "values", .shape_of = attended_shape<2>, .optional = true, .terminal = "value"},
         {.name = "mask", .optional = true}},
    .result = [](const AttentionAttrs& a) { return attended_shape<0>(&a); },
    .options = &attr_kind<CausalOptions>,
    .forward = ops::rule<attention_forward>,
    .also = {.name = "step",
             .doc = "Causal self-attention of the next positions, and what the ones after them "
                    "need.\n\n"
                    "`cache` is what the call for the positions before returned.",
             .example = R"(>>> attention = tn.nn.MultiHeadAttention(16, num_heads=4)
>>> first, cache = attention.step(tn.zeros((2, 5, 16)))
>>> second, cache = attention.step(tn.zeros((2, 1, 16)), cache)
>>> second.shape, cache[0].shape
((2, 1, 16), (2, 4, 6, 4))
)",
             .inputs = {{.name = "x", .shape_of = attended_shape<0>},
                        {.name = "cache", .optional = true, .count = 2},
                        {.name = "mask", .optional = true}},
             .results = {{"output"}, {"cache", "*", 2}},
             .run = attention_step},
};

}  // namespace tn::nn::layers
