#include "view_chains.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "ir/dim.h"

namespace tn {

Chain& Chain::add(View view) {
  links.push_back({shape, view});
  shape = view.shape;
  return *this;
}

static View view_of(View::Kind kind, const Shape& shape) {
  View view;
  view.kind = kind, view.shape = shape;
  return view;
}

Chain& Chain::reshape(const Shape& to) { return add(view_of(View::Kind::reshape, to)); }

Chain& Chain::broadcast(const Shape& to) { return add(view_of(View::Kind::broadcast, to)); }

Chain& Chain::permute(const std::vector<int>& perm) {
  View view = view_of(View::Kind::permute, {});
  for (int axis : perm) view.perm.push_back(axis), view.shape.push_back(shape[axis]);
  return add(view);
}

Chain& Chain::slice(int axis, Dim start, Dim length, int64_t step) {
  View view = view_of(View::Kind::slice, shape);
  view.shape[axis] = length;
  for (int k = 0; k < shape.rank(); ++k) {
    view.start.push_back(k == axis ? Offset(start) : Offset(0));
    view.step.push_back(k == axis ? step : 1);
  }
  return add(view);
}

Chain& Chain::reverse(int axis) {
  View view = view_of(View::Kind::reverse, shape);
  view.axes.push_back(axis);
  return add(view);
}

Chain& Chain::window(const std::vector<int64_t>& sizes, int64_t stride, int64_t dilation) {
  View view = view_of(View::Kind::window, shape);
  int first = shape.rank() - static_cast<int>(sizes.size());
  for (size_t k = 0; k < sizes.size(); ++k) {
    Dim& places = view.shape[first + static_cast<int>(k)];
    places = floor_div(places - ((sizes[k] - 1) * dilation + 1), stride) + 1;
    view.step.push_back(stride);
    view.dilation.push_back(dilation);
  }
  for (int64_t size : sizes) view.shape.push_back(size);
  return add(view);
}

Chain& Chain::pad(int axis, Dim lo, Dim padded) {
  links.push_back({shape, {}, axis, lo});
  shape[axis] = padded;
  return *this;
}

Chains concat(const std::vector<Chains>& pieces, int axis) {
  Dim total = 0, start = 0;
  Chains joined;
  for (const Chains& piece : pieces) total = total + piece[0].shape[axis];
  for (const Chains& piece : pieces) {
    Dim length = piece[0].shape[axis];
    for (Chain chain : piece) joined.push_back(chain.pad(axis, start, total));
    start = start + length;
  }
  return joined;
}

Chains roll(const Chains& from, int axis, int64_t shift) {
  Chains last = from, first = from;
  Dim rest = from[0].shape[axis] - shift;
  for (Chain& chain : last) chain.slice(axis, rest, shift);
  for (Chain& chain : first) chain.slice(axis, 0, rest);
  return concat({last, first}, axis);
}

namespace {

std::string_view trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

// Splits at a separator outside brackets.
std::vector<std::string_view> split_at(std::string_view s, std::string_view separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t first = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    depth += (s[i] == '(' || s[i] == '[') - (s[i] == ')' || s[i] == ']');
    if (depth == 0 && s.substr(i, separator.size()) == separator) {
      parts.push_back(trim(s.substr(first, i - first)));
      first = i + separator.size();
    }
  }
  parts.push_back(trim(s.substr(first)));
  return parts;
}

int64_t number(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  REQUIRE_MESSAGE((error == std::errc() && end == text.data() + text.size()), text);
  return value;
}

int64_t keyed(std::string_view text, std::string_view key) {
  REQUIRE_MESSAGE(text.starts_with(key), text);
  return number(trim(text.substr(key.size())));
}

/// Parses one chain of views, from the buffer outwards.
class ChainParser {
 public:
  ChainParser(std::span<const Dim> symbols, std::vector<std::string>& buffers)
      : symbols_(symbols), buffers_(buffers) {}

  Chains parse(std::string_view text) {
    std::vector<std::string_view> parts = split_at(text, " . ");
    Chains chains = source(parts[0]);
    for (size_t i = 1; i < parts.size(); ++i) {
      if (parts[i].starts_with("roll(")) {
        std::vector<std::string_view> args = arguments(parts[i]);
        chains = roll(chains, static_cast<int>(keyed(args[0], "ax")), number(args[1]));
        continue;
      }
      for (Chain& chain : chains) view(chain, parts[i]);
    }
    return chains;
  }

 private:
  Dim size(std::string_view text) {
    PolyId p = t_.parse(text, [&](std::string_view name) {
      auto same = [&](Dim d) { return symbol_name(d) == name; };
      return t_.from_dim(*std::ranges::find_if(symbols_, same));
    });
    return *t_.to_dim(p);
  }
  Shape sizes(std::string_view list) {
    Shape result;
    for (std::string_view part : split_at(list, ",")) result.push_back(size(part));
    return result;
  }
  static std::vector<std::string_view> arguments(std::string_view text) {
    size_t open = text.find('(');
    return split_at(text.substr(open + 1, text.size() - open - 2), ",");
  }

  Chains source(std::string_view text) {
    if (text.starts_with("concat(")) {
      std::vector<std::string_view> parts = split_at(text.substr(7, text.size() - 8), ";");
      int axis = static_cast<int>(keyed(parts.back(), "axis="));
      parts.pop_back();
      std::vector<Chains> pieces;
      for (std::string_view part : parts) pieces.push_back(parse(part));
      return concat(pieces, axis);
    }
    size_t open = text.find('[');
    std::string name(text.substr(0, open));
    auto it = std::find(buffers_.begin(), buffers_.end(), name);
    auto buffer = static_cast<int>(it - buffers_.begin());
    if (it == buffers_.end()) buffers_.push_back(name);
    return {{buffer, sizes(text.substr(open + 1, text.size() - open - 2)), {}}};
  }

  void view(Chain& chain, std::string_view text) {
    std::string_view name = text.substr(0, text.find('('));
    std::string_view inside = text.substr(name.size() + 1, text.size() - name.size() - 2);
    std::vector<std::string_view> args = arguments(text);
    if (name == "reshape")
      chain.reshape(sizes(inside));
    else if (name == "broadcast")
      chain.broadcast(sizes(inside));
    else if (name == "permute")
      chain.permute(axes(args));
    else if (name == "reverse")
      chain.reverse(static_cast<int>(keyed(args[0], "ax")));
    else if (name == "window")
      windowed(chain, args);
    else if (name == "slice")
      sliced(chain, static_cast<int>(keyed(args[0], "ax")), args[1]);
    else if (name == "pad")
      padded(chain, static_cast<int>(keyed(args[0], "ax")), args[1]);
    else
      FAIL("an unknown view: " << text);
  }

  static std::vector<int> axes(const std::vector<std::string_view>& args) {
    std::vector<int> perm;
    for (std::string_view arg : args) perm.push_back(static_cast<int>(number(arg)));
    return perm;
  }

  // 3 3, stride 1, dil 1
  static void windowed(Chain& chain, const std::vector<std::string_view>& args) {
    std::vector<int64_t> sizes;
    for (std::string_view size : split_at(args[0], " ")) sizes.push_back(number(size));
    chain.window(sizes, keyed(args[1], "stride"), keyed(args[2], "dil"));
  }

  // start:+length step k
  void sliced(Chain& chain, int axis, std::string_view text) {
    size_t colon = text.find(":+"), step = text.find(" step ");
    bool stepped = step != std::string_view::npos;
    Dim length = size(text.substr(colon + 2, stepped ? step - colon - 2 : step));
    int64_t stride = stepped ? number(trim(text.substr(step + 6))) : 1;
    chain.slice(axis, size(text.substr(0, colon)), length, stride);
  }

  // lo k -> padded extent
  void padded(Chain& chain, int axis, std::string_view text) {
    size_t arrow = text.find("->");
    chain.pad(axis, size(text.substr(3, arrow - 3)), size(text.substr(arrow + 2)));
  }

  PolyTable t_;
  std::span<const Dim> symbols_;
  std::vector<std::string>& buffers_;
};

/// What the compiler reads at `at` of the result.
loop::Access access_at(PolyTable& t, const Chain& chain, Coords at) {
  loop::Mask mask;
  for (size_t k = chain.links.size(); k-- > 0;) {
    const Link& link = chain.links[k];
    if (link.padded < 0) {
      at = through_view(t, link.view, link.from, at);
      continue;
    }
    PolyId& place = at[static_cast<size_t>(link.padded)];
    place = t.sub(place, t.from_dim(link.lo));
    mask.push_back(place);
    mask.push_back(t.add_constant(t.sub(t.from_dim(link.from[link.padded]), place), -1));
  }
  const Shape& shape = chain.links.empty() ? chain.shape : chain.links[0].from;
  return {std::move(mask), position(t, shape, at)};
}

using Numbers = std::vector<int64_t>;

Numbers numbers_of(const Shape& shape, std::span<const Binding> bindings) {
  Numbers found;
  for (Dim d : shape) found.push_back(evaluate(d, bindings));
  return found;
}

int64_t flat_place(const Numbers& index, const Numbers& shape) {
  int64_t flat = 0;
  for (size_t k = 0; k < index.size(); ++k) flat = flat * shape[k] + index[k];
  return flat;
}

/// The same by arithmetic on numbers: a place in the buffer, or nothing.
class Reference {
 public:
  Reference(const Chain& chain, std::span<const Binding> bindings) : chain_(chain) {
    for (const Link& link : chain.links) from_.push_back(numbers_of(link.from, bindings));
    for (const Link& link : chain.links) {
      to_.push_back(numbers_of(link.view.shape, bindings));
      lo_.push_back(evaluate(link.lo, bindings));
      starts_.emplace_back();
      for (Offset o : link.view.start)
        starts_.back().push_back(o.is_const() ? o.raw : evaluate(o.size(), bindings));
    }
    shape = numbers_of(chain.shape, bindings);
  }

  Numbers shape;  // of the result

  std::optional<int64_t> at(Numbers index) const {
    for (size_t k = chain_.links.size(); k-- > 0;) {
      const Link& link = chain_.links[k];
      if (link.padded < 0) {
        index = through(k, index);
        continue;
      }
      auto axis = static_cast<size_t>(link.padded);
      index[axis] -= lo_[k];
      if (index[axis] < 0 || index[axis] >= from_[k][axis]) return std::nullopt;
    }
    const Numbers& buffer = chain_.links.empty() ? shape : from_[0];
    for (size_t k = 0; k < index.size(); ++k) REQUIRE((index[k] >= 0 && index[k] < buffer[k]));
    return flat_place(index, buffer);
  }

 private:
  Numbers through(size_t number, Numbers index) const {
    const View& view = chain_.links[number].view;
    const Numbers& from = from_[number];
    switch (view.kind) {
      case View::Kind::permute: {
        Numbers moved(index.size());
        for (size_t k = 0; k < index.size(); ++k)
          moved[static_cast<size_t>(view.perm[static_cast<int>(k)].i)] = index[k];
        return moved;
      }
      case View::Kind::broadcast: {
        Numbers last(index.end() - static_cast<ptrdiff_t>(from.size()), index.end());
        for (size_t k = 0; k < last.size(); ++k)
          if (from[k] == 1) last[k] = 0;
        return last;
      }
      case View::Kind::slice:
        for (size_t k = 0; k < index.size(); ++k)
          index[k] = starts_[number][k] + view.step[static_cast<int>(k)] * index[k];
        return index;
      case View::Kind::reverse:
        for (Axis a : view.axes)
          index[static_cast<size_t>(a.i)] =
              from[static_cast<size_t>(a.i)] - 1 - index[static_cast<size_t>(a.i)];
        return index;
      case View::Kind::reshape: {
        int64_t flat = flat_place(index, to_[number]);
        index.assign(from.size(), 0);
        for (size_t k = from.size(); k-- > 0; flat /= from[k]) index[k] = flat % from[k];
        return index;
      }
      case View::Kind::window: {
        size_t windows = static_cast<size_t>(view.step.size()), first = from.size() - windows;
        for (size_t k = 0; k < windows; ++k) {
          int i = static_cast<int>(k);
          index[first + k] =
              view.step[i] * index[first + k] + view.dilation[i] * index[from.size() + k];
        }
        index.resize(from.size());
        return index;
      }
    }
    return index;
  }

  const Chain& chain_;
  std::vector<Numbers> from_, to_, starts_;
  Numbers lo_;
};

// The index of the result that a point of the loops stands for.
Numbers result_index(const Numbers& flat, const Numbers& shape, const Roots& roots) {
  Numbers index(shape.size());
  for (size_t r = 0; r < roots.size(); ++r) {
    int64_t rest = flat[r];
    for (size_t k = roots[r].size(); k-- > 0;) {
      auto axis = static_cast<size_t>(roots[r][k]);
      index[axis] = rest % shape[axis];
      rest /= shape[axis];
    }
    REQUIRE(rest == 0);
  }
  return index;
}

}  // namespace

Chains parse_chains(std::string_view text, std::span<const Dim> symbols,
                    std::vector<std::string>& buffers) {
  return ChainParser(symbols, buffers).parse(trim(text));
}

Roots one_root(const Shape& shape) {
  Roots roots(1);
  for (int k = 0; k < shape.rank(); ++k) roots[0].push_back(k);
  return roots;
}

void refine_chains(std::vector<Chain> chains, Roots roots, Refined& out) {
  PolyTable& t = out.table;
  const Shape shape = chains[0].shape;
  Coords at(static_cast<size_t>(shape.rank()));
  std::vector<PolyId> axes;
  for (const std::vector<int>& group : roots) {
    Shape dims;
    for (int axis : group) dims.push_back(shape[axis]);
    axes.push_back(loop::root_axis(t, t.from_dim(dims.elements())));
    Coords digits = point(t, dims, axes.back());
    for (size_t k = 0; k < group.size(); ++k) at[static_cast<size_t>(group[k])] = digits[k];
  }
  std::vector<loop::Access> accesses;
  for (const Chain& chain : chains) {
    REQUIRE(chain.shape == shape);
    accesses.push_back(access_at(t, chain, at));
  }
  out.refinement = loop::refine(t, axes, std::move(accesses));
  out.chains = std::move(chains);
  out.roots = std::move(roots);
}

int64_t check_against_arithmetic(Refined& refined, std::span<const Binding> bindings) {
  PolyTable& t = refined.table;
  auto number_of = [&](PolyId p) { return t.constant_of(t.bind(p, bindings)); };
  std::vector<Reference> references;
  for (const Chain& chain : refined.chains) references.emplace_back(chain, bindings);
  Numbers extents, weights;
  int64_t points = 1, wanted = 1;
  for (const loop::LoopAxis& axis : refined.refinement.axes) {
    extents.push_back(number_of(axis.extent));
    weights.push_back(number_of(axis.weight));
    points *= extents.back();
  }
  const Numbers& shape = references[0].shape;
  for (int64_t d : shape) wanted *= d;
  REQUIRE(points == wanted);
  std::vector<loop::Access> bound = refined.refinement.accesses;
  for (loop::Access& access : bound) {
    access.index = t.bind(access.index, bindings);
    for (PolyId& p : access.mask) p = t.bind(p, bindings);
  }
  Numbers at(extents.size());
  auto holds = [&](PolyId p) { return t.evaluate(p, {at, {}, {}}) >= 0; };
  int64_t wrong = 0, compared = 0;
  for (int64_t n = 0; n < points; ++n) {
    Numbers flat(refined.roots.size(), 0);
    int64_t rest = n;
    for (size_t k = extents.size(); k-- > 0; rest /= extents[k]) {
      at[k] = rest % extents[k];
      flat[refined.refinement.axes[k].root] += at[k] * weights[k];
    }
    Numbers index = result_index(flat, shape, refined.roots);
    for (size_t a = 0; a < bound.size(); ++a, ++compared) {
      std::optional<int64_t> found;
      if (!bound[a].never && std::ranges::all_of(bound[a].mask, holds))
        found = t.evaluate(bound[a].index, {at, {}, {}});
      if (found != references[a].at(index)) ++wrong;
    }
  }
  CHECK(wrong == 0);
  return compared;
}

}  // namespace tn
