#include "executable_models.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "functions/executable.h"

namespace tn {

Tensor ramp(const Shape& shape, float scale) {
  int64_t n = shape.elements().value();
  return reshape(arange(n) * 7 % 23 - 11, shape) * scale;
}

static Tensors geglu(const Tensors& x) {
  Tensor a = x[0] * 2, b = x[0] + 1;
  return {a * (b * (1 + erf(b / 1.4142135f)) / 2)};
}

static Model mlp() {
  Tensor w1 = ramp({32, 48}, 0.01f), b1 = ramp({48}), w2 = ramp({48, 10}, 0.02f);
  auto f = [=](const Tensors& x) {
    return Tensors{softmax(matmul(gelu(matmul(x[0], w1) + b1), w2), Axes(-1))};
  };
  return {"mlp", f, {{.shape = {{1, 8, 70, "batch"}, 32}, .name = "x"}}};
}

static Model attention() {
  Tensor w = ramp({16, 48}, 0.01f), out = ramp({16, 16}, 0.03f);
  auto f = [=](const Tensors& in) {
    Shape s = in[0].shape();
    auto heads = [&](const Tensor& x) {
      return permute_dims(reshape(x, {s[0], s[1], 2, 8}), Perm{0, 2, 1, 3});
    };
    Tensor x = layer_norm(in[0]), qkv = matmul(x, w);
    auto part = [&](int i) {
      return heads(index(qkv, {Index(ellipsis), Index::slice(i * 16, i * 16 + 16)}));
    };
    Tensor y = scaled_dot_product_attention(part(0), part(1), part(2));
    y = reshape(permute_dims(y, Perm{0, 2, 1, 3}), {s[0], s[1], 16});
    return Tensors{in[0] + matmul(y, out), max(y, Axes(1))};
  };
  return {"attention", f, {{.shape = {{1, 2, 3}, {1, 12, 40}, 16}, .name = "x"}}};
}

static Model conv_net() {
  Tensor w1 = ramp({8, 3, 3, 3}, 0.02f), w2 = ramp({4, 8, 3, 3}, 0.02f), b = ramp({8});
  auto f = [=](const Tensors& x) {
    Tensor y = relu(conv2d(x[0], w1, b, {1}, {1}));
    y = conv2d(y, w2, nullptr, {2}, {1});
    return Tensors{mean(y, Axes{2, 3}), y};
  };
  return {"conv_net", f, {{.shape = {{1, 2, 5}, 3, 12, 12}, .name = "image"}}};
}

static Model control_flow() {
  auto f = [](const Tensors& x) {
    Tensor positive = flat::cond(
        sum(x[0]) > 0, [](const Tensors& in) { return Tensors{sqrt(abs(in[0]))}; },
        [](const Tensors& in) { return Tensors{in[0] * 3}; }, {x[0]})[0];
    Tensors doubled =
        flat::while_loop([](const Tensors& c) { return Tensors{sum(abs(c[0])) < 500}; },
                         [](const Tensors& c) { return Tensors{c[0] * 2 + 1}; }, {x[0]});
    flat::ScanResult steps = flat::scan(
        [](const Tensors& carry, const Tensors& row) {
          return flat::ScanResult{{carry[0] * 0.5f + row[0]}, {carry[0]}};
        },
        {zeros({6})}, {x[0]});
    return Tensors{positive, doubled[0], steps.carry[0], steps.ys[0]};
  };
  return {"control_flow", f, {{.shape = {{1, 4, 9}, 6}, .name = "x"}}};
}

static Model gathering() {
  Tensor table = ramp({11, 5});
  auto f = [=](const Tensors& x) {
    Tensor ids = astype(floor(abs(x[0])), DType::i64) % 11;
    return Tensors{take(table, ids, Axis(0)), sort(x[0]), cumulative_sum(x[0], Axis(0)),
                   concat({x[0], x[0] + x[1]}, Axis(0)), table};
  };
  DimensionInfo n(2, 10, 100, "n");
  return {"gathering", f, {{.shape = {n}, .name = "x"}, {.shape = {n}, .name = "y"}}};
}

std::vector<Model> models() {
  Model first{"geglu", geglu, {{.shape = {{1, 8, 16}, 2}, .name = "x"}}};
  return {first, mlp(), attention(), conv_net(), control_flow(), gathering()};
}

Tensors arguments(const Model& model, double way) {
  Tensors made;
  for (const InputInfo& in : model.inputs) {
    Shape shape;
    for (const DimensionInfo& d : in.shape)
      shape.push_back(d.min + std::llround(static_cast<double>(d.max - d.min) * way));
    made.push_back(ramp(shape));
  }
  return made;
}

std::string without(const std::string& bytes,
                    const std::function<bool(const tnx::SectionInfo&)>& drop) {
  auto file = tnx::File::over(bytes);
  tnx::Writer out;
  std::vector<BufferRef> weights;  // alive until they are written
  for (const tnx::SectionInfo& s : file->sections()) {
    if (drop(s)) continue;
    if (s.kind == tnx::Kind::weights) {
      weights.push_back(file->weights(0, s.raw_length));
      out.add_weights({{weights.back().data(), s.raw_length}});
    } else {
      out.add(s.kind, s.name, file->read(s.kind, s.name), s.codec);
    }
  }
  return out.bytes();
}

std::string saved(const Executable& exe, std::span<const Target> targets) {
  tnx::Writer out;
  exe.state()->program->write(out, targets, true);
  return out.bytes();
}

Executable loaded(const std::string& file, bool trust) {
  return Executable(
      SharedPtr<Executable::State>::make(Program::read(tnx::File::over(file), {.trust = trust})));
}

void check_same(const Tensors& got, const Tensors& want) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    REQUIRE(got[i].shape() == want[i].shape());
    REQUIRE(got[i].dtype() == want[i].dtype());
    CHECK(std::memcmp(got[i].data(), want[i].data(), static_cast<size_t>(want[i].bytes())) == 0);
  }
}

}  // namespace tn
