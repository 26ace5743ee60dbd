#pragma once
// Physical models: compiled logical models, with shapes and types, that can be evaluated.
//
//     auto physical = tn::model::compile(m, {.shapes = {{"x", "32 16"}}});
//     auto params = physical.randomize_params(0);
//     auto outputs = physical.evaluate(params, {{"x", x}}).outputs;
#include "tenon/compile.h"
#include "tenon/model.h"

namespace tn::model {

/// Tensors by the names of connections.
using Values = std::map<std::string, Tensor>;

/// How connections are treated, by name.
struct KeySettings {
  Values constants = {};               // values that are known now
  std::vector<std::string> data = {};  // parameters that are given with the data, and not trained
  std::vector<std::string> discard = {};  // outputs that are not returned
  /// What has gradients; left out: all parameters.
  std::optional<std::vector<std::string>> trainable = {};
};

struct PhysicalSettings {
  std::map<std::string, std::string> shapes = {};  // as of terminals: "32 _ 10"
  std::map<std::string, DType> types = {};
  DType precision = DType::f32;  // of floating parameters, states and data without a declared type
  bool static_shapes = false;    // sizes that nothing determines are refused
  bool inference = false;        // nothing is trained: no gradients, running statistics
  /// bfloat16 or float16: products compute in it, as under amp::Autocast.
  std::optional<DType> mixed_precision = {};
  /// Number of checkpointed segments whose inner values gradients recompute; 0: no checkpointing.
  int checkpoint_segments = 0;
  KeySettings keys = {};
  CompileSettings compile = {};
};

struct Evaluated {
  Values outputs;
  Values gradients;  // where output gradients were given
  Values state;      // where it was given: of the next evaluation
};

/// Copies share what was compiled; evaluations may come from any thread.
class PhysicalModel {
 public:
  /// The first values of parameters, drawn from `seed`.
  Values randomize_params(uint64_t seed = 0) const;
  /// What evaluations read and write besides: running statistics, and a key where the model draws
  /// random numbers ("random.key").
  Values initial_state(uint64_t seed = 0) const;

  /// The outputs. Without `state` the initial state is read and the new one is discarded. A model
  /// that draws random numbers needs `state`.
  Evaluated evaluate(const Values& params, const Values& data, const Values& state = {}) const;
  /// With gradients of what is trained, from those of outputs (left out: zero).
  Evaluated evaluate_gradients(const Values& params, const Values& data,
                               const Values& output_gradients, const Values& state = {}) const;

  /// Of all connections.
  std::map<std::string, Shape> shapes() const;
  std::map<std::string, DType> types() const;
  /// A stage as text: "flattening", "terminals", "shapes", "types".
  std::string show(std::string_view stage) const;
  /// An executable of the outputs and, in training, the new state; its arguments are parameters,
  /// data and state in the order of the model, by their names.
  void save(const std::string& path) const;

  struct State;
  explicit PhysicalModel(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

PhysicalModel compile(const Model& model, const PhysicalSettings& settings = {});

}  // namespace tn::model
