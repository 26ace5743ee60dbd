#pragma once
// The training step of a small GPT as a graph, for tests and benchmarks of sharding.
#include <numeric>

#include "ir/graph.h"
#include "ir/trace.h"
#include "tenon/flat.h"
#include "tenon/tenon.h"

namespace tn {

inline constexpr int kPerLayer = 6;
inline constexpr std::string_view kNames[kPerLayer] = {"norm1", "qkv", "out",
                                                       "norm2", "up",  "down"};

/// A GPT with tied embeddings and without biases, and a step of Adam.
struct Gpt {
  int64_t layers, width, heads, vocabulary, rows, length;

  std::vector<std::string> names() const {
    std::vector<std::string> list{"embedding"};
    for (int64_t i = 0; i < layers; ++i)
      for (std::string_view name : kNames) list.push_back(format("{}.{}", i, name));
    return list;
  }
  std::vector<Shape> shapes() const {
    std::vector<Shape> list{{vocabulary, width}};
    for (int64_t i = 0; i < layers; ++i)
      list.insert(list.end(), {{width},
                               {3 * width, width},
                               {width, width},
                               {width},
                               {4 * width, width},
                               {width, 4 * width}});
    return list;
  }

  Tensor attended(const Tensor& x, const Tensor& qkv) const {
    Tensor all = matmul(x, permute_dims(qkv));
    Tensors parts;
    for (int64_t i = 0; i < 3; ++i) {
      Tensor part = slice(all, {i * width}, {(i + 1) * width}, {}, Axes(2));
      part = reshape(part, {rows, length, heads, width / heads});
      parts.push_back(permute_dims(part, Perm{0, 2, 1, 3}));
    }
    Tensor y = scaled_dot_product_attention(parts[0], parts[1], parts[2], nullptr, {}, true);
    return reshape(permute_dims(y, Perm{0, 2, 1, 3}), {rows, length, width});
  }

  Tensor loss(const Tensors& p, const Tensor& tokens, const Tensor& targets) const {
    Tensor x = take(p[0], tokens, Axis(0));
    for (size_t i = 0; i < static_cast<size_t>(layers); ++i) {
      const Tensor* w = &p[1 + kPerLayer * i];
      x = x + matmul(attended(rms_norm(x, w[0]), w[1]), permute_dims(w[2]));
      x = x + matmul(gelu(matmul(rms_norm(x, w[3]), permute_dims(w[4]))), permute_dims(w[5]));
    }
    Tensor logits = matmul(x, permute_dims(p[0]));
    return cross_entropy(reshape(logits, {rows * length, vocabulary}),
                         reshape(targets, {rows * length}));
  }

  /// From parameters, both moments, tokens and targets to the loss and the new state.
  Graph step() const {
    Trace trace("compile", Trace::Values::unknown);
    Tensors in;
    for (int k = 0; k < 3; ++k)
      for (const Shape& shape : shapes()) in.push_back(make_param(intern(DType::f32, shape)));
    for (int k = 0; k < 2; ++k) in.push_back(make_param(intern(DType::i64, {rows, length})));
    size_t count = shapes().size();
    std::vector<int> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0);
    Tensors parameters(in.begin(), in.begin() + static_cast<ptrdiff_t>(count));
    auto f = [&](const Tensors& p) { return Tensors{loss(p, in[3 * count], in[3 * count + 1])}; };
    flat::Derivatives made = flat::value_and_grad(f, numbers)(parameters);
    Tensors out{made.values[0]}, moments, squares;
    for (size_t i = 0; i < count; ++i) {
      const Tensor& g = made.derivatives[i];
      Tensor m = 0.9 * in[count + i] + 0.1 * g, v = 0.99 * in[2 * count + i] + 0.01 * g * g;
      out.push_back(in[i] - 0.001 * m / (sqrt(v) + 1e-8));
      moments.push_back(m), squares.push_back(v);
    }
    out.insert(out.end(), moments.begin(), moments.end());
    out.insert(out.end(), squares.begin(), squares.end());
    trace.end();
    return expand_composites(capture(in, out).graph);
  }

  Val tokens() const { return static_cast<Val>(3 * shapes().size()); }
};

}  // namespace tn
