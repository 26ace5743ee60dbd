#pragma once
// Trees: values made of tensors. Arguments and results of typed functions are trees:
//
// - a tensor
// - a tuple, pair, array, vector, optional of trees, or a map from text to them
// - a module, or a struct that lists its members:
//
//       struct Params {
//         tn::Tensor w, b;
//         static void fields(auto& p, auto&& f) { f("w", p.w), f("b", p.b); }
//       };
//
// Numbers, enumerators and text in a tree are settings: constants of what is traced.
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tenon/callback.h"
#include "tenon/tensor.h"

namespace tn::nn {
class ModuleBase;
}

namespace tn::tree {

/// Where something is in a tree: a name of a field, a number in a list or a key of a map, inside
/// something else.
struct Path {
  const Path* outer = nullptr;
  std::string_view name = {};
  int64_t number = -1;
  bool is_key = false;

  std::string dotted() const;    // "blocks.3.attn.q.weight", the name in files
  std::string accessed() const;  // "blocks[3].attn.q.weight", as in a program
};

/// The module that a tensor belongs to, if any, and the field of it.
struct Owner {
  nn::ModuleBase* module = nullptr;
  std::string_view field = {};
  bool is_buffer = false;
};

/// The place of a tensor in a tree.
struct Slot {
  const Path& path;
  Tensor& tensor;
  nn::ModuleBase* owner = nullptr;  // null: no module
  std::string_view field = {};      // of the owner
  bool is_buffer = false;

  /// Whether a module trains it.
  bool is_trainable() const;
  /// A null tensor of a module is absent; elsewhere it is an error.
  bool is_absent() const { return owner && !tensor.defined(); }
};

class Visitor {
 public:
  using VisitModule = void(nn::ModuleBase&, Visitor&);  // visits a module as what it is
  virtual ~Visitor();
  /// The argument of a function that comes next.
  virtual void argument(size_t) {}
  /// A module, before its contents.
  virtual void module(const Path&, nn::ModuleBase&, VisitModule*) {}
  virtual void tensor(const Slot&) {}
  /// A setting, or a part of the structure such as the length of a list, as bits.
  virtual void setting(const Path&, uint64_t) {}
  /// A setting that is text: its length, then eight characters a word.
  virtual void text(const Path& path, std::string_view text);
};

/// A type whose contents are known at run time only visits them itself.
template <class T>
concept IsVisited = requires(T& t, Visitor& v, const Path& path) { t.visit(v, path); };

struct IgnoreFields {
  template <class... A>
  void operator()(A&&...) const {}
};
template <class T>
concept HasFields = requires(T& t) { std::remove_const_t<T>::fields(t, IgnoreFields()); };

template <class T>
void visit(T& value, Visitor& visitor, const Path& path = {}, const Owner& owner = {});

template <class T, size_t... I>
void visit_elements(T& value, Visitor& visitor, const Path& path, const Owner& owner,
                    std::index_sequence<I...>) {
  (visit(std::get<I>(value), visitor, {.outer = &path, .number = static_cast<int64_t>(I)}, owner),
   ...);
}

/// Visits a tree from left to right, and a map in the order of its keys.
template <class T>
void visit(T& value, Visitor& visitor, const Path& path, const Owner& owner) {
  if constexpr (std::is_same_v<T, Tensor>) {
    visitor.tensor({path, value, owner.module, owner.field, owner.is_buffer});
  } else if constexpr (IsVisited<T>) {
    value.visit(visitor, path);
  } else if constexpr (std::is_floating_point_v<T>) {
    visitor.setting(path, std::bit_cast<uint64_t>(static_cast<double>(value)));
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    visitor.setting(path, static_cast<uint64_t>(value));
  } else if constexpr (std::is_convertible_v<T&, std::string_view>) {
    if constexpr (std::is_pointer_v<T>)
      visitor.text(path, value ? std::string_view(value) : std::string_view());
    else
      visitor.text(path, value);
  } else if constexpr (HasFields<T>) {
    T::fields(value, [&]<class V, class... Tag>(std::string_view name, V& field, Tag...) {
      visit(field, visitor, {.outer = &path, .name = name}, owner);
    });
  } else if constexpr (requires { value.has_value(); }) {
    visitor.setting({.outer = &path, .name = "has_value()"}, value.has_value() ? 1 : 0);
    if (value) visit(*value, visitor, path, owner);
  } else if constexpr (requires {
                         typename T::mapped_type;
                         value.begin();
                       }) {
    static_assert(std::is_convertible_v<const typename T::key_type&, std::string_view>,
                  "the keys of a map are text, as in std::map<std::string, tn::Tensor>");
    static_assert(
        !requires { typename T::hasher; },
        "an unordered map has no order of its tensors: use std::map");
    visitor.setting({.outer = &path, .name = "size()"}, static_cast<uint64_t>(value.size()));
    for (auto& [key, part] : value) {
      visitor.text(path, key);
      visit(part, visitor, {.outer = &path, .name = key, .is_key = true}, owner);
    }
  } else if constexpr (requires {
                         value.begin();
                         value.size();
                       }) {
    static_assert(!std::is_same_v<T, Selection>,
                  "x[...] of a variable is no tensor yet: write tn::Tensor(x[0])");
    static_assert(!std::is_same_v<T, std::vector<bool>>,
                  "std::vector<bool> does not hold its elements: use std::vector<char>");
    visitor.setting({.outer = &path, .name = "size()"}, static_cast<uint64_t>(value.size()));
    int64_t number = 0;
    for (auto& part : value) visit(part, visitor, {.outer = &path, .number = number++}, owner);
  } else {
    static_assert(
        requires { std::tuple_size<T>::value; },
        "an argument, a result or a field is a tensor, a number, text, a tuple, pair, "
        "array, vector, optional or map of such, or a struct with "
        "static void fields(auto& p, auto&& f) { f(\"w\", p.w); }");
    visit_elements(value, visitor, path, owner, std::make_index_sequence<std::tuple_size_v<T>>());
  }
}

std::string_view argument_name(size_t i);  // "argument 0"
/// Fails unless the tensors of `what` have the paths that those of `wanted` have.
void check_like(std::string_view by, std::string_view what, const Callback<void(Visitor&)>& wanted,
                const Callback<void(Visitor&)>& given);

/// A short list of words on the stack.
class Words {
 public:
  void push_back(uint64_t word) {
    if (count_ < kInline)
      inline_[count_++] = word;
    else
      add_beyond(word);
  }
  const uint64_t* begin() const { return more_.empty() ? inline_ : more_.data(); }
  const uint64_t* end() const { return begin() + size(); }
  size_t size() const { return more_.empty() ? count_ : more_.size(); }

 private:
  static constexpr size_t kInline = 16;
  void add_beyond(uint64_t word);
  size_t count_ = 0;
  uint64_t inline_[kInline];
  std::vector<uint64_t> more_;
};

/// Collects the tensors of trees in order, and beside them the structure: everything else that
/// decides what a function of the trees computes.
struct Contents final : Visitor {
  std::string_view by;       // the transform, for errors
  bool takes_over = false;   // tensors are moved out of trees that are not modules
  bool allows_null = false;  // a null tensor is an element of the list
  Tensors tensors = {};
  Words structure = {};
  std::vector<size_t> first = {};  // of each argument, the number of its first tensor
  std::vector<char> fixed = {};    // by tensor: a module does not train it; empty: none is fixed

  explicit Contents(std::string_view by);
  Contents(const Contents&) = delete;
  ~Contents() override;
  void argument(size_t) override;
  void module(const Path&, nn::ModuleBase& module, VisitModule*) override;
  void tensor(const Slot& slot) override;
  void setting(const Path&, uint64_t bits) override;
  bool is_fixed(size_t i) const { return i < fixed.size() && fixed[i]; }
};

/// Puts tensors into the places of a tree, in order.
struct Filling final : Visitor {
  Tensor* next;
  explicit Filling(Tensor* first) : next(first) {}
  void tensor(const Slot& slot) override;
};

/// Takes the tensors out of a tree: what remains is the structure.
struct Hollowing final : Visitor {
  void tensor(const Slot& slot) override;
};

/// Finds the path of tensor `number`.
struct Finding final : Visitor {
  size_t number;
  std::string found = {};
  explicit Finding(size_t wanted) : number(wanted) {}
  void tensor(const Slot& slot) override;
};
/// A part of the structure: one word or a text's. `told` says what a word is; null: a number.
struct Setting {
  std::string path;
  bool is_text = false;
  std::string (*told)(uint64_t word) = nullptr;
};
/// Lists what the structure consists of.
struct SettingList : Visitor {
  std::vector<Setting> all = {};
  void module(const Path& path, nn::ModuleBase&, VisitModule*) override;
  void tensor(const Slot& slot) override;
  void setting(const Path& path, uint64_t) override;
  void text(const Path& path, std::string_view) override;
};

}  // namespace tn::tree
