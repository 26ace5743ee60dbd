// Modules and layers in C++: names, values, modes, paths in errors.
#include <doctest/doctest.h>

#include "errors.h"
#include "files.h"
#include "tenon/checkpoints.h"
#include "tenon/nn.h"
#include "tenon/optim.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

struct Block : nn::Module<Block> {
  nn::LayerNorm norm;
  nn::Linear up, down;
  explicit Block(int64_t dims) : norm(dims), up(dims, 2 * dims), down(2 * dims, dims, false) {}

  Tensor forward(const Tensor& x) const { return x + down(gelu(up(norm(x)))); }
  static void fields(auto& m, auto&& f) { f("norm", m.norm), f("up", m.up), f("down", m.down); }
};

struct Pair : nn::Module<Pair> {
  nn::Linear a{3, 2}, b{2, 1};
  Tensor forward(const Tensor& x) const { return b(a(x)); }
  static void fields(auto& m, auto&& f) { f("a", m.a), f("b", m.b); }
};

struct Net : nn::Module<Net> {
  nn::Embedding tokens{10, 4};
  std::vector<Block> blocks = {Block(4), Block(4)};
  nn::Sequential head{nn::Dropout(0.5), nn::Linear(4, 3), tn::tanh};
  std::optional<nn::Linear> gate;
  Tensor scale = ones({3});

  Tensor forward(const Tensor& x) const {
    Tensor h = tokens(x);
    for (const Block& block : blocks) h = block(h);
    return head(h) * scale;
  }
  static void fields(auto& m, auto&& f) {
    f("tokens", m.tokens), f("blocks", m.blocks), f("head", m.head), f("gate", m.gate);
    f("scale", m.scale, nn::buffer);
  }
};

std::vector<std::string> names(const nn::TensorMap& tensors) {
  std::vector<std::string> out;
  for (const auto& [name, t] : tensors) out.push_back(name);
  return out;
}

Tensor tokens() { return array<int64_t>({1, 2, 3, 4}); }

}  // namespace

TEST_CASE("names of parameters are those of files") {
  Net net;
  CHECK(names(net.state_dict()) ==
        std::vector<std::string>{
            "blocks.0.down.weight", "blocks.0.norm.bias", "blocks.0.norm.weight",
            "blocks.0.up.bias", "blocks.0.up.weight", "blocks.1.down.weight", "blocks.1.norm.bias",
            "blocks.1.norm.weight", "blocks.1.up.bias", "blocks.1.up.weight", "head.layers.1.bias",
            "head.layers.1.weight", "scale", "tokens.weight"});
  net.gate.emplace(4, 1);
  CHECK(net.state_dict().contains("gate.weight"));
  CHECK(!net.trainable_parameters().contains("scale"));
}

TEST_CASE("copies have parameters of their own") {
  Net net;
  Net copy = net;
  std::vector<float> before = net.head.layers[1].as<nn::Linear>()->bias.to_vector<float>();
  copy.update({{"head.layers.1.bias", zeros({3})}});
  CHECK(net.head.layers[1].as<nn::Linear>()->bias.to_vector<float>() == before);
  CHECK(copy.state_dict().at("head.layers.1.bias").to_vector<float>() ==
        std::vector<float>{0, 0, 0});
  Net moved = std::move(copy);
  CHECK(names(moved.state_dict()) == names(net.state_dict()));
  CHECK(moved.eval()(tokens()).shape() == Shape{4, 3});
}

TEST_CASE("freezing and modes reach modules inside, also behind Layer") {
  Net net;
  net.eval();
  CHECK(!net.training);
  CHECK(!net.head.layers[0].as<nn::Dropout>()->training);
  CHECK(net(tokens()).to_vector<float>() == net(tokens()).to_vector<float>());
  net.train();
  CHECK(net.head.layers[0].as<nn::Dropout>()->training);

  size_t all = net.trainable_parameters().size();
  net.blocks[0].freeze();
  CHECK(net.trainable_parameters().size() == all - 5);
  net.blocks[0].unfreeze({"weight"});
  CHECK(net.trainable_parameters().size() == all - 2);
  net.unfreeze().freeze({"bias"});
  CHECK(net.trainable_parameters().size() == all - 5);
  CHECK(net.state_dict().size() == all + 1);
}

TEST_CASE("errors name the module by its path") {
  Net net;
  net.blocks[1].up = nn::Linear(5, 8);
  std::string text = error_in([&] { net(tokens()); });
  CHECK(text.starts_with("model.blocks[1].up: Linear: expected [..., 5], given f32[4,4]"));
  CHECK(contains(text, "test_nn.cpp"));
  net = Net();
  *net.head.layers[1].as<nn::Linear>() = nn::Linear(7, 3);
  text = error_in([&] { net(tokens()); });
  CHECK(text.starts_with("model.head.layers[1]: Linear: expected [..., 7], given f32[4,4]"));
  CHECK(contains(text, "test_nn.cpp"));  // the line in forward
  text = error_in([&] { nn::Linear(2, 3)(ones({4})); });
  CHECK(text.starts_with("Linear: expected [..., 2], given f32[4]"));
}

TEST_CASE("loading lists every weight that does not fit, and then changes nothing") {
  Net net, other;
  net.load_state_dict(other.state_dict());
  CHECK(net.eval()(tokens()).to_vector<float>() == other.eval()(tokens()).to_vector<float>());
  nn::TensorMap bad = other.state_dict();
  bad["blocks.0.up.biases"] = bad["blocks.0.up.bias"] + 1;
  bad.erase("blocks.0.up.bias");
  bad["tokens.weight"] = ones({4, 10}), bad["scale"] = ones({3}, DType::f64);
  CHECK(contains(error_in([&] { net.load_state_dict(bad); }),
                 "load_state_dict: 4 problems with the weights:\n"
                 "    dtype: scale is f32[3], given f64[3]\n"
                 "    shape: tokens.weight is f32[10,4], given f32[4,10]\n"
                 "    missing: blocks.0.up.bias, f32[8] (like blocks.0.up.biases?)\n"
                 "    extra: blocks.0.up.biases, f32[8] (like blocks.0.up.bias?)\n  at "));
  CHECK(net(tokens()).to_vector<float>() == other(tokens()).to_vector<float>());
  bad["tokens.weight"] = other.tokens.weight;
  CHECK(contains(error_in([&] { net.load_state_dict(bad, {.strict = false}); }), "dtype: scale"));
  net.load_state_dict(bad, {.strict = false, .dtype = DType::f32});
  CHECK(net.scale.dtype() == DType::f32);
  net.load_state_dict(bad, {.dtype = DType::f32, .rename = [](const std::string& name) {
                              return name.ends_with("biases") ? name.substr(0, name.size() - 2)
                                                              : name;
                            }});
  CHECK(net.blocks[0].up.bias.to_vector<float>() ==
        (other.blocks[0].up.bias + 1).to_vector<float>());
  CHECK(problem_in([&] { net.update({{"nope", ones({1})}}); }) == "update: the model has no nope");
}

TEST_CASE("weights in files") {
  Folder folder;
  std::string path = folder.path + "/net.safetensors";
  Net net, other;
  net.save_weights(path);
  other.load_weights(path);
  CHECK(net.eval()(tokens()).to_vector<float>() == other.eval()(tokens()).to_vector<float>());
  nn::Linear small(2, 2);
  std::string text = error_in([&] { small.load_weights(path); });
  CHECK(text.starts_with("load_weights: " + path + ": 16 problems with the weights:"));
}

TEST_CASE("arguments of layers are checked") {
  CHECK(problem_in([] { nn::Linear(0, 3); }) ==
        "Linear: input_dims must be a positive integer, not 0");
  CHECK(problem_in([] { nn::Dropout(1.5); }) ==
        "Dropout: p must be at least 0 and less than 1, not 1.5");
  CHECK(problem_in([] { nn::Conv2d(3, 4, 3, {.groups = 2}); }) ==
        "Conv2d: groups must divide in_channels: 2 and 3");
  CHECK(problem_in([] { nn::Conv2d(3, 4, 3, {.padding_by = "full"}); }) ==
        "Conv2d: padding_by must be one of given, same, valid: 'full'");
  CHECK(problem_in([] { nn::MultiHeadAttention(10, 3); }) ==
        "MultiHeadAttention: num_heads must divide dims: 3 and 10");
  CHECK(contains(error_in([] { nn::MultiHeadAttention(4, 1).step(ones({1, 2, 4}), {ones({1})}); }),
                 "MultiHeadAttention: a cache is 2 tensors, given 1"));
  CHECK(contains(error_in([] { nn::mse_loss(ones({3}), ones({3, 1})); }),
                 "mse_loss: shapes differ: f32[3] (predictions) and f32[3,1] (targets)"));
}

TEST_CASE("null tensors are errors, not crashes") {
  Tensor none;
  CHECK(contains(error_in([&] { nn::Linear(2, 2)(none); }), "Linear: expected a tensor"));
  CHECK(contains(error_in([&] { nn::Sequential{tn::relu}(none); }), "expected a tensor"));
  CHECK(contains(error_in([&] { nn::Dropout().eval()(none); }), "expected a tensor"));
  CHECK(contains(error_in([&] { nn::PReLU(2)(none); }), "PReLU: expected a tensor"));
  CHECK(contains(error_in([&] { nn::ReLU()(none); }), "ReLU: expected a tensor"));
  CHECK(contains(error_in([&] { nn::GRU(2, 2)(none); }), "expected a tensor, given none"));
  CHECK(contains(error_in([&] { nn::mse_loss(ones({2}), none); }), "targets is missing"));
  nn::Linear layer(2, 2);
  CHECK(contains(error_in([&] { layer.load_state_dict({{"weight", none}}); }), "null tensor"));
}

TEST_CASE("BatchNorm moves its statistics in training, and needs not be constant for it") {
  nn::BatchNorm norm(2);
  Tensor x = array<float>({1, 10, 3, 30}, {2, 2});
  CHECK(norm(x).to_vector<float>()[0] == doctest::Approx(-1).epsilon(1e-4));
  CHECK(norm.running_mean.to_vector<float>()[1] == 2);
  CHECK(norm.running_var.to_vector<float>()[0] == doctest::Approx(1.1f));
  CHECK(contains(error_in([&] { std::as_const(norm)(x); }), "a const module cannot be trained"));
  norm.eval();
  CHECK(std::as_const(norm)(x).shape() == Shape{2, 2});
  CHECK(norm.running_mean.to_vector<float>()[1] == 2);
  CHECK(norm.trainable_parameters().size() == 2);
}

TEST_CASE("layers of images and sequences") {
  nn::Sequential net{nn::Conv2d(1, 4, 3, {.padding = 1}),
                     nn::BatchNorm2d(4),
                     tn::relu,
                     nn::MaxPool2d(2),
                     nn::GroupNorm(2, 4),
                     nn::AvgPool2d(2),
                     nn::Flatten(),
                     nn::Linear(16, 10)};
  CHECK(net(ones({2, 1, 8, 8})).shape() == Shape{2, 10});
  nn::Sequential nested{net, tn::relu}, copy{nested};
  CHECK(names(copy.state_dict()).front() == "layers.0.layers.0.bias");
  CHECK(copy.layers.size() == 2);
  CHECK(nn::Conv1d(3, 8, 5, {.stride = 2})(ones({2, 3, 20})).shape() == Shape{2, 8, 8});
  nn::MultiHeadAttention attention(16, 4);
  Tensor x = random::normal({2, 5, 16});
  Tensor itself = attention(x), same = attention(x, {.keys = x, .values = x});
  CHECK(itself.shape() == Shape{2, 5, 16});
  CHECK(max(abs(itself - same)).item<float>() < 1e-5);
  CHECK(attention(ones({2, 1, 16}), {.keys = x}).shape() == Shape{2, 1, 16});
  CHECK(nn::RMSNorm(16)(x).shape() == x.shape());
}

TEST_CASE("a loss that takes parameters away is an error") {
  Net model;
  auto loss_and_grad = nn::value_and_grad(model, [&](const Tensor& x) {
    model.blocks.pop_back();
    return sum(model(x));
  });
  Tensor x = array<int64_t>({1, 2});
  CHECK_THROWS_AS(loss_and_grad(x), UserError);
}

TEST_CASE("nn::value_and_grad of a function that gets the model") {
  Pair model;
  Tensor x = array({{1.0F, -2.0F, 0.5F}, {0.0F, 1.0F, 3.0F}});
  auto loss = [](const Pair& m, const Tensor& data) { return sum(m(data) * m(data)); };
  auto loss_and_grad = nn::value_and_grad(model, loss);
  nn::TensorMap expected = nn::value_and_grad(model, [&] { return loss(model, x); })().gradients;
  REQUIRE(!all(expected.at("a.weight") == 0).item<bool>());
  auto check = [&](const nn::TensorMap& gradients) {
    for (const auto& [name, gradient] : expected) {
      INFO(name);
      CHECK(all(gradients.at(name) == gradient).item<bool>());
    }
  };
  auto gradients_of = [&](const Pair& m, const Tensor& data) {
    return loss_and_grad(m, data).gradients;
  };
  SUBCASE("as it is") { check(gradients_of(model, x)); }
  SUBCASE("compiled") { check(compile(gradients_of)(model, x)); }
  SUBCASE("compiled twice") {
    auto inner = compile(gradients_of);
    check(compile([&](const Pair& m, const Tensor& data) { return inner(m, data); })(model, x));
  }
  SUBCASE("differentiated") {
    auto slopes = [&](const Pair& m, const Tensor& data) {
      return sum(gradients_of(m, data).at("a.weight"));
    };
    Tensor direct = grad([&](const Tensor& data) { return slopes(model, data); })(x);
    CHECK(all(grad(slopes, wrt<1>)(model, x) == direct).item<bool>());
    CHECK(any(grad(slopes, wrt<0>)(model, x).b.weight != 0).item<bool>());
  }
  SUBCASE("a part of the model, and another model") {
    auto part = nn::value_and_grad(model.a, loss);
    auto of_part = [&](const Pair& m, const Tensor& data) { return part(m, data).gradients; };
    nn::TensorMap made = compile(of_part)(model, x);
    CHECK(all(made.at("weight") == expected.at("a.weight")).item<bool>());
    Pair teacher = model;
    auto distance = nn::value_and_grad(model, [&](const Pair& other, const Tensor& data) {
      return sum(model(data) * other(data));
    });
    auto of_distance = [&](const Pair& m, const Tensor& d) { return distance(m, d).gradients; };
    nn::TensorMap apart = of_distance(teacher, x);
    for (const auto& [name, gradient] : compile(of_distance)(teacher, x))
      CHECK(all(gradient == apart.at(name)).item<bool>());
  }
}

TEST_CASE("nn::value_and_grad of a model inside another argument") {
  Pair model;
  Tensor x = array({{1.0F, -2.0F, 0.5F}, {0.0F, 1.0F, 3.0F}});
  auto loss = [](const Pair& m, const Tensor& data) { return sum(m(data) * m(data)); };
  nn::TensorMap expected = nn::value_and_grad(model, loss)(model, x).gradients;
  auto check = [&](const nn::TensorMap& gradients) {
    for (const auto& [name, gradient] : expected) {
      INFO(name);
      CHECK(all(gradients.at(name) == gradient).item<bool>());
    }
  };
  auto check_inside = [&]<class C>(C container, auto take) {
    auto h = nn::value_and_grad(
        take(container), [&](const C& c, const Tensor& data) { return loss(take(c), data); });
    auto f = [&](const C& c, const Tensor& data) { return h(c, data).gradients; };
    check(f(container, x));
    check(compile(f)(container, x));
    check(checkpoint(f)(container, x));
  };
  check_inside(std::vector<Pair>(2, model), [](auto& c) -> auto& { return c[1]; });
  check_inside(std::tuple<float, Pair>(1.0F, model),
               [](auto& c) -> auto& { return std::get<1>(c); });
  check_inside(std::map<std::string, Pair>{{"m", model}},
               [](auto& c) -> auto& { return c.find("m")->second; });
}

TEST_CASE("nn::value_and_grad of a model and copies of it") {
  Pair model;
  Tensor x = ones({2, 3});
  auto loss_and_grad = nn::value_and_grad(
      model,
      [](const Pair& a, const Pair& b, const Tensor& data) { return sum(a(data) * b(data)); });
  auto by_reference = [&](const Pair& m, const Tensor& data) {
    Pair teacher = m;
    return loss_and_grad(m, teacher, data).gradients;
  };
  auto by_value = [&](Pair m, const Tensor& data) {  // NOLINT(performance-unnecessary-value-param)
    return loss_and_grad(m, model, data).gradients;
  };
  auto check = [&](auto f) {
    nn::TensorMap expected = f(model, x);
    REQUIRE(any(expected.at("a.weight") != 0).template item<bool>());
    for (const auto& [name, gradient] : compile(f)(model, x)) {
      INFO(name);
      CHECK(all(gradient == expected.at(name)).template item<bool>());
    }
  };
  check(by_reference);
  check(by_value);
  SUBCASE("a copy keeps its own tangent") {
    auto value = [&](const Pair& a, const Pair& b) { return loss_and_grad(a, b, x).value; };
    auto plain = [&](const Pair& a, const Pair& b) { return sum(a(x) * b(x)); };
    Pair made = grad(value)(model, model), expected = grad(plain)(model, model);
    CHECK(all(made.a.weight == expected.a.weight).item<bool>());
  }
}

TEST_CASE("gradients of a copy are its own") {
  Tensor x = ones({1, 2});
  nn::Linear online(2, 2);
  optim::SGD optimizer(online.parameters(), {.learning_rate = 0.1});
  nn::Linear target = online;
  sum(target(x)).backward();
  CHECK(!grad(online.weight).defined());
  CHECK(grad(target.weight).to_vector<float>() == std::vector<float>(4, 1));
  CHECK(contains(error_in([&] { optimizer.step(); }), "none of 2 parameters has a gradient"));

  nn::Linear late = online;  // first used when the original has other values
  sum(online(x)).backward();
  std::vector<float> before = online.weight.to_vector<float>();
  optimizer.step();
  sum(late(x)).backward();
  CHECK(late.weight.to_vector<float>() == before);
  CHECK(grad(late.weight).to_vector<float>() == std::vector<float>(4, 1));

  nn::Sequential c{nn::Linear(2, 2)};
  optim::SGD of_c(c.parameters(), {.learning_rate = 0.1});
  nn::Sequential d = c;
  optim::SGD of_d(d.parameters(), {.learning_rate = 0.1});
  sum(c(x) + d(x)).backward();
  for (nn::Sequential* model : {&c, &d})
    CHECK(grad(model->parameters()[0].tensor).to_vector<float>() == std::vector<float>(4, 1));
}

namespace {

struct Tied : nn::Module<Tied> {
  Tensor a = ones({2}), b = a;
  Tensor forward(const Tensor& x) const { return a * x + b; }
  static void fields(auto& m, auto&& f) { f("a", m.a), f("b", m.b); }
};

}  // namespace

TEST_CASE("fields that share a variable share one in a copy, too") {
  Tied model;
  require_grad(model.a), model.b = model.a;
  Tied copy = model;
  sum(copy(ones({2}))).backward();
  CHECK(grad(copy.b).to_vector<float>() == std::vector<float>{2, 2});
  CHECK(!grad(model.a).defined());
}

TEST_CASE("layers that are function objects") {
  auto f = compile([](const nn::Sequential& m, const Tensor& x) { return m(x); });
  auto times = [](double s) { return nn::Sequential{[s](const Tensor& x) { return s * x; }}; };
  auto held = [](Tensor w) { return nn::Sequential{[w](const Tensor& x) { return w * x; }}; };
  Tensor one = ones({1});
  for (double s : {2.0, 3.0}) {
    CHECK(f(times(s), one).item<float>() == s);
    CHECK(f(held(array({s})), one).item<double>() == s);
  }
  nn::Sequential slopes{nn::LeakyReLU(0.25), nn::Softmax{}};
  nn::Sequential others{nn::LeakyReLU(0.5), nn::Softmax{}};
  Tensor x = array({-4.f, 0.f});
  CHECK(f(slopes, x).to_vector<float>() == softmax(array({-1.f, 0.f})).to_vector<float>());
  CHECK(f(others, x).to_vector<float>() == softmax(array({-2.f, 0.f})).to_vector<float>());

  nn::Sequential first = held(one), copied = first;
  CHECK(f(first, one).item<float>() == 1);
  size_t traces = f.why_recompiled().size();
  CHECK(f(copied, one).item<float>() == 1);
  CHECK(f.why_recompiled().size() == traces);

  nn::Layer layer = nn::relu, taken = std::move(layer);
  CHECK(problem_in([&] { layer(x); }) == "Layer: there is no layer: it was moved to another place");
}

TEST_CASE("a name that no field has is not frozen in silence") {
  Net model;
  std::string error = error_in([&] { model.freeze({"wieght"}); });
  CHECK(contains(error, "freeze: no field 'wieght' holds a tensor that is trained"));
  CHECK(contains(error, "test_nn.cpp"));
  CHECK(contains(error, "hint: did you mean 'weight'?"));
  CHECK(contains(error_in([&] { model.unfreeze({"zzz"}); }), "unfreeze: no field 'zzz'"));
}

TEST_CASE("a layer that moves its statistics is state of what is traced, or an error") {
  nn::BatchNorm norm(2);
  Tensor x = ones({4, 2});
  auto call = [&](const Tensor& in) { return norm(in); };
  CHECK(contains(error_in([&] { compile_ahead(call, {{.shape = {4, 2}}}); }),
                 "BatchNorm: training updates its running statistics"));
  CHECK(contains(error_in([&] { compile(call)(x); }), "not part of the traced function"));
  CHECK(norm.running_mean.to_vector<float>() == std::vector<float>{0, 0});
  compile(call, std::tie(norm))(x);
  CHECK(norm.running_mean.to_vector<float>()[0] > 0);
  norm.eval();
  CHECK(compile_ahead(call, {{.shape = {4, 2}}})(x).shape() == Shape{4, 2});
}

TEST_CASE("batches that were moved from say so") {
  auto first = data::batches(ones({4, 2}), 2), second = std::move(first);
  CHECK(second.at(1).size() == 4);
  CHECK(contains(error_in([&] { first.at(0); }), "they were moved from"));  // NOLINT
}

TEST_CASE("a module that was moved from is an error, and no empty model") {
  nn::Sequential model{nn::Linear(2, 3), nn::relu}, taken = std::move(model);
  Tensor x = ones({4, 2});
  auto says_so = [](auto&& f) {
    std::string error = error_in(f);
    return contains(error, "module: it was moved to another place") && contains(error, "at ") &&
           contains(error, "test_nn.cpp") && contains(error, "use the module that it was moved to");
  };
  CHECK(says_so([&] { model(x); }));  // NOLINT: that is the test
  CHECK(says_so([&] { model.state_dict(); }));
  CHECK(says_so([&] { model.parameters(); }));
  CHECK(says_so([&] { model.trainable_parameters(); }));
  CHECK(says_so([&] { model.update({}); }));
  CHECK(says_so([&] { model.train(); }));
  CHECK(says_so([&] { model.eval(); }));
  CHECK(says_so([&] { eval(model); }));
  CHECK(says_so([&] { optim::SGD{std::tie(model)}; }));
  CHECK(says_so([&] { compile([&](const Tensor& t) { return t; }, std::tie(model))(x); }));
  CHECK(says_so([&] { model.save_weights("moved.safetensors"); }));
  CHECK(says_so([&] { nn::value_and_grad(model, [&] { return sum(model(x)); })(); }));
  CHECK(says_so([&] { save_checkpoint("moved.safetensors", {{"model", model}}); }));
  nn::Sequential copy = model, outer{nn::relu, model};
  CHECK(says_so([&] { copy(x); }));
  CHECK(says_so([&] { outer.state_dict(); }));
  std::swap(model, taken);
  CHECK(model(x).shape() == Shape{4, 3});
  taken = nn::Sequential{nn::Linear(2, 1)};
  CHECK(taken(x).shape() == Shape{4, 1});
  CHECK(nn::Sequential()(x).shape() == Shape{4, 2});

  Net net, other = std::move(net);
  CHECK(contains(error_in([&] { net(tokens()); }), "module: it was moved"));  // NOLINT
  nn::Layer first = std::move(model.layers[0]);
  CHECK(contains(error_in([&] { model.state_dict(); }), "Layer: there is no layer"));
}

namespace {
struct Gate : nn::Module<Gate> {
  Tensor weight = random::normal({2, 2});
  static void fields(auto& g, auto&& f) { f("weight", g.weight); }
};
}  // namespace

TEST_CASE("random layers in training are state of what is traced, or an error") {
  nn::Dropout dropout(0.5);
  Tensor x = ones({64});
  auto call = [&](const Tensor& in) { return dropout(in); };
  std::string error = error_in([&] { compile(call)(x); });
  CHECK(contains(error, "random: drawn without a key while compiling"));
  CHECK(contains(error, "tn::compile(f, std::tie(model))"));
  CHECK(contains(error, "test_nn.cpp"));
  CHECK(contains(error_in([&] { compile_ahead(call, {{.shape = {64}}}); }), "drawn without a key"));
  auto noise = [](const Tensor& in) { return in + random::normal({64}); };
  CHECK(contains(error_in([&] { compile(noise)(x); }), "test_nn.cpp"));
  auto step = compile(call, std::tie(dropout));
  CHECK(step(x).to_vector<float>() != step(x).to_vector<float>());
  dropout.eval();
  CHECK(compile(call)(x).to_vector<float>() == x.to_vector<float>());
  auto same = [](const Gate& gate) { return gate; };
  CHECK(compile_ahead(same, {{.shape = {2, 2}}})(Gate()).weight.shape() == Shape{2, 2});
}
