#pragma once
// Checkpoints: everything a training run needs to resume with the same bits. Python reads those of
// C++ and the other way around.
//
//     tn::save_checkpoint("run", {{"model", model}, {"optimizer", optimizer}, {"epoch", 3}});
//     auto rest = tn::load_checkpoint("run", {{"model", model}, {"optimizer", optimizer}});
//     int64_t epoch = std::get<int64_t>(rest.at("epoch"));
//
// A checkpoint is one safetensors file. Its tensors are named by their path, such as
// `model.layers.0.weight` or `optimizer.moments.layers.0.weight.m`; numbers and text are in its
// metadata. It is written atomically, and loading verifies its checksum.
#include <optional>
#include <variant>

#include "tenon/nn/visit.h"
#include "tenon/tree_functions.h"

namespace tn {

using CheckpointValue = std::variant<bool, int64_t, double, std::string, Tensor>;
using CheckpointValues = std::map<std::string, CheckpointValue>;

/// A tree of tensors. A list of numbers or text has none.
template <class S>
concept IsTreePart = HasTensors<S> && !std::is_const_v<S> && !std::same_as<S, Tensor> &&
                     !requires(S& s) { s.state_dict(); } && !requires {
                       requires std::is_arithmetic_v<typename S::value_type> ||
                                    std::is_convertible_v<typename S::value_type, std::string>;
                     };

/// A named part of a training run: a model, an optimizer or another object with `state_dict` and
/// `load_state_dict`; or a tree of tensors, such as a struct with `fields`, of which numbers and
/// text are not saved; or a value. The first two must live as long.
class CheckpointPart {
  template <class T>
  using Stored = std::conditional_t<std::is_same_v<T, bool>, bool,
                                    std::conditional_t<std::is_integral_v<T>, int64_t, double>>;

 public:
  template <class S>
    requires requires(S& s) { s.load_state_dict(s.state_dict()); }
  CheckpointPart(std::string part, S& state)
      : name(std::move(part)),
        kind("Module"),
        is_optimizer(requires { state.learning_rate(); }),
        save([&state] { return state.state_dict(); }),
        load([&state](const nn::TensorMap& tensors) { state.load_state_dict(tensors); }) {
    if constexpr (requires { state.kind(); }) kind = state.kind();
  }
  template <IsTreePart S>
  CheckpointPart(std::string part, S& tree)
      : name(std::move(part)),
        kind("Module"),
        is_tree(true),
        save([&tree] { return nn::tensors_in([&](nn::Visitor& v) { tree::visit(tree, v); }); }),
        load([&tree, what = "load_checkpoint: " + name](const nn::TensorMap& tensors) {
          nn::put_all([&](nn::Visitor& v) { tree::visit(tree, v); }, what, tensors, {});
        }) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  CheckpointPart(std::string part, T number)
      : name(std::move(part)), value(std::in_place_type<Stored<T>>, number) {}
  CheckpointPart(std::string part, std::string text)
      : name(std::move(part)), value(std::move(text)) {}
  CheckpointPart(std::string part, const char* text)
      : name(std::move(part)), value(std::in_place_type<std::string>, text) {}
  CheckpointPart(std::string part, Tensor tensor)
      : name(std::move(part)), value(std::move(tensor)) {}
  template <class T>
    requires(!std::is_arithmetic_v<T> && !std::is_convertible_v<const T&, std::string> &&
             !std::is_convertible_v<const T&, Tensor>)
  CheckpointPart(const std::string&, const T&) {
    static_assert(!sizeof(T),
                  "a part of a checkpoint is a model, an optimizer or a struct with fields, in a "
                  "variable that is not const, or a number, text or a tensor");
  }

  // For the library.
  std::string name, kind;  // of a value: ""
  bool is_optimizer = false, is_tree = false;
  Callback<nn::TensorMap()> save = {};
  Callback<void(const nn::TensorMap&)> load = {};
  CheckpointValue value = {};
};
using CheckpointParts = std::vector<CheckpointPart>;

/// Writes parts of a training run to a file. `random` adds the random state of the thread.
void save_checkpoint(const std::string& path, const CheckpointParts& parts, bool random = true,
                     std::source_location at = std::source_location::current());
/// Loads the given parts of a checkpoint in place, and returns the values in it. The checksum of
/// the file is verified unless `verify` is false.
CheckpointValues load_checkpoint(const std::string& path, const CheckpointParts& parts = {},
                                 bool random = true, std::optional<bool> verify = {},
                                 std::source_location at = std::source_location::current());

/// The latest checkpoints of a training run, in a folder: `step-00000100.safetensors`. The oldest
/// are removed when there are more than `keep`.
class Checkpoints {
 public:
  explicit Checkpoints(std::string folder, std::optional<int64_t> keep = 3);
  /// Saves parts and "step" as the checkpoint of that step.
  void save(int64_t step, CheckpointParts parts, bool random = true,
            std::source_location at = std::source_location::current()) const;
  /// Loads the latest checkpoint, or that of `step`. No values: there is none yet.
  CheckpointValues load(const CheckpointParts& parts, std::optional<int64_t> step = {},
                        bool random = true, std::optional<bool> verify = {},
                        std::source_location at = std::source_location::current()) const;
  /// The steps that have a checkpoint, in order.
  std::vector<int64_t> steps() const;
  std::string path(int64_t step) const;

 private:
  std::string folder_;
  std::optional<int64_t> keep_;
};

}  // namespace tn
