// Symbolic sizes: identity, arithmetic, proofs, text.
#include <doctest/doctest.h>

#include <memory>
#include <thread>

#include "base/error.h"
#include "ir/dim.h"
#include "ir/dim_program.h"
#include "ir/poly.h"
#include "ir/type.h"

using tn::Dim;
using tn::Tri;

namespace {
const Dim B = Dim::symbol("B"), S = Dim::symbol("S");
}

TEST_CASE("constants are plain integers") {
  static_assert(std::is_trivially_copyable_v<Dim>);
  CHECK(Dim(3) + 4 == 7);
  CHECK(tn::floor_div(7, 2) == 3);
  CHECK(tn::ceil_div(7, 2) == 4);
  CHECK(tn::mod(7, 4) == 3);
  CHECK(tn::min(3, 4) == 3);
  CHECK(tn::max(3, 4).value() == 4);
  CHECK(tn::format("{}", Dim(12)) == "12");
}

TEST_CASE("equal expressions are identical") {
  CHECK(2 * B == B + B);
  CHECK(B * S + B == B * (S + 1));
  CHECK((B + 1) * (B - 1) == B * B - 1);
  CHECK(B - B == 0);
  CHECK(tn::floor_div(B * S, S) == B);
  CHECK(tn::floor_div(6 * B, 4) == tn::floor_div(3 * B, 2));
  CHECK(tn::mod(B * S, S) == 0);
  CHECK(B != S);
  CHECK(Dim::symbol("B") == B);
  CHECK(Dim::symbol("B", 1, 8) != B);
}

TEST_CASE("questions have three answers") {
  CHECK(tn::equal(B, S) == Tri::unknown);
  CHECK(tn::equal(B, B + 1) == Tri::no);
  CHECK(tn::equal(B * S, S * B) == Tri::yes);
  CHECK(tn::at_least(B * S, S) == Tri::yes);
  CHECK(tn::at_least(B, B + 1) == Tri::no);
  CHECK(tn::at_least(B, S) == Tri::unknown);
  CHECK(tn::at_least(B, 1) == Tri::yes);
  CHECK(tn::at_least(Dim::symbol("Z", 0, 9), 1) == Tri::unknown);
  CHECK(tn::at_least(9, Dim::symbol("Z", 0, 9)) == Tri::yes);
  CHECK(tn::at_least(tn::floor_div(B + 1, 2), 1) == Tri::yes);
  CHECK(tn::divides(4, 8 * B * S + 4));
  CHECK_FALSE(tn::divides(4, B));
  CHECK(tn::exact_div(B * S + B * 3, S + 3) == B);
  CHECK_FALSE(tn::exact_div(B, S).has_value());
  CHECK_FALSE(tn::exact_div(B, 0).has_value());
  CHECK(tn::bounds(2 * Dim::symbol("Z", 0, 9) + 1).hi == 19);
}

TEST_CASE("facts are substitutions") {
  Dim n = Dim::symbol("N");
  tn::Replacement fact{n, B * S};
  CHECK(tn::substitute(tn::floor_div(n, S), {&fact, 1}) == B);
  tn::Replacement aligned{S, 16 * n};
  CHECK(tn::divides(16, tn::substitute(S * B, {&aligned, 1})));
}

TEST_CASE("text is canonical and parses back") {
  CHECK(tn::to_text(B) == "B");
  CHECK(tn::to_text(B + B) == "2*B");
  CHECK(tn::to_text(1 + S * B) == "B*S+1");
  CHECK(tn::to_text(tn::floor_div(B + 1, 2)) == "(B+1)//2");
  CHECK(tn::to_text(tn::ceil_div(B, 2) * 3 + 1) == "3*((B+1)//2)+1");
  CHECK(tn::to_text(tn::mod(B, 2)) == "B%2");
  CHECK(tn::to_text(tn::min(B, 4)) == "min(B,4)");
  CHECK(tn::to_text(tn::max(S, B)) == "max(B,S)");
  for (Dim d : {B, 2 * B * S + 7, tn::ceil_div(B * S, 8) * 8, tn::min(B, S + 1) + tn::mod(S, 3),
                tn::floor_div(tn::floor_div(B, 2) + S, S + 1), B * B - B, S - B})
    CHECK_MESSAGE(tn::parse_dim(tn::to_text(d)) == d, tn::to_text(d));
  Dim small = Dim::symbol("B", 1, 8);
  CHECK(tn::parse_dim("2*B", {&small, 1}) == 2 * small);
  CHECK(tn::symbol_name(B) == "B");
  CHECK(tn::symbols_of(S * tn::floor_div(B, 2)) == std::vector<Dim>{B, S});
}

TEST_CASE("evaluation binds every symbol") {
  tn::Binding at[] = {{B, 5}, {S, 3}};
  CHECK(tn::evaluate(B * S + 1, at) == 16);
  CHECK(tn::evaluate(tn::ceil_div(B, 2), at) == 3);
  CHECK(tn::evaluate(tn::min(B, S), at) == 3);
  CHECK_THROWS_AS((void)tn::evaluate(Dim::symbol("Q"), at), tn::UserError);
}

TEST_CASE("mistakes are errors, not surprises") {
  Dim huge = int64_t{1} << 62;
  CHECK_THROWS_AS((void)(huge * 4), tn::UserError);
  CHECK_THROWS_AS((void)(huge + huge), tn::UserError);
  CHECK_THROWS_AS((void)(huge * B * 4), tn::UserError);
  CHECK_THROWS_AS((void)(Dim(3) - 5), tn::UserError);
  int below = -2;
  CHECK_THROWS_AS((void)Dim(below).value(), tn::UserError);
  CHECK_THROWS_AS((void)(Dim(below) + 3), tn::UserError);
  CHECK_THROWS_AS((void)tn::min(Dim(below), B), tn::UserError);
  CHECK_THROWS_AS(tn::intern(tn::DType::f32, {4, below}), tn::UserError);
  CHECK(tn::to_text(Dim(below)) == "-2");
  CHECK(tn::to_text(Dim(-1)) == "-1");
  CHECK_THROWS_AS((void)(Dim(-1) + B), tn::UserError);
  CHECK_THROWS_AS((void)(B - B - 1), tn::UserError);
  CHECK_THROWS_AS((void)tn::floor_div(B, 0), tn::UserError);
  CHECK_THROWS_AS((void)tn::floor_div(4, 0), tn::UserError);
  CHECK_THROWS_AS((void)B.value(), tn::InternalError);
  CHECK_THROWS_AS((void)Dim::symbol("1x"), tn::UserError);
  for (const char* text : {"", "2*", "B+", "(B", "min(B", "B//0", "99999999999999999999", "B C"})
    CHECK_THROWS_AS((void)tn::parse_dim(text), tn::UserError);
  CHECK_THROWS_AS((void)tn::parse_dim(std::string(5000, '(')), tn::UserError);
  CHECK_THROWS_WITH_AS(tn::Offset(INT64_MAX) - tn::Offset(-1),
                       doctest::Contains("does not fit in 64 bits"), tn::UserError);
  CHECK_THROWS_WITH_AS(tn::Offset(INT64_MAX) + tn::Offset(1),
                       doctest::Contains("does not fit in 64 bits"), tn::UserError);
}

TEST_CASE("large numbers give no proof, but no failure either") {
  Dim large = int64_t{1} << 61;
  CHECK(tn::at_least(large * B, S) == Tri::yes);
  CHECK(tn::at_least(large * B * S, B) == Tri::yes);
  CHECK(tn::bounds(large * B).hi == INT64_MAX);
  CHECK(tn::at_least(B * S, S) == Tri::yes);
}

TEST_CASE("an expression that doubles with every step is refused in time") {
  auto grow = [] {
    Dim d = B;
    for (int k = 0; k < 100; ++k) d = tn::floor_div(d, 2) + tn::floor_div(d + S, 3);
  };
  CHECK_THROWS_AS(grow(), tn::UserError);
}

TEST_CASE("threads agree on identities") {
  std::vector<std::thread> threads;
  std::vector<Dim> results(4);
  for (size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&results, i] {
      Dim sum = 0;
      for (int k = 0; k < 200; ++k) sum += Dim::symbol(tn::format("t{}", k % 17)) * k;
      results[i] = sum;
    });
  }
  for (std::thread& t : threads) t.join();
  for (Dim d : results) CHECK(d == results[0]);
}

TEST_CASE("a copied table stands alone") {
  auto original = std::make_unique<tn::PolyTable>();
  const std::string name = "a_symbol_whose_name_is_on_the_heap";
  tn::PolyId n = original->symbol(name, 1, 64);
  tn::PolyId digit = original->mod(original->axis(0, original->scale(n, 6)), n);
  tn::PolyTable copy = *original, assigned;
  assigned.symbol("another", 1, 2);
  assigned = *original;
  original->symbol("a_symbol_that_came_after_the_copies", 1, 64);
  std::string text = original->text(digit, {});
  original.reset();
  for (tn::PolyTable* table : {&copy, &assigned}) {
    CHECK(table->symbol(name, 1, 64) == n);
    CHECK(table->symbol("a_new_one", 1, 64) != n);
    CHECK(table->mod(table->axis(0, table->scale(n, 6)), n) == digit);
    CHECK(table->text(digit, {}) == text);
    CHECK(table->name_of(table->atom(*table->as_atom(n))) == name);
  }
}

TEST_CASE("sizes: a program gives what evaluate gives") {
  std::vector<std::string> names{"B", "S"};
  for (Dim size : {Dim(7), B, B * S * 3 + 2, ceil_div(B * S, 64) * 64, mod(S + 5, 7) + B - 1,
                   min(B * 4, S) + max(S - 3, B), floor_div(S, B + 1)}) {
    tn::SizeProgram program = size_program(size, names);
    CAPTURE(to_text(size));
    CHECK(program.is_sound(2));
    for (int64_t x : {1, 2, 17, 1000})
      for (int64_t y : {1, 3, 64, 4097}) {
        tn::Binding at[] = {{B, x}, {S, y}};
        int64_t values[] = {x, y};
        CHECK(program.at(values) == evaluate(size, at));
      }
  }
  using Kind = tn::SizeStep::Kind;
  tn::SizeProgram unsound;
  CHECK(!unsound.is_sound(0));
  unsound.steps = {{Kind::symbol, 2}};
  CHECK(!unsound.is_sound(2));
  unsound.steps = {{Kind::constant, 1}, {Kind::add}};
  CHECK(!unsound.is_sound(2));
}
