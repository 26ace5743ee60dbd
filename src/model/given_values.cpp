#include "model/given_values.h"

#include <algorithm>

#include "base/error.h"
#include "ir/sizes.h"
#include "runtime/device.h"

namespace tn::model {
namespace {

constexpr std::string_view argument_of(Role role) {
  return role == Role::parameter ? "params" : role == Role::input ? "data" : "state";
}

std::string listed(const std::vector<std::string_view>& names) {
  return names.empty() ? "nothing" : format("{}", join(names, ", "));
}

/// Fails for a name that is none of `known`.
[[noreturn]] void refuse(const Functions& functions, std::string_view argument,
                         std::string_view name, const std::vector<std::string_view>& known) {
  auto other = std::ranges::find(functions.given(), name, &Given::name);
  std::string_view near = nearest_name(name, known);
  std::string hint = other != functions.given().end()
                         ? format("it belongs to {}", argument_of(other->role))
                     : near.empty() ? format("there are {}", listed(known))
                                    : format("did you mean '{}'?", near);
  fail(Hint{hint}, "evaluate: {} has no '{}' among its {}", functions.model().flat.name, name,
       argument);
}

/// Adds the values of one argument to `all`, where they are not constants.
void add(const Functions& functions, Role role, const Values& values, const Values& own,
         Values& all) {
  std::vector<std::string_view> known, there;
  for (const Given& given : functions.given())
    if (given.role == role) known.push_back(given.name);
  for (const auto& [name, value] : values) {
    // The state of training has a key also where inference draws nothing.
    bool key = role == Role::state && name == kRandomKey;
    if (!key && !std::ranges::count(known, name)) refuse(functions, argument_of(role), name, known);
    there.push_back(name);
    if (!own.contains(name)) all.insert_or_assign(name, value);
  }
  for (std::string_view name : known) {
    auto found = all.find(std::string(name));
    if (found == all.end() || !found->second.defined())
      fail(Hint{format("it has {}", listed(there))}, "evaluate: {} has no '{}'", argument_of(role),
           name);
  }
}

/// Open sizes that were seen, each with the tensor that had it.
using SeenSizes = std::map<std::string, std::pair<Dim, std::string_view>>;

/// Fails unless an open size may be this one; one symbol is one size everywhere.
void check_open(const Given& given, Dim wanted, Dim size, const GivenValues& values,
                SeenSizes& seen) {
  std::string symbol = to_text(wanted);
  auto range = values.ranges.find(symbol);
  auto [least, most] = range == values.ranges.end() ? SizeRange() : range->second;
  if (!decide_at_least(size, Dim(least)) || !decide_at_least(Dim(most), size))
    fail("evaluate: '{}' is {} to {}, but {} in the shape of '{}'", symbol, least, most, size,
         given.name);
  auto& [known, other] = seen.try_emplace(symbol, size, given.name).first->second;
  if (!decide_equal(known, size))
    fail("evaluate: '{}' is {} in the shape of '{}', but {} in that of '{}'", symbol, known, other,
         size, given.name);
}

void check(const Given& given, const Tensor& value, const GivenValues& values, SeenSizes& seen) {
  if (value.dtype() != given.type->dtype) {
    std::string_view type = name_of(given.type->dtype);
    fail(Fault::type,
         Hint{format("convert it with astype to {}, or give types when compiling", type)},
         "evaluate: type mismatch: '{}' is {}, not {}", given.name, name_of(value.dtype()), type);
  }
  const Shape &wanted = given.type->shape, shape = value.shape();
  bool fits = shape.rank() == wanted.rank();
  for (int axis = 0; fits && axis < shape.rank(); ++axis) {
    if (wanted[axis].is_const())
      fits = decide_equal(shape[axis], wanted[axis]);
    else
      check_open(given, wanted[axis], shape[axis], values, seen);
  }
  if (!fits) fail("evaluate: the shape of '{}' is {}, not {}", given.name, shape, wanted);
}

}  // namespace

Tensors gather(const Functions& functions, const GivenValues& given) {
  Values all;
  for (const auto& [name, value] : given.own) all.emplace(name, value.to(current_device()));
  add(functions, Role::parameter, given.params, given.own, all);
  add(functions, Role::input, given.data, given.own, all);
  if (given.state)
    add(functions, Role::state, *given.state, given.own, all);
  else if (std::ranges::count(functions.given(), kRandomKey, &Given::name))
    fail(Hint{"give the state: initial_state(seed), or that of a former evaluation"},
         "evaluate: {} draws random numbers and has no key", functions.model().flat.name);
  SeenSizes seen;
  Tensors values;
  for (const Given& one : functions.given()) {
    values.push_back(all.at(one.name));
    check(one, values.back(), given, seen);
  }
  return values;
}

Tensors output_cotangents(const Functions& functions, const Values& given) {
  if (!functions.model().training)
    fail(Hint{"leave out inference=True", "leave out .inference = true"},
         "evaluate: {} was compiled for inference and has no gradients",
         functions.model().flat.name);
  std::vector<std::string_view> names(functions.outputs().begin(), functions.outputs().end());
  for (const auto& [name, value] : given)
    if (!std::ranges::count(names, name)) refuse(functions, "outputs", name, names);
  Tensors cotangents;
  for (const std::string& name : functions.outputs()) {
    auto found = given.find(name);
    cotangents.push_back(found == given.end() ? Tensor() : found->second);
  }
  return cotangents;
}

}  // namespace tn::model
