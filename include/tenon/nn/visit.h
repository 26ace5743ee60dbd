#pragma once
// Visiting models: what a model holds, with the names that files give it.
//
// A module says what it holds in one function, from which all else follows:
//
//     static void fields(auto& m, auto&& f) { f("weight", m.weight), f("layers", m.layers); }
//
// A field is a tensor, a module, a number, or a vector, an array or an optional of such. A null
// tensor is absent. Numbers are settings: compiled functions are traced again when they change.
#include <bit>
#include <concepts>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>

#include "tenon/error.h"
#include "tenon/tensor.h"

namespace tn::nn {

/// Tensors by their paths.
using TensorMap = std::map<std::string, Tensor>;

/// Where something is in a model: a name of a field, or a number in a list, inside something else.
struct Path {
  const Path* outer = nullptr;
  std::string_view name = {};
  int64_t number = -1;

  std::string dotted() const;    // "blocks.3.attn.q.weight", the name in files
  std::string accessed() const;  // "blocks[3].attn.q.weight", as in a program
};

/// What modules have besides their fields.
class ModuleBase {
 public:
  /// Whether modules such as Dropout behave as in training.
  bool training = true;
  /// The fields whose tensors are not trained.
  std::set<std::string, std::less<>> frozen;

 protected:  // modules are copied as what they are
  ModuleBase() = default;
  ModuleBase(const ModuleBase&) = default;
  ModuleBase(ModuleBase&&) = default;
  ModuleBase& operator=(const ModuleBase&) = default;
  ModuleBase& operator=(ModuleBase&&) = default;
  ~ModuleBase() = default;
};

/// Given to `fields` after a tensor that is state and never trained, such as running statistics.
struct Buffer {};
inline constexpr Buffer buffer;

/// The place of a tensor in a model.
struct Slot {
  const Path& path;
  Tensor& tensor;
  ModuleBase* owner = nullptr;  // null: no module
  std::string_view field = {};  // of the owner
  bool is_buffer = false;

  bool is_trainable() const {
    return tensor && owner && !is_buffer && !owner->frozen.contains(field);
  }
};

class Visitor {
 public:
  virtual ~Visitor() = default;
  /// A module, before what is in it.
  virtual void module(const Path&, ModuleBase&) {}
  virtual void tensor(const Slot&) {}
  /// A number that decides what is computed, as bits.
  virtual void setting(const Path&, uint64_t) {}
};

/// A model, an optimizer or other state, as something to visit.
using Visit = std::function<void(Visitor&)>;

template <class T>
concept IsModule = std::derived_from<T, ModuleBase>;
/// What visits itself, since its fields are not known when a program is compiled.
template <class T>
concept IsVisited = requires(T& t, Visitor& v, const Path& path) {
  t.visit(v, path);
};

template <IsModule M>
void visit(M& module, Visitor& visitor, const Path& path = {});

/// What is in a field, `path`, which is the part of `owner` called `field` or lies inside that.
template <class T>
void visit_field(T& value, Visitor& visitor, const Path& path, ModuleBase& owner,
                 std::string_view field, bool is_buffer) {
  auto inside = [&](auto& part, const Path& at) {
    visit_field(part, visitor, at, owner, field, is_buffer);
  };
  if constexpr (std::same_as<T, Tensor>) {
    visitor.tensor({path, value, &owner, field, is_buffer});
  } else if constexpr (IsModule<T>) {
    nn::visit(value, visitor, path);
  } else if constexpr (IsVisited<T>) {
    value.visit(visitor, path);
  } else if constexpr (std::is_arithmetic_v<T>) {
    visitor.setting(path, std::bit_cast<uint64_t>(static_cast<double>(value)));
  } else if constexpr (requires { value.has_value(); }) {
    if (value) inside(*value, path);
  } else {
    static_assert(std::ranges::range<T>,
                  "a field is a tensor, a module, a number, or a vector, an array or an optional "
                  "of such");
    int64_t number = 0;
    for (auto& part : value) inside(part, {.outer = &path, .number = number++});
  }
}

template <IsModule M>
void visit(M& module, Visitor& visitor, const Path& path) {
  static_assert(
      requires { M::fields(module, [](auto&&...) {}); },
      "a module says what it holds: static void fields(auto& m, auto&& f) { f(\"w\", m.w); }");
  visitor.module(path, module);
  M::fields(module, [&]<class T, class... Tag>(std::string_view name, T& value, Tag...) {
    constexpr bool is_buffer = (std::same_as<Tag, Buffer> || ...);
    visit_field(value, visitor, {.outer = &path, .name = name}, module, name, is_buffer);
  });
}

/// How weights are taken over.
struct LoadWeights {
  /// Names that only the model or only the weights have are errors.
  bool strict = true;
  /// What floating-point weights become, whatever they are and were. Otherwise types must fit.
  Maybe<DType> dtype = {};
  /// What another library's names become; "": left out.
  std::function<std::string(const std::string& name)> rename = {};
  /// Of a file: as load_safetensors has it.
  std::optional<bool> verify = {};
};

// For the library: what modules are asked, by any visit.

TensorMap tensors_in(const Visit& model);
TensorMap trainable_in(const Visit& model);
/// Puts tensors in the places of their names.
void put(const Visit& model, const TensorMap& tensors);
/// Puts tensors in the places of their names, all or none; `what` begins errors.
void put_all(const Visit& model, const std::string& what, TensorMap tensors,
             const LoadWeights& how);
void save_weights(const Visit& model, const std::string& path);
void load_weights(const Visit& model, const std::string& path, const LoadWeights& how);
void set_training(const Visit& model, bool training);
/// Of fields called `names`, or all.
void set_frozen(const Visit& model, const std::set<std::string>& names, bool frozen);
/// `error`, with the path to the module that it comes from in front.
[[noreturn]] void fail_in(const Visit& model, const ModuleBase& base, const UserError& error);

}  // namespace tn::nn
