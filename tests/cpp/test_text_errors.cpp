// Errors of the parsers: graphs, attributes, sizes and kernels.
#include <doctest/doctest.h>

#include "errors.h"
#include "ir/dim.h"
#include "ir/graph.h"
#include "loop/interpreter.h"
#include "loop/kernel.h"
#include "run_graph.h"
#include "tenon/ops.h"

using namespace tn;

namespace {

struct BadText {
  std::string_view text, error;
};

std::string in_graph(std::string_view line) {
  return format("func @main(%x: f32[2,3], %y: f32[2,3]) {{\n  {}\n  return %x\n}}\n", line);
}

std::string in_kernel(std::string_view lines) {
  return format("kernel k(x: f32[6]) -> (y: f32[6]) {{\n  axes p0:6 par\n{}\n}}\n", lines);
}

void check_graph(const std::string& text, std::string_view error) {
  std::string found = error_in([&] { parse_graph(text); });
  CHECK_MESSAGE(contains(found, error), text, ": ", found);
}

void check_kernel(const std::string& text, std::string_view error) {
  std::string found = error_in([&] { loop::parse_kernel(text); });
  CHECK_MESSAGE(contains(found, error), text, ": ", found);
}

}  // namespace

TEST_CASE("errors in the text of graphs") {
  for (auto [text, error] : {
           BadText{"graph", "line 1: expected 'func @name(...)'"},
           {"func @f() {\n", "line 1: the text ends before 'return'"},
           {"func @f(%x: f32[2]) {\n  return %x\n", "line 2: expected '}' after 'return'"},
           {"func @f(x: f32[2]) {\n", "line 1: expected '%', found 'x: f32[2]) {'"},
           {"func @(%x: f32[2]) {\n", "line 1: expected a name, found '(%x: f32[2]) {'"},
           {"func @f[B: 1](%x: f32[B]) {\n", "line 1: expected a range such as 1..16, found '1'"},
           {"func @f[B: 1..y](%x: f32[B]) {\n", "line 1: expected a number, found 'y'"},
       })
    check_graph(std::string(text), error);
}

TEST_CASE("errors in the ops of a graph's text") {
  for (auto [line, error] : {
           BadText{"%0 = sum %x {axis=[0]", "line 2: expected '}'"},
           {"%0 = sum %x {axis=[-1]}",
            "line 2: sum: attributes in a graph are canonical: {axis=[1]}"},
           {"%0 = mean %x", "line 2: mean is not recorded: it stands for other ops"},
           {"%0 = add %x, %y : f32[3]", "line 2: add gives f32[2,3], not f32[3]"},
           {"%0 = sum %x {axis}", "sum: attributes are written name=value, found 'axis'"},
           {"%0 = sum %x {axis=1}",
            "sum: attribute axis: expected a list such as [0,1], found '1'"},
           {"%0 = sum %x {axis=[a]}", "sum: attribute axis: expected a number, found '[a]'"},
           {"%0 = sum %x {keepdims=2}",
            "sum: attribute keepdims: expected true or false, found '2'"},
           {"%0 = astype %x {dtype=f3}", "astype: attribute dtype: expected an element type"},
           {"%0 = constant {value=(1}", "constant: attribute value: expected a complex number"},
           {"%0 = argreduce %x {mode=middle}", "argreduce: attribute mode: expected one of"},
           {"%0 = print %x {text=x}", "print: attribute text: expected text in quotes, found 'x'"},
       })
    check_graph(in_graph(line), error);
}

TEST_CASE("operands of primitives have one type") {
  auto text = [](std::string_view types, std::string_view op) {
    return format("func @main({}) {{\n  %0 = {}\n  return %0\n}}\n", types, op);
  };
  check_graph(text("%x: f32[2], %y: i32[2]", "add %x, %y"),
              "add: operands have different element types: f32[2] and i32[2]");
  check_graph(text("%x: f32[2], %y: f32[2], %z: f64[2]", "where %x, %y, %z"),
              "where: operands have different element types: f32[2] and f64[2]");
  check_graph(text("%c: f32[2], %x: f32[2]", "where %c, %x, %x"),
              "where: operands have different element types: f32[2] and f32[2]");
}

TEST_CASE("operands of primitives that have graphs, axes or parts") {
  auto text = [](std::string_view types, std::string_view op) {
    return format("func @main({}) {{\n  %0 = {}\n  return %0\n}}\n", types, op);
  };
  check_graph(text("%x: f32[2], %y: f32[3]", "make_complex %x, %y"), "make_complex: ");
  check_graph(text("%x: f32[2], %y: f32[2]",
                   "dot %x, %y {lhs_contract=[3], rhs_contract=[0], lhs_batch=[], rhs_batch=[]}"),
              "dot: ");
  constexpr std::string_view kSame = "func @f(%x: f32[2]) {\n    return %x\n  }";
  constexpr std::string_view kSum =
      "func @f(%x: f32[2]) {\n    %0 = sum %x {axis=[0]}\n    return %0\n  }";
  std::string types = "%p: bool[], %x: f32[2], %y: f32[3]";
  check_graph(text(types, format("cond %p, %x {{then={}, otherwise={}}}", kSame, kSum)),
              "cond: the graphs give different types");
  check_graph(text(types, format("cond %p, %y {{then={}, otherwise={}}}", kSame, kSame)),
              "cond: operand 0 is f32[3] but the graph takes f32[2]");
}

TEST_CASE("types of primitives in the text of graphs") {
  constexpr std::string_view kSame = "func @f(%x: f32[2]) {\n    return %x\n  }";
  constexpr std::string_view kSum =
      "func @f(%x: f32[2]) {\n    %0 = sum %x {axis=[0]}\n    return %0\n  }";
  constexpr std::string_view kTrue =
      "func @f(%x: f32[2]) {\n    %0 = constant {value=true} : bool[]\n    return %0\n  }";
  constexpr std::string_view kConv =
      "stride=[1], padding=[0,0], input_dilation=[1], kernel_dilation=[1]";
  constexpr std::string_view kSides =
      "lhs_contract=[0], rhs_contract=[0], lhs_batch=[], rhs_batch=[]";
  struct BadOp {
    std::string_view types;
    std::string op, error;
  };
  for (const auto& [types, op, error] : {
           BadOp{"%x: f32[2], %y: i32[2]", "concat %x, %y {axis=0}",
                 "concat: operands have different element types: f32[2] and i32[2]"},
           {"%x: f32[1,1,4], %y: f64[1,1,2]", format("conv %x, %y {{{}}}", kConv),
            "conv: operands have different element types: f32[1,1,4] and f64[1,1,2]"},
           {"%x: f32[1,1,4], %y: f32[1,1,3]",
            format("conv_weights %x, %y {{{}, kernel=[3,3]}}", kConv),
            "conv_weights: a kernel of 2 axes for f32[1,1,4] and f32[1,1,3]"},
           {"%x: f32[1,1,4], %y: f32[1,1,3]",
            format("conv_weights %x, %y {{{}, kernel=[3]}}", kConv),
            "conv_weights: a convolution of f32[1,1,4] with f32[1,1,3] gives f32[1,1,2], not "
            "f32[1,1,3]"},
           {"%x: f32[2], %y: f64[2]", format("dot %x, %y {{{}}}", kSides),
            "dot: operands have different element types: f32[2] and f64[2]"},
           {"%x: f32[5], %y: f64[2]", "searchsorted %x, %y",
            "searchsorted: x1 needs one axis and the element type of x2: f32[5] and f64[2]"},
           {"%p: f32[], %x: f32[2]", format("cond %p, %x {{then={}, otherwise={}}}", kSame, kSame),
            "cond: the predicate must be one bool, not f32[]"},
           {"%p: bool[]", format("cond %p {{then={}, otherwise={}}}", kSame, kSame),
            "cond: 0 operands for a graph of 1 inputs"},
           {"%x: f32[2]", format("while_loop %x {{go_on={}, body={}}}", kSame, kSame),
            "while_loop: the condition must return one bool"},
           {"%x: f32[2]", format("while_loop %x {{go_on={}, body={}}}", kTrue, kSum),
            "while_loop: the body returns f32[] as carry 0, and takes another type"},
           {"%x: f32[2]", format("scan %x {{body={}, carries=1, xs=1}}", kSame),
            "scan: 1 operands for a carry of 1 and 1 xs"},
           {"%x: f32[2]", format("scan %x {{body={}, carries=0, xs=1, length=4}}", kSame),
            "scan: f32[2] has no first axis of 4 slices"},
           {"%x: f32[2]", format("scan %x {{body={}, carries=1, xs=0, length=4}}", kSum),
            "scan: carry 0 is f32[2] but the body returns f32[]"},
       })
    check_graph(format("func @main({}) {{\n  %0 = {}\n  return %0\n}}\n", types, op), error);
}

TEST_CASE("errors in the text of sizes") {
  for (auto [text, error] : {
           BadText{"min(B", "size: expected `,` at column 6 of `min(B`"},
           {"B//0", "size: division by 0 in `B//0`"},
           {"B C", "size: expected an operator"},
           {"", "size: expected a number or a name"},
           {"B+*", "size: expected a number or a name"},
           {"99999999999999999999", "does not fit in 64 bits"},
       })
    CHECK(contains(error_in([&] { parse_dim(text); }), error));
  CHECK(contains(error_in([] { parse_dim(std::string(5000, '(')); }), "is nested too deeply"));
  std::string product = "B";
  for (int i = 0; i < 10'000; ++i) product += "//2";
  CHECK(contains(error_in([&] { parse_dim(product); }), "has more than 10000 factors"));
}

TEST_CASE("errors of sizes") {
  Dim b = Dim::symbol("B", 1, 100);
  CHECK(error_in([] { Dim(2) - Dim(3); }) == "size: a size cannot be negative: 2 - 3");
  CHECK(error_in([&] { floor_div(b, 0); }) == "size: division of B by 0");
  CHECK(error_in([&] { mod(b, 0); }) == "size: division of B by 0");
  CHECK(contains(error_in([] { intern(DType::f32, Shape{2, -1}); }),
                 "negative dimensions are not allowed here"));
}

TEST_CASE("sizes that are too large") {
  Dim n = Dim::symbol("N"), m = Dim::symbol("M");
  Binding values[] = {{n, int64_t{1} << 40}, {m, int64_t{1} << 40}};
  CHECK(error_in([&] { evaluate(n * m, values); }) == "size: M*N does not fit in 64 bits");
  Dim sum = Dim(int64_t{1} << 22) * n + Dim(int64_t{1} << 22) * m;
  CHECK(contains(error_in([&] { evaluate(sum, values); }), "does not fit in 64 bits"));
  CHECK(contains(
      error_in([&] { traced([](auto& in) { return Tensors{slice(in[0], {0}, {5})}; }, {{n}}); }),
      "slice: whether N lies before 5 depends on the sizes"));
  std::string many = "p0";
  for (int i = 2; i < 3000; ++i) many += format(" + p0//{}", i);
  std::string kernel = format(
      "kernel k(x: f32[1]) -> (y: f32[1]) {{\n  axes p0:1000000 par\n  v0 = load x[{}] : f32\n}}\n",
      many);
  CHECK(contains(error_in([&] { loop::parse_kernel(kernel); }),
                 "size: a sum of 2049 terms, the maximum is 2048"));
}

TEST_CASE("a kernel with more points than can be counted") {
  loop::Kernel kernel = loop::parse_kernel(
      "kernel k(x: f32[1]) -> (y: f32[1]) {\n"
      "  axes p0:1099511627776 par, p1:1099511627776 par\n"
      "  v0 = load x[0] : f32\n  store y[0] = v0\n}\n");
  CHECK(error_in([&] { loop::prepare(kernel); }) == "kernel k: its axes have too many points");
}

TEST_CASE("errors in the text of kernels") {
  for (auto [text, error] : {
           BadText{"kernel k(x: f32[6]) -> (y: f32[6]) {\n", "the text ends before `}`"},
           {"loop k() -> () {\n}\n", "line 1: expected `kernel`"},
           {"kernel k(x: f32[6]) {\n}\n", "line 1: expected `kernel name(inputs) -> (outputs) {`"},
           {"kernel k(x: f32) -> (y: f32[6]) {\n  axes p0:6 par\n}\n",
            "expected `name: type[size]`: `x: f32`"},
           {"kernel k(x: f3[6]) -> (y: f32[6]) {\n  axes p0:6 par\n}\n",
            "unknown type: `x: f3[6]`"},
           {"kernel k(x: f32[B]) -> (y: f32[B]) {\n  symbols B\n}\n",
            "expected `name in low..high`: `B`"},
           {"kernel k(x: f32[6]) -> (y: f32[6]) {\n  axes p0\n}\n",
            "expected `name:size kind`: `p0`"},
           {"kernel k(x: f32[6]) -> (y: f32[6]) {\n  axes p0:6 up\n}\n",
            "the kind of an axis is par, red or scan"},
       })
    check_kernel(std::string(text), error);
}

TEST_CASE("errors in the statements of a kernel's text") {
  for (auto [lines, error] : {
           BadText{"arguments two", "expected a number: `two`"},
           {"v0", "expected `value = operation : type`: `v0`"},
           {"v1 = load x[p0] : f32", "expected v0"},
           {"v0 = load x[p0] : f3", "unknown type"},
           {"v0 = load x[p0] : f64", "the result has another type"},
           {"v0 = load x[p0] : f32\nv1 = cast v0 : f32", "a cast to the same type"},
           {"v0 = load x : f32", "expected buffer[index]: `x`"},
           {"v0 = load z[p0] : f32", "no such buffer: `z`"},
           {"v0 = load x[p0] if p0 > 1 : f32", "expected `>= 0`: `p0 > 1`"},
           {"v0 = exp x : f32", "expected a value: `x`"},
           {"v0 = exp v3 : f32", "no such value yet: `v3`"},
           {"v0 = load x[2*$3] : f32", "no such value yet in the index: `2*$3`"},
           {"v0 = add v0 : f32", "wrong number of operands: `add v0`"},
           {"v0 = nothing v0 : f32", "unknown operation: `nothing v0`"},
           {"v0 = constant one : f32", "expected a number: `one`"},
           {"v0 = constant one : i32", "expected a number: `one`"},
           {"v0 = load x[p0] : f32\nv1 = reduce v0 : f32", "expected `monoid value over axes`"},
           {"v0 = load x[p0] : f32\nv1 = reduce sub v0 over p0 : f32", "unknown monoid: `sub`"},
           {"v0 = load x[p0] : f32\nv1 = reduce add v0 over q : f32", "no such axis: `q`"},
           {"store y[p0]", "expected `buffer[index] = value`"},
           {"v0 = load x[$a] : f32", "index: expected a number after $: `$a`"},
       })
    check_kernel(in_kernel(lines), error);
}
