#pragma once
// Visiting models: their tensors, with the names these have in files.
//
// A module lists its members in one function, from which everything else follows:
//
//     static void fields(auto& m, auto&& f) { f("weight", m.weight), f("layers", m.layers); }
//
// A field is a tree (tree.h) of tensors and modules. A null tensor is absent. Numbers are settings:
// compiled functions are traced again when they change.
#include <concepts>
#include <iosfwd>
#include <map>
#include <optional>
#include <set>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "tenon/callback.h"
#include "tenon/error.h"
#include "tenon/shared_ptr.h"
#include "tenon/tree.h"

namespace tn::nn {

using Place = std::source_location;  // the line of a call, for errors

/// Tensors by their paths.
using TensorMap = std::map<std::string, Tensor>;

using tree::Path;
using tree::Slot;
using tree::Visitor;

/// Where a module is. It follows the module when that is moved, as by a growing std::vector.
struct ModuleHome {
  ModuleBase* module = nullptr;
  SharedPtr<ModuleHome> next = {};  // of the module that it was assigned to
};

/// What modules have besides their fields.
class ModuleBase {
 public:
  /// Whether modules such as Dropout behave as in training.
  bool training = true;

 private:
  enum Origin : uint8_t { kOwn, kCopied, kMoved };
  Origin origin_ = kOwn;
  SharedPtr<ModuleHome> home_;  // once it was asked for

 public:
  /// The fields whose tensors are not trained.
  std::set<std::string, std::less<>> frozen;

  // For the library.
  /// Whether it is a copy that was neither called nor visited, whose variables are those of the
  /// original, or was moved from, and has none.
  bool lacks_variables() const { return __atomic_load_n(&origin_, __ATOMIC_ACQUIRE) != kOwn; }
  /// Gives a copy variables of its own, without gradients; `contents` visits its fields. Fails if
  /// the module was moved from.
  void own_variables(const Callback<void(Visitor&)>& contents);
  const SharedPtr<ModuleHome>& home();

 protected:  // modules are copied as what they are
  ModuleBase() = default;
  ModuleBase(const ModuleBase& other)
      : training(other.training), origin_(other.copied()), frozen(other.frozen) {}
  ModuleBase(ModuleBase&& other) noexcept
      : training(other.training),
        origin_(std::exchange(other.origin_, kMoved)),
        home_(std::move(other.home_)),
        frozen(std::move(other.frozen)) {
    if (home_) home_->module = this;
  }
  ModuleBase& operator=(const ModuleBase& other) {
    if (this != &other) training = other.training, frozen = other.frozen, origin_ = other.copied();
    return *this;
  }
  ModuleBase& operator=(ModuleBase&& other) noexcept {
    if (this == &other) return *this;
    training = other.training, origin_ = std::exchange(other.origin_, kMoved);
    frozen = std::move(other.frozen);
    if (other.home_) move_in(std::move(other.home_));
    return *this;
  }
  ~ModuleBase() {
    if (home_) home_->module = nullptr;
  }

 private:
  Origin copied() const { return origin_ == kMoved ? kMoved : kCopied; }
  void move_in(SharedPtr<ModuleHome> home) noexcept;
};

/// For the library: the module of a home. Fails if it does not exist any more.
ModuleBase& module_of(const ModuleHome& home);

/// Given to `fields` after a tensor that is state and never trained, such as running statistics.
struct Buffer {};
inline constexpr Buffer buffer;

/// A model, an optimizer or other state, as something to visit.
using Visit = Callback<void(Visitor&)>;

/// For the library: whether a function that is traced on this thread carries out what it assigns to
/// modules, as that of shard_map does; and a module that it calls.
bool changes_are_noted();
void note_changes(const SharedPtr<ModuleHome>& home, Visit module);

template <class T>
concept IsModule = std::derived_from<T, ModuleBase>;

template <IsModule M>
void visit(M& module, Visitor& visitor, const Path& path = {}) {
  static_assert(
      requires { M::fields(module, [](auto&&...) {}); },
      "a module says what it holds: static void fields(auto& m, auto&& f) { f(\"w\", m.w); }");
  auto contents = [&](Visitor& each) {
    M::fields(module, [&]<class T, class... Tag>(std::string_view name, T& value, Tag...) {
      constexpr bool is_buffer = (std::same_as<Tag, Buffer> || ...);
      tree::visit(value, each, {.outer = &path, .name = name}, {&module, name, is_buffer});
    });
  };
  if (module.lacks_variables()) module.own_variables(contents);
  visitor.module(path, module,
                 [](ModuleBase& base, Visitor& each) { nn::visit(static_cast<M&>(base), each); });
  contents(visitor);
}

/// How weights are loaded.
struct LoadWeights {
  /// Names that only the model or only the weights have are errors.
  bool strict = true;
  /// Converts floating-point weights to this type. By default types must match.
  Maybe<DType> dtype = {};
  /// Renames the weights of another library; "" skips one.
  Callback<std::string(const std::string& name)> rename = {};
  /// Of a file: as load_safetensors has it.
  std::optional<bool> verify = {};
};

// For the library: queries and changes of models, through visits.

TensorMap tensors_in(const Visit& model, const Place& at = {});
TensorMap trainable_in(const Visit& model, const Place& at = {});
/// Puts tensors in the places of their names.
void put(const Visit& model, const TensorMap& tensors);
/// The same, assigned as new values: tensors that require gradients still require them.
void update(const Visit& model, const TensorMap& tensors, const Place& at);
/// `update` of all tensors or none; `what` begins errors.
void put_all(const Visit& model, const std::string& what, TensorMap tensors, const LoadWeights& how,
             std::source_location at = std::source_location::current());
void save_weights(const Visit& model, const std::string& path, std::source_location at);
void load_weights(const Visit& model, const std::string& path, const LoadWeights& how,
                  std::source_location at);
std::string text_of(const Visit& model);
std::ostream& print(std::ostream& out, const Visit& model);
void set_training(const Visit& model, bool training, const Place& at);
/// Of fields called `names`, or all. A name that no field has is an error.
void set_frozen(const Visit& model, const std::set<std::string>& names, bool frozen,
                std::source_location at);
/// Gives the copies among modules variables of their own.
void own_all_variables(const Visit& model);
/// `error`, with the path to the module that it comes from in front.
[[noreturn]] void fail_in(const Visit& model, const ModuleBase& base, const UserError& error);

}  // namespace tn::nn
