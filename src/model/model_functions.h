#pragma once
// The functions of a physical model, over lists of tensors.
#include "model/record.h"
#include "tenon/physical_model.h"

namespace tn::model {

struct FunctionSettings {
  std::optional<std::vector<std::string>> trainable = {};
  std::optional<DType> narrow = {};  // mixed precision
  int segments = 0;                  // of checkpoints; 0: none
};

/// What an evaluation is given.
struct Given {
  std::string name;
  Role role;
  TypeRef type;
  bool trainable = false;
};

inline constexpr std::string_view kRandomKey = "random.key";

class Functions {
 public:
  Functions(Resolved model, const FunctionSettings& settings);

  const Resolved& model() const { return model_; }
  /// In the order of the model; a random key is the last, where the model draws.
  const std::vector<Given>& given() const { return given_; }
  const std::vector<std::string>& outputs() const { return outputs_; }
  /// States that evaluations update.
  const std::vector<std::string>& states() const { return states_; }

  /// The outputs, then the new states.
  Tensors forward(const Tensors& given) const;
  /// The same, then the gradients of what is trainable; `cotangents` are of the outputs, null:
  /// zero.
  Tensors gradients(const Tensors& given, const Tensors& cotangents) const;
  /// First values of parameters and states; null for data.
  Tensors first_values(const Tensor& key) const;
  /// A stage of becoming physical: "flattening", "terminals", "shapes", "types".
  std::string text(std::string_view stage) const;

 private:
  Tensors recorded(const Tensors& given) const;

  Resolved model_;
  std::optional<DType> narrow_;
  int segments_;
  std::vector<Given> given_;
  std::vector<std::string> outputs_, states_;
  std::vector<size_t> kept_states_;  // of the results of `record`
  std::vector<int> trainable_;       // of `given`
};

/// Flattens and infers. Fails for unknown names.
Functions resolved_functions(const Model& model, const InferenceRequest& request,
                             const KeySettings& keys, const FunctionSettings& settings);

}  // namespace tn::model
