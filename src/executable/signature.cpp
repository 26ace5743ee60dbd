#include "executable/signature.h"

#include <algorithm>
#include <cmath>

#include "ir/dtype.h"
#include "ir/rewrite.h"

namespace tn {

using Range = InputSignature::Range;

std::string InputSignature::path(size_t axis) const {
  return type ? format("{}.shape[{}]", name, axis) : name;
}

namespace {

/// Where a symbol is a size first.
struct Spotted {
  const InputSignature* input;
  size_t axis;
  std::string path() const { return input->path(axis); }
  const Range& range() const { return input->sizes[axis]; }
};

Spotted spot(const Signature& signature, Dim symbol) {
  for (const InputSignature& in : signature.inputs)
    for (size_t k = 0; k < in.sizes.size(); ++k)
      if (identical(in.dim(k), symbol)) return {&in, k};
  throw_internal(format("executable: the symbol {} is the size of no input", symbol));
}

std::string declared(const InputSignature& in) {
  return in.place.empty() ? "" : format(", declared at {}", in.place);
}

/// One call being checked.
class Check {
 public:
  explicit Check(const Signature& signature) : signature_(signature) {}

  void tensor(const InputSignature& in, TypeRef given) {
    if (given->dtype != in.type->dtype)
      fail("{}(): argument `{}` is {}, expected {}{}", signature_.function, in.name,
           info(given->dtype).name, info(in.type->dtype).name, declared(in));
    if (given->rank() != in.type->rank())
      fail("{}(): argument `{}` has shape {} with {} dimensions, expected {}{}",
           signature_.function, in.name, given->shape, given->rank(), in.type->rank(),
           declared(in));
    for (size_t k = 0; k < in.sizes.size(); ++k)
      size(in, k, given->shape[static_cast<int>(k)].value(), given);
  }

  /// `of`: the tensor's type; null for a size by itself.
  void size(const InputSignature& in, size_t axis, int64_t value, TypeRef of) {
    const Range& r = in.sizes[axis];
    if (value < r.min || value > r.max) fail_range(in, axis, value, of);
    if (!r.is_open()) return;
    const Binding* known = find_symbol(sizes, in.dim(axis));
    if (!known) return sizes.push_back({in.dim(axis), value});
    if (known->value == value) return;
    fail("{}(): dimension `{}` is {} in {} and {} in {}: sizes with one name are equal{}",
         signature_.function, r.name, known->value, spot(signature_, in.dim(axis)).path(), value,
         in.path(axis), declared(in));
  }

  void demand(const SizeDemand& d) const {
    if (holds(d.guard, sizes)) return;
    std::string by = d.place.empty() ? "" : format(" (required by {})", d.place);
    auto is_symbol = [&](Dim a) { return find_symbol(sizes, a) != nullptr; };
    if (d.guard.kind == SizeGuard::Kind::equal && d.guard.holds && is_symbol(d.guard.a) &&
        is_symbol(d.guard.b))
      fail("{}(): dimensions {} and {} must be equal{}", signature_.function, described(d.guard.a),
           described(d.guard.b), by);
    fail("{}(): {} must hold{}, but {}", signature_.function, signature_.text_of(d.guard), by,
         signature_.values_text(d.guard, sizes));
  }

  std::vector<Binding> sizes;

 private:
  [[noreturn]] void fail_range(const InputSignature& in, size_t axis, int64_t value, TypeRef of) {
    const Range& r = in.sizes[axis];
    std::string what = of ? format("argument `{}` has shape {}; dimension {} = {}", in.name,
                                   of->shape, axis, value)
                          : format("argument `{}` = {}", in.name, value);
    if (!r.is_open())
      fail("{}(): {}, expected {}{}", signature_.function, what, r.min, declared(in));
    fail(Hint{format("compile for a range that has {}, or use compile without InputInfo", value)},
         "{}(): {} is outside [{}, {}]{}", signature_.function, what, r.min, r.max, declared(in));
  }

  /// "`s` (q.shape[1] = 128)"
  std::string described(Dim symbol) const {
    Spotted at = spot(signature_, symbol);
    int64_t value = evaluate(symbol, sizes);
    return at.range().name.empty() ? format("{} = {}", at.path(), value)
                                   : format("`{}` ({} = {})", at.range().name, at.path(), value);
  }

  const Signature& signature_;
};

/// "2 tensors (x, y)"
std::string listed(const Signature& signature, bool sizes) {
  std::vector<std::string> names;
  for (const InputSignature& in : signature.inputs)
    if (!in.type == sizes) names.push_back(in.name);
  return format("{} {}{}{}", names.size(), sizes ? "size" : "tensor", names.size() == 1 ? "" : "s",
                names.empty() ? "" : format(" ({})", join(names, ", ")));
}

}  // namespace

std::vector<Binding> Signature::check(std::span<const TypeRef> types,
                                      std::span<const int64_t> given) const {
  auto is_tensor = [](const InputSignature& in) { return in.type != nullptr; };
  auto tensors = static_cast<size_t>(std::ranges::count_if(inputs, is_tensor));
  if (types.size() != tensors)
    fail("{}(): takes {}, was given {}", function, listed(*this, false), types.size());
  if (given.size() != inputs.size() - tensors)
    fail("{}(): takes {}, was given {}", function, listed(*this, true), given.size());
  Check check(*this);
  auto type = types.begin();
  auto size = given.begin();
  for (const InputSignature& in : inputs)
    in.type ? check.tensor(in, *type++) : check.size(in, 0, *size++, nullptr);
  for (const SizeDemand& d : demands) check.demand(d);
  return std::move(check.sizes);
}

std::vector<Binding> Signature::at(int64_t Range::* value) const {
  std::vector<Binding> sizes;
  for (const Binding& b : opt) sizes.push_back({b.symbol, spot(*this, b.symbol).range().*value});
  return sizes;
}

std::vector<std::vector<Binding>> Signature::samples() const {
  constexpr int kSteps = 4;
  std::vector<Binding> lo = at(&Range::min), hi = at(&Range::max);
  std::vector<std::vector<Binding>> made = {opt, lo, hi};
  // All symbols between min and max by the same share, in steps that grow.
  for (int step = 1; step < kSteps; ++step) {
    std::vector<Binding>& sizes = made.emplace_back(lo);
    for (size_t i = 0; i < sizes.size(); ++i) {
      double from = static_cast<double>(std::max<int64_t>(lo[i].value, 1));
      double times = std::pow(static_cast<double>(hi[i].value) / from, double(step) / kSteps);
      sizes[i].value = std::min(static_cast<int64_t>(std::llround(from * times)), hi[i].value);
    }
  }
  // Each at its ends while the others are at opt.
  for (size_t i = 0; i < lo.size(); ++i)
    for (const Binding& end : {lo[i], hi[i]}) made.emplace_back(opt)[i] = end;
  // Several at 0: kernels for some empty axes are no others' kernels.
  constexpr size_t kMostWithZeros = 6;
  std::vector<std::vector<Binding>> zeros = {opt};
  for (size_t i = 0; i < lo.size(); ++i)
    for (size_t k = zeros.size(); lo[i].value == 0 && k-- > 0 && zeros.size() <= kMostWithZeros;)
      zeros.push_back(zeros[k]), zeros.back()[i] = lo[i];
  made.insert(made.end(), zeros.begin() + 1, zeros.end());
  auto is_refused = [&](const std::vector<Binding>& sizes) {
    auto kept = [&](const SizeDemand& d) { return holds(d.guard, sizes); };
    return !std::ranges::all_of(demands, kept);
  };
  std::erase_if(made, is_refused);
  return made;
}

std::string Signature::text_of(const SizeGuard& guard) const {
  std::string text = to_text(guard), made;
  auto inner = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = 0, end; at < text.size(); at = end) {
    end = at + 1;
    while (inner(text[at]) && end < text.size() && inner(text[end])) ++end;
    std::string_view word = std::string_view(text).substr(at, end - at);
    auto is_it = [&](const Binding& b) { return symbol_name(b.symbol) == word; };
    auto symbol = std::ranges::find_if(opt, is_it);
    made += symbol == opt.end() ? word : spot(*this, symbol->symbol).path();
  }
  return made;
}

std::string Signature::values_text(const SizeGuard& guard, std::span<const Binding> sizes) const {
  std::vector<std::string> values;
  for (const Binding& b : sizes)
    if (contains(symbols_of(guard.a + guard.b), b.symbol))
      values.push_back(format("{} = {}", spot(*this, b.symbol).path(), b.value));
  return format("{}", join(values, ", "));
}

}  // namespace tn
