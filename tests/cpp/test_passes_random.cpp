// Random graphs before and after every pass, and after all of them: the same bits.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "base/text.h"
#include "ir/body.h"
#include "ops/call.h"
#include "run_passes.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

constexpr int64_t kMostElements = 4096;

/// Calls ops at random on what has been made so far. The choice is of what passes look at: views,
/// numbers that change nothing, casts there and back, reductions and contractions of views.
class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed) {
    const char* types[] = {"f32[4,6]", "f32[2,3,4]", "f32[4,1]", "bf16[2,6]", "i32[6,4]", "f32[6]"};
    for (const char* text : types) {
      std::string_view type = text;
      params.push_back(make_param(intern(*parse_type(type))));
    }
    made = params;
    for (int i = 0; i < 30; ++i) step();
  }

  Graph graph() {
    Tensors outputs;
    for (int i = 0; i < 4; ++i) outputs.push_back(pick());
    return capture(params, outputs).graph;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<int>(list.size()))];
  }
  const Tensor& pick() {  // late ones more often: chains grow
    int n = static_cast<int>(made.size());
    return made[static_cast<size_t>(std::max(below(n), below(n)))];
  }
  Tensor number() { return Tensor(one_of<float>({0.f, -0.f, 1.f, -1.f, 2.f, 0.5f, 3.f, 8.f})); }

  Shape another_shape(const Shape& from) {
    Shape to = from;
    int k = from.rank() ? below(from.rank()) : 0;
    switch (below(4)) {
      case 0:
        to.insert(k, 1);
        break;
      case 1:
        if (k + 1 < to.rank()) to[k] = to[k] * to[k + 1], to.erase(k + 1);
        break;
      case 2:
        if (to.rank() && to[k].value() % 2 == 0) to[k] = to[k].value() / 2, to.insert(k, 2);
        break;
      default:
        to = Shape{from.elements()};
    }
    return to;
  }
  Perm another_order(int rank) {
    Perm perm;
    for (int k = 0; k < rank; ++k) perm.push_back(k);
    std::shuffle(perm.begin(), perm.end(), random_);
    return perm;
  }
  Axes some_axes(int rank) {
    Axes axes;
    for (int k = 0; k < rank; ++k)
      if (below(2)) axes.push_back(k);
    return axes;
  }

  Tensor view(const Tensor& x) {
    int rank = x.rank(), k = rank ? below(rank) : 0;
    switch (below(5)) {
      case 0:
        return permute_dims(x, another_order(rank));
      case 1: {
        Shape to = x.shape();
        if (rank && to[k] == Dim(1)) to[k] = 3;
        return broadcast_to(x, to);
      }
      case 2:
        if (rank && x.shape()[k].value() > 1)
          return slice(x, Ints(below(2)), Ints(x.shape()[k].value()), Ints(1 + below(2)), Axes(k));
        return flip(x, some_axes(rank));
      default:
        return reshape(x, another_shape(x.shape()));
    }
  }
  Tensor unary(const Tensor& x) {
    switch (below(8)) {
      case 0:
        return -x;
      case 1:
        return stop_gradient(x);
      case 2:
        return logical_not(x);
      case 3:
        return exp(x);
      case 4:
        return abs(astype(x, DType::f32));
      case 5:
        return softmax(astype(x, DType::f32), Axes(-1));
      default:
        return astype(x, one_of({DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32,
                                 DType::i8, DType::b1, DType::u8, DType::i64}));
    }
  }
  Tensor binary(const Tensor& x, const Tensor& y) {
    switch (below(8)) {
      case 0:
        return x + y;
      case 1:
        return astype(x, DType::f32) - y;
      case 2:
        return x * y;
      case 3:
        return x / y;
      case 4:
        return maximum(x, y);
      case 5:
        return where(y > 0, x, y);
      case 6:
        return where(logical_not(x > 0), where(x > 0, y, x), y);
      default:
        return where(Tensor(below(2) == 0), x, y);
    }
  }
  Tensor reduction(const Tensor& x) {
    Axes axes = some_axes(x.rank());
    bool keepdims = below(2);
    switch (below(3)) {
      case 0:
        return sum(x, axes, {}, keepdims);
      case 1:
        return max(astype(x, DType::f32), axes, keepdims);
      default:
        return prod(astype(x, DType::f32), axes, {}, keepdims);
    }
  }
  Tensor contraction(const Tensor& x, const Tensor& y) {
    Axes of_x, of_y, batch_x, batch_y;
    std::set<int> used;
    for (int i = 0; i < x.rank(); ++i)
      for (int k = 0; k < y.rank(); ++k)
        if (x.shape()[i] == y.shape()[k] && below(2) && used.insert(k).second) {
          bool batch = below(3) == 0;
          (batch ? batch_x : of_x).push_back(i), (batch ? batch_y : of_y).push_back(k);
          break;
        }
    return dot(x, y, of_x, of_y, batch_x, batch_y);
  }
  /// What `checkpoint` records: the same work outside and inside.
  Tensor checkpointed(const Tensor& x) {
    Tensor p = make_param(type_of(x));
    Graph body = capture(std::vector{p}, std::vector{unary(view(p)) * p}).graph;
    auto kind = below(2) ? ops::CallKind::remat : ops::CallKind::plain;
    return ops::emit_call(kind, intern(body), {x})[0];
  }

  /// What the derivative of a split is: parts of `x`, each written into zeros, and the sum of that.
  Tensor split_and_added(const Tensor& x) {
    if (x.rank() == 0) return x;
    int k = below(x.rank());
    int64_t size = x.shape()[k].value(), cut = below(static_cast<int>(size) + 1);
    Tensor first = unary(slice(x, Ints(0), Ints(cut), {}, Axes(k)));
    Tensor second = unary(slice(x, Ints(cut), Ints(size), {}, Axes(k)));
    Tensor zero = full(x.shape(), 0, first.dtype());
    return slice_update(zero, first, Ints(0), Ints(cut), {}, Axes(k)) +
           slice_update(zero, astype(second, first.dtype()), Ints(cut), Ints(size), {}, Axes(k));
  }

  void step() {
    Tensor x = pick(), y = pick(), z;
    try {
      switch (below(10)) {
        case 0:
        case 1:
        case 2:
          z = view(x);
          break;
        case 3:
          z = unary(x);
          break;
        case 4:
          z = below(2) ? binary(x, number()) : binary(number(), x);
          break;
        case 5:
          z = binary(x, y);
          break;
        case 6:
          z = reduction(x);
          break;
        case 7:
          z = contraction(x, y);
          break;
        case 8:
          z = split_and_added(x);
          break;
        default:
          z = checkpointed(x);
      }
    } catch (const Error&) {
      return;  // shapes or types that do not go together
    }
    if (z.rank() <= 6 && type_of(z)->elements <= kMostElements) made.push_back(z);
  }

  std::mt19937_64 random_;
  Tensors params, made;
};

/// Values with many zeros of both signs, ones, infinities, NaN, and the ends of integers.
Tensors awkward_inputs(const Graph& graph, uint64_t seed) {
  constexpr double kFloats[] = {0., -0., 1., -1., INFINITY, NAN, 1e-40, -3.};
  constexpr double kIntegers[] = {0, 1, -1, 127, 128, -129, 2147483647, -2147483648.};
  std::mt19937_64 random(seed);
  Tensors in;
  for (Val v = 0; v < graph.inputs(); ++v) {
    const Type& type = *graph.types[static_cast<size_t>(v)];
    std::vector<double> values(static_cast<size_t>(type.shape.elements().value()));
    const auto& awkward = is_float(type.dtype) ? kFloats : kIntegers;
    for (double& x : values)
      x = random() % 3 ? static_cast<double>(random() % 1000) / 250 - 2 : awkward[random() % 8];
    in.push_back(astype(array(values, type.shape), type.dtype).eval());
  }
  return in;
}

/// Outputs as text; which NaN it is, is up to the machine.
std::vector<std::string> outputs_of(const Graph& graph, const PassContext& context,
                                    const Tensors& in) {
  std::vector<std::string> list = run_with(graph, context, in);
  for (size_t i = 0; i < list.size(); ++i) {
    const Type& type = *graph.types[static_cast<size_t>(graph.outputs[i])];
    if (!is_float(type.dtype)) continue;
    Tensor x = from_bytes(list[i].data(), type.dtype, type.shape);
    list[i] = bytes_of(where(isnan(x), 0, x)) + bytes_of(isnan(x));
  }
  return list;
}

}  // namespace

TEST_CASE("passes keep the bits of random graphs") {
  std::vector<Pass> one;  // each once
  for (const Pass& pass : pipeline(1))
    if (std::ranges::find(one, pass.name, &Pass::name) == one.end()) one.push_back(pass);
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Graph graph = RandomGraph(seed).graph();
    if (seed % 2) graph.input_names.back() = "c", graph.input_names.end()[-2] = "c1";
    Tensors in = awkward_inputs(graph, seed);
    const PassContext known = known_context(graph, in);
    std::vector<std::string> expected = outputs_of(graph, known, in);
    auto check = [&](std::string_view name, std::span<const Pass> passes) {
      PassContext context = known;
      Graph after = run_passes(graph, context, passes);
      verify(after, name);
      INFO(seed, " ", std::string(name), "\n", to_text(graph), to_text(after));
      CHECK(outputs_of(after, context, in) == expected);
      CHECK(to_text(parse_graph(to_text(after))) == to_text(after));
    };
    for (const Pass& pass : one) check(pass.name, {&pass, 1});
    check("pipeline", pipeline(3));
  }
}
