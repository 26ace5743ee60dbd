// Errors of the parsers: graphs, attributes, sizes and kernels.
#include <doctest/doctest.h>

#include "errors.h"
#include "ir/dim.h"
#include "ir/graph.h"
#include "loop/kernel.h"

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

TEST_CASE("errors in the text of kernels") {
  for (auto [text, error] : {
           BadText{"kernel k(x: f32[6]) -> (y: f32[6]) {\n", "the text ends before `}`"},
           {"loop k() -> () {\n}\n", "line 1: expected `kernel`"},
           {"kernel k(x: f32[6]) {\n}\n", "line 1: bad signature"},
           {"kernel k(x: f32) -> (y: f32[6]) {\n  axes p0:6 par\n}\n", "bad buffer: `x: f32`"},
           {"kernel k(x: f3[6]) -> (y: f32[6]) {\n  axes p0:6 par\n}\n",
            "unknown type: `x: f3[6]`"},
           {"kernel k(x: f32[B]) -> (y: f32[B]) {\n  symbols B\n}\n", "bad symbol: `B`"},
           {"kernel k(x: f32[6]) -> (y: f32[6]) {\n  axes p0\n}\n", "bad axis: `p0`"},
           {"kernel k(x: f32[6]) -> (y: f32[6]) {\n  axes p0:6 up\n}\n", "bad kind of axis"},
       })
    check_kernel(std::string(text), error);
}

TEST_CASE("errors in the statements of a kernel's text") {
  for (auto [lines, error] : {
           BadText{"arguments two", "expected a number: `two`"},
           {"v0", "bad statement: `v0`"},
           {"v1 = load x[p0] : f32", "expected v0"},
           {"v0 = load x[p0] : f3", "unknown type"},
           {"v0 = load x[p0] : f64", "the result has another type"},
           {"v0 = load x[p0] : f32\nv1 = cast v0 : f32", "a cast to the same type"},
           {"v0 = load x : f32", "expected buffer[index]: `x`"},
           {"v0 = load z[p0] : f32", "no such buffer: `z`"},
           {"v0 = load x[p0] if p0 > 1 : f32", "expected `>= 0`: `p0 > 1`"},
           {"v0 = exp x : f32", "expected a value: `x`"},
           {"v0 = exp v3 : f32", "no such value yet: `v3`"},
           {"v0 = add v0 : f32", "operands: `add v0`"},
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
