// Errors of the C++ API that Python checks before it calls it.
#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <sstream>

#include "errors.h"
#include "tenon/backward.h"
#include "tenon/checkpoints.h"
#include "tenon/compile.h"
#include "tenon/data.h"
#include "tenon/executable.h"
#include "tenon/files.h"
#include "tenon/flat.h"
#include "tenon/model_blocks.h"
#include "tenon/nn.h"
#include "tenon/operators.h"
#include "tenon/ops.h"
#include "tenon/optim.h"
#include "tenon/physical_model.h"
#include "tenon/printing.h"
#include "tenon/profile.h"
#include "tenon/random.h"
#include "tenon/vmap.h"

using namespace tn;

namespace {

void check_error(std::string_view expected, const std::function<void()>& call) {
  std::string found = error_in(call);
  CHECK_MESSAGE(contains(found, expected), found);
}

Tensors first(const Tensors& in) { return {in[0]}; }
Tensors twice(const Tensors& in) { return {in[0], in[0]}; }

}  // namespace

TEST_CASE("errors of control flow") {
  Tensor x = ones({2}), yes(true);
  check_error("cond: the branches return 1 and 2 results",
              [&] { flat::cond(yes, first, twice, {x}); });
  check_error("while_loop: the condition returns 2 results",
              [&] { flat::while_loop(twice, first, {yes}); });
  auto no_carry = [](const Tensors&, const Tensors&) { return flat::ScanResult{}; };
  check_error("scan: the body returns a carry of 0 tensors, it was given 1",
              [&] { flat::scan(no_carry, {x}, {x}); });
}

TEST_CASE("errors of transforms") {
  Tensor x = ones({2});
  check_error("vmap: 2 in_axes for 1 arguments", [&] { flat::vmap(first, {0, 0})({x}); });
  check_error("vmap: 2 out_axes for 1 results", [&] { flat::vmap(first, {0}, {0, 0})({x}); });
  check_error("grad: no argument 1 of 1", [&] { flat::grad(first, {1})({x}); });
  check_error("vjp: 2 cotangents for 1 results", [&] { flat::vjp(first, {x}, {x, x}); });
  check_error("jvp: 2 tangents for 1 arguments", [&] { flat::jvp(first, {x}, {x, x}); });
  check_error("checkpoint: segments must be 1 or more: 0", [&] { flat::checkpoint(first, 0); });
  flat::CustomRules mapped;
  mapped.vmap = [](auto&&...) { return std::pair<Tensors, std::vector<bool>>(); };
  check_error("custom_function: vmap returns 0 results and 0 flags for 1 results",
              [&] { flat::vmap(flat::custom_function(first, mapped))({x}); });
  auto sum_of = [](const Function& f) {
    return [f](const Tensors& in) { return Tensors{sum(f(in)[0])}; };
  };
  auto with_vjp = [&](Tensors cotangents) {
    flat::CustomRules rules;
    rules.vjp = [=](const Tensors&, const Tensors&, const Tensors&) { return cotangents; };
    flat::grad(sum_of(flat::custom_function(first, rules)))({x});
  };
  check_error("vjp returns 0 cotangents for 1 arguments", [&] { with_vjp({}); });
  check_error("vjp returns f32[3] as the cotangent of argument 0, which is f32[2]",
              [&] { with_vjp({ones({3})}); });
}

TEST_CASE("errors have the line of the call") {
  Tensor null;
  nn::Linear model(2, 1), gone(2, 1), taken = std::move(gone);
  optim::SGD optimizer(0.1);
  amp::LossScaler scaler;
  auto with_line = [](std::string_view expected, const std::function<void()>& call) {
    check_error(expected, call);
    check_error("test_api_errors.cpp", call);
  };
  with_line("eval: argument 0 is a null tensor", [&] { eval(null); });
  with_line("eval: argument 1[0] is a null tensor", [&] { eval(model, std::tuple{null}); });
  with_line("async_eval: argument 0 is a null tensor", [&] { async_eval(null); });
  with_line("module: it was moved", [&] { scaler.update(optimizer, gone, {}); });  // NOLINT
  with_line("a gradient for w, which is no parameter",
            [&] { scaler.update(optimizer, model, {{"w", ones({2})}}); });
  with_line("no parameters", [&] { scaler.step(optimizer); });
  with_line("device", [] { Device("toaster"); });
  with_line("array: 2 values for the shape [3], of 3 elements",
            [] { array({1.f, 2.f}, Shape{3}); });
  with_line("array: 3 values for the shape [2,2], of 4 elements",
            [] { array(std::vector{1, 2, 3}, {2, 2}); });
  with_line("array: the number 18446744073709551615 does not fit i8",
            [] { array(UINT64_MAX, int8); });
  with_line("array: the number -200 does not fit i8", [] { array(-200, int8); });
}

TEST_CASE("errors of null operands and sizes") {
  Tensor x = ones({2}), null;
  auto error_of = [](auto call) {
    std::string text = error_in(call);
    return text.substr(0, text.find('\n'));
  };
  CHECK(error_of([&] { add(null, x); }) == "a null tensor was used: it holds no value");
  CHECK(error_of([&] { concat({x, null}, 0); }) == "concat: operand arrays[1] is missing");
  CHECK(error_of([&] { conv2d(null, x); }) == "conv2d: operand x is missing");
  CHECK(error_of([] { tril_indices(-1); }) == "tril_indices: a size is negative: -1");
  CHECK(error_of([] { eye(-1); }) == "eye: a size is negative: -1");
  CHECK(error_of([&] { argreduce(x, 0, "middle"); }) ==
        "argreduce: mode must be one of max, min: 'middle'");
}

TEST_CASE("errors of compiled functions") {
  Tensor x = ones({2});
  auto run = [&](const CompileSettings& settings) {
    compile([](const Tensor& a) { return exp(a); }, settings)(x);
  };
  check_error("compile: timeout must be 0 seconds or more, not -1", [&] { run({.timeout = -1}); });
  check_error("compile: memory_planning is one of greedy, best_fit, optimal, none, not 'tight'",
              [&] { run({.plan = {.memory_planning = "tight"}}); });
  check_error("compile: optimize_for is one of latency, throughput, not 'size'",
              [&] { run({.plan = {.optimize_for = "size"}}); });
  InputInfo size = size_input({1, 2, 4}, "n");
  check_error("compile_ahead: inputs that are sizes need compile_ahead_sized",
              [&] { flat::compile_ahead(first, {size}); });
  size.shape.emplace_back(3);
  check_error("compile: the size `n` has 2 ranges, not 1",
              [&] { flat::compile_ahead_sized([&](auto&&...) { return Tensors{x}; }, {size}); });
}

TEST_CASE("errors of ops and models") {
  using namespace tn::model;
  check_error("einsum: no operands: \"i\"", [] { einsum("i", {}); });
  check_error("op_block: no op 'nothing'", [] { op_block("nothing"); });
  Model m;
  check_error("terminal 'input' is connected twice",
              [&] { m |= Linear(2)({{"input", "x"}, {"input", "y"}}); });
  Model linear;
  linear |= Linear(2)({{"input", "x"}, {"output", "y"}});
  check_error("invalid size -1", [&] { model::compile(linear, {.shapes = {{"x", "-1 3"}}}); });
  PhysicalModel physical = model::compile(linear, {.shapes = {{"x", "4 3"}}});
  check_error("evaluate: params has no 'linear.",
              [&] { physical.evaluate({}, {{"x", ones({4, 3})}}); });
}

TEST_CASE("errors in traced functions have the line of the call, and hints in C++") {
  Tensor x = ones({2, 2});
  auto error_of = [&](auto&& read) {
    return error_in([&] {
      compile([&](Tensor y) {
        read(y);
        return y;
      })(x);
    });
  };
  std::string text = error_of([](Tensor& y) { return y[{0, 0}].item<float>(); });
  CHECK(contains(text, "compile: cannot evaluate a tensor while tracing"));
  CHECK(contains(text, "test_api_errors.cpp:" + std::to_string(__LINE__ - 2)));
  CHECK(contains(text, "tn::print to print values"));
  auto has_line = [&](auto&& read) {
    return contains(error_of(read), "\n  at ") && contains(error_of(read), "test_api_errors.cpp");
  };
  CHECK(has_line([](Tensor& y) { return y.to_vector<float>(); }));
  CHECK(has_line([](Tensor& y) { return y.eval(); }));
  CHECK(has_line([](Tensor& y) { return y.to_string(); }));
  CHECK(has_line([](Tensor& y) { return y.data<float>(); }));
  CHECK(has_line([](Tensor& y) { return eval({y}); }));
  std::ostringstream out;
  CHECK(has_line([&](Tensor& y) { out << y; }));
  CHECK(has_line([&](Tensor& y) { out << y[0]; }));
  // A stream that is a temporary calls from <ostream>, which is no place of the user.
  text = error_of([](Tensor& y) { std::ostringstream() << y; });
  CHECK_FALSE(contains(text, "/include/c++/"));
  // A conversion has no place: the error has that of the tensor.
  CHECK(contains(error_of([](Tensor& y) { return static_cast<double>(sum(y)); }),
                 "tracing: it was made at "));
  CHECK(contains(error_in([&] { backward(sum(x)); }), "call tn::require_grad(x) before"));
  CHECK(contains(error_in([&] { vmap([](Tensor y) { return y; }, {none})(x); }), "vmap(f, {0})"));
}

TEST_CASE("errors of calls that are no ops have the line of the call") {
  Tensor x = ones({2}), w = ones({2}), loss;
  require_grad(w);
  nn::Linear model(2, 2);
  optim::SGD optimizer{model.parameters(), {.learning_rate = 0.1}};
  auto exe = compile_ahead([](Tensor y) { return y; }, {{.shape = {2}}});
  auto has_line = [](const std::function<void()>& call) {
    std::string text = error_in(call);
    return contains(text, "\n  at ") && contains(text, "test_api_errors.cpp");
  };
  CHECK(has_line([&] { sum(x).backward(); }));
  CHECK(has_line([&] { (w * w).backward(); }));
  CHECK(has_line([&] { loss.backward(); }));
  CHECK(has_line([&] { backward(w * w, ones({3})); }));
  CHECK(has_line([&] { set_grad(w, ones({3})); }));
  CHECK(has_line([&] { rebind(w, ones({3})); }));
  CHECK(has_line([&] { grad(loss); }));
  CHECK(has_line([&] { x.dim(2); }));
  CHECK(has_line([&] { optimizer.step(); }));
  CHECK(has_line([&] { data::batches(x, 0); }));
  CHECK(has_line([&] { exe(ones({3})); }));
  CHECK(has_line([&] { compile([](Tensor y) { return y; })(loss); }));
  CHECK(has_line([&] { exe.save("/no/such/file"); }));
  CHECK(has_line([] { Executable::load<Tensor(Tensor)>("/no/such"); }));
  CHECK(has_line([] { compile_ahead([](Tensor y) { return y; }, {}); }));
  CHECK(has_line([] { load_safetensors("/no/such"); }));
  CHECK(has_line([] { load_npy("/no/such"); }));
  CHECK(has_line([] { load_npz("/no/such"); }));
  CHECK(has_line([] { load_checkpoint("/no/such"); }));
  CHECK(has_line([&] { model.load_weights("/no/such"); }));
  CHECK(has_line([&] { model.save_weights("/no/such/file"); }));
  CHECK(has_line([&] { model.load_state_dict({}); }));
  CHECK(has_line([] { profile([] {}, 0); }));
  CHECK(has_line([] { Checkpoints("/proc/none").save(1, {}); }));
  CHECK(has_line([] { array({1, 2, 3}, {2}); }));
  CHECK(has_line([] { array(std::vector{1.f, 2.f}, {3}); }));
  CHECK(has_line([] { array({{1, 2}, {3}}); }));
  CHECK(has_line([] { Device("no_such"); }));
  CHECK(has_line([] { ones({2}).to("no_such"); }));
  CHECK(has_line([] { DeviceScope scope("no_such"); }));
  CHECK(has_line([] { tn::random::normal({2}, tn::random::key(0)); }));
  CHECK(has_line([] { tn::random::uniform({2}, tn::random::key(0)); }));
}

TEST_CASE("errors of constructors have the line of the call") {
  auto has_line = [](const std::function<void()>& call) {
    std::string text = error_in(call);
    return contains(text, "\n  at ") && contains(text, "test_api_errors.cpp");
  };
  nn::Linear model(2, 2);
  CHECK(has_line([] { nn::Linear(0, 3); }));
  CHECK(has_line([] { nn::Sequential{nn::Linear(2, 3), relu, nn::Linear(3, -1)}; }));
  CHECK(has_line([] { nn::MSELoss("both"); }));
  CHECK(has_line([] { nn::MultiHeadAttention(10, 3); }));
  CHECK(has_line([] { nn::PReLU(0); }));
  CHECK(has_line([] { nn::Upsample({}); }));
  CHECK(has_line([] { nn::LSTM(0, 3); }));
  CHECK(has_line([] { nn::TransformerDecoderLayer(10, 3); }));
  CHECK(has_line([] { nn::Transformer(10, 3); }));
  CHECK(has_line([] { nn::TransformerEncoder(0, 8, 2); }));
  CHECK(has_line([] { model::MSELoss("both"); }));
  CHECK(has_line([] { model::GELU("erf"); }));
  CHECK(has_line([] { model::Conv2d(8, 0); }));
  CHECK(has_line([&] { optim::SGD{model.parameters(), {.learning_rate = -1.0}}; }));
  CHECK(has_line([&] { optim::AdamW{model.parameters(), {.eps = -1.0}}; }));
  CHECK(has_line([&] { optim::AdamW{model.parameters(), {.weight_decay = -1.0}}; }));
  CHECK(has_line([&] { optim::SGD(0.1, {.learning_rate = 0.1}); }));
}

TEST_CASE("vmap takes one axis for all arguments and results") {
  auto added = [](Tensor a, Tensor b) { return a + b; };
  CHECK(vmap(added, 1, 1)(ones({2, 5}), ones({2, 5})).shape() == Shape{2, 5});
  CHECK(vmap(added, 1)(ones({2, 5}), ones({2, 5})).shape() == Shape{5, 2});
}
