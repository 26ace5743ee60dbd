// Unification of shapes.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "base/error.h"
#include "model/unify.h"

namespace tn::model {
namespace {

/// A shape in words, of which random ones are made: sizes from few numbers and names, and "...".
struct Words {
  std::vector<int> front, back;  // positive: a number; negative: a name
  bool open = false;
};

using Random = std::mt19937;

int draw(Random& rng, int below) { return static_cast<int>(rng() % static_cast<unsigned>(below)); }

std::vector<int> draw_sizes(Random& rng, int most) {
  std::vector<int> sizes(static_cast<size_t>(draw(rng, most + 1)));
  for (int& s : sizes) s = draw(rng, 3) > 0 ? -1 - draw(rng, 4) : 2 + draw(rng, 2);
  return sizes;
}

Words draw_words(Random& rng) {
  return {draw_sizes(rng, 3), draw_sizes(rng, 2), draw(rng, 2) == 0};
}

/// Names are shared by all shapes of one unifier; open axes are each their own.
class Reader {
 public:
  explicit Reader(Unifier& u) : u_(u) {
    for (int i = 0; i < 4; ++i) names_.push_back(u.any_size());
  }
  Sizes read(const Words& words) {
    Sizes sizes;
    for (int s : words.front) sizes.front.push_back(read(s));
    if (words.open) sizes.rest = u_.any_axes();
    for (int s : words.back) (words.open ? sizes.back : sizes.front).push_back(read(s));
    return sizes;
  }

 private:
  SizeId read(int s) { return s > 0 ? u_.size(s) : names_[static_cast<size_t>(-1 - s)]; }

  Unifier& u_;
  std::vector<SizeId> names_;
};

bool equal(const Unifier& u, const Sizes& x, const Sizes& y) {
  Sizes a = u.resolved(x), b = u.resolved(y);
  auto same = [&](const std::vector<SizeId>& p, const std::vector<SizeId>& q) {
    if (p.size() != q.size()) return false;
    for (size_t i = 0; i < p.size(); ++i)
      if (!u.is_same(p[i], q[i])) return false;
    return true;
  };
  return same(a.front, b.front) && a.rest == b.rest && same(a.back, b.back);
}

/// What every shape turned out to be, with open axes and unknown sizes by the order they appear in.
std::vector<std::string> canonical(const Unifier& u, const std::vector<Sizes>& shapes) {
  std::vector<SizeId> seen;
  std::vector<AxesId> rests;
  std::vector<std::string> texts;
  auto number = [&](auto& list, auto id, auto&& is_same) {
    for (size_t i = 0; i < list.size(); ++i)
      if (is_same(list[i], id)) return i;
    list.push_back(id);
    return list.size() - 1;
  };
  for (const Sizes& shape : shapes) {
    Sizes all = u.resolved(shape);
    std::string text;
    auto add = [&](const std::vector<SizeId>& ids) {
      for (SizeId id : ids) {
        size_t n = number(seen, id, [&](SizeId a, SizeId b) { return u.is_same(a, b); });
        text += u.value(id) ? format("{} ", *u.value(id)) : format("?{} ", n);
      }
    };
    add(all.front);
    if (all.rest >= 0)
      text += format("...{} ", number(rests, all.rest, [](AxesId a, AxesId b) { return a == b; }));
    add(all.back);
    texts.push_back(text);
  }
  return texts;
}

}  // namespace

TEST_CASE("model: sizes are joined and keep their value") {
  Unifier u;
  SizeId a = u.any_size(), b = u.any_size(), c = u.any_size(), three = u.size(3);
  CHECK(u.unify(a, b));
  CHECK(u.unify(b, c));
  CHECK_FALSE(u.value(a).has_value());
  CHECK(u.unify(three, c));
  for (SizeId id : {a, b, c}) CHECK(u.value(id) == Dim(3));
  CHECK_FALSE(u.unify(a, u.size(4)));
  CHECK(u.unify(a, u.size(3)));
}

TEST_CASE("model: axes at both ends find each other") {
  Unifier u;
  SizeId n = u.any_size(), c = u.any_size();
  Sizes open{.front = {n}, .rest = u.any_axes(), .back = {c}};
  CHECK(u.text(open) == "[_, ..., _]");
  CHECK(u.unify(open, u.of({2, 5, 7, 3})));
  CHECK(u.shape(open) == Shape{2, 5, 7, 3});
  CHECK(u.value(n) == Dim(2));
  CHECK(u.value(c) == Dim(3));
  CHECK_FALSE(u.unify(open, u.of({2, 3})));
}

TEST_CASE("model: too few axes do not unify") {
  Unifier u;
  Sizes two{.front = {u.any_size()}, .rest = u.any_axes(), .back = {u.any_size()}};
  CHECK_FALSE(u.unify(two, u.of({4})));
  Sizes exact{.front = {u.any_size(), u.any_size()}};
  CHECK_FALSE(u.unify(exact, u.of({4})));
  CHECK_FALSE(u.unify(exact, u.of({4, 5, 6})));
  CHECK(u.unify(exact, u.of({4, 5})));
}

TEST_CASE("model: open shapes with sizes at different ends") {
  Unifier u;
  Sizes front{.front = {u.size(2)}, .rest = u.any_axes()};
  Sizes back{.front = {}, .rest = u.any_axes(), .back = {u.size(3)}};
  CHECK(u.unify(front, back));
  CHECK(u.is_waiting());  // of one axis, or of more?
  CHECK(u.unify(back, u.of({2, 9, 3})));
  CHECK_FALSE(u.is_waiting());
  CHECK(u.shape(front) == Shape{2, 9, 3});
}

TEST_CASE("model: open shapes whose ends are the same axis") {
  Unifier u;
  SizeId channels = u.any_size(), out = u.size(64);
  Sizes norm{.front = {u.any_size(), channels}, .rest = u.any_axes()};
  Sizes linear{.front = {}, .rest = u.any_axes(), .back = {out}};
  CHECK(u.unify(norm, linear));
  CHECK(u.unify(linear, {.front = {u.any_size(), u.any_size()}}));
  CHECK(u.value(channels) == Dim(64));
  CHECK(u.text(norm) == "[_, 64]");
  Sizes one{.front = {u.size(2)}, .rest = u.any_axes()};
  Sizes other{.front = {}, .rest = u.any_axes(), .back = {u.size(3)}};
  CHECK(u.unify(one, other));
  CHECK_FALSE(u.unify(one, u.of({2})));
}

TEST_CASE("model: axes do not hold themselves") {
  Unifier u;
  AxesId rest = u.any_axes();
  Sizes plain{.front = {}, .rest = rest, .back = {}};
  Sizes longer{.front = {u.any_size()}, .rest = rest, .back = {}};
  CHECK_FALSE(u.unify(plain, longer));
  Unifier w;
  AxesId a = w.any_axes(), b = w.any_axes();
  CHECK(w.unify({.front = {w.any_size()}, .rest = a}, {.front = {}, .rest = b}));
  CHECK_FALSE(w.unify({.front = {}, .rest = a}, {.front = {}, .rest = b}));
}

TEST_CASE("model: what unifies is the same afterwards") {
  Random rng(1);
  int joined = 0;
  for (int round = 0; round < 20000; ++round) {
    Unifier u;
    Reader reader(u);
    std::vector<Sizes> shapes;
    for (int i = 0; i < 4; ++i) shapes.push_back(reader.read(draw_words(rng)));
    for (int i = 0; i < 4; ++i) {
      const Sizes &a = shapes[static_cast<size_t>(draw(rng, 4))],
                  &b = shapes[static_cast<size_t>(draw(rng, 4))];
      if (!u.unify(a, b)) break;
      ++joined;
      if (!u.is_waiting()) REQUIRE(equal(u, a, b));
      REQUIRE(u.unify(b, a));
    }
  }
  CHECK(joined > 10000);
}

TEST_CASE("model: the order does not matter") {
  Random rng(2);
  int agreed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<Words> words;
    for (int i = 0; i < 4; ++i) words.push_back(draw_words(rng));
    words.push_back({draw_sizes(rng, 5), {}, false});  // so that the number of axes is found
    std::vector<std::pair<size_t, size_t>> pairs = {{0, 4}};
    for (int i = 0; i < 3; ++i)
      pairs.emplace_back(static_cast<size_t>(draw(rng, 4)), static_cast<size_t>(draw(rng, 4)));
    std::optional<std::vector<std::string>> first;
    for (int order = 0; order < 4; ++order) {
      Unifier u;
      Reader reader(u);
      std::vector<Sizes> shapes;
      for (const Words& w : words) shapes.push_back(reader.read(w));
      bool ok = true;
      for (auto [a, b] : pairs) {
        if (order % 2 == 1) std::swap(a, b);
        ok = ok && u.unify(shapes[a], shapes[b]);
      }
      std::vector<std::string> texts;  // none where they do not unify
      if (ok) texts = canonical(u, shapes);
      if (u.is_waiting()) continue;  // for axes that nothing says anything about
      if (!first) first = texts;
      REQUIRE(texts == *first);
      agreed += ok;
      std::shuffle(pairs.begin(), pairs.end(), rng);
    }
  }
  CHECK(agreed > 3000);
}

}  // namespace tn::model
