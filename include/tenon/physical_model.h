#pragma once
// Physical models: compiled logical models, with shapes and types.
//
//     auto physical = tn::model::compile(m, {.shapes = {{"x", "32 16"}}});
//     auto params = physical.randomize_params(0);
//     auto outputs = physical.evaluate(params, {{"x", x}}).outputs;
#include "tenon/compile.h"
#include "tenon/model.h"

namespace tn::model {

/// Tensors by the names of connections.
using Values = std::map<std::string, Tensor>;

/// The roles of connections, by name.
struct KeySettings {
  Values constants = {};                  // constant values
  std::vector<std::string> data = {};     // parameters passed with the data, and not trained
  std::vector<std::string> discard = {};  // outputs to omit
  /// Connections with gradients; default: all parameters.
  std::optional<std::vector<std::string>> trainable = {};
};

struct PhysicalSettings {
  std::map<std::string, std::string> shapes = {};  // as of terminals: "32 _ 10"
  std::map<std::string, DType> types = {};
  DType precision = DType::f32;  // of floating parameters, states and data of which nothing is said
  bool static_shapes = false;    // open sizes are errors
  bool inference = false;        // nothing is trained: no gradients, running statistics
  /// bfloat16 or float16: products compute in it, as under amp::Autocast.
  std::optional<DType> mixed_precision = {};
  /// Gradients keep the values between this many parts and recompute the rest; 0: keep everything.
  int checkpoint_segments = 0;
  KeySettings keys = {};
  CompileSettings compile = {};
  /// Where it is evaluated. On a GPU, Device("cuda"), parameters, states and results are there, and
  /// values that are elsewhere are copied there by every evaluation. The CPU: where the values are.
  Device device = {};
};

struct Evaluated {
  Values outputs;
  Values gradients;  // where output gradients were given
  Values state;      // where it was given: of the next evaluation
};

/// Copies share compiled code; any thread may evaluate.
class PhysicalModel {
 public:
  /// Initial values of the parameters, drawn from `seed`.
  Values randomize_params(uint64_t seed = 0) const;
  /// The initial state of evaluations: running statistics, and a key if the model draws random
  /// numbers ("random.key").
  Values initial_state(uint64_t seed = 0) const;

  /// The outputs. Without a state the initial one is used, and the new one is not returned; a model
  /// that draws random numbers needs one.
  Evaluated evaluate(const Values& params, const Values& data, const Values& state = {}) const;
  /// Also the gradients of the trained parameters, given those of outputs (default: zero).
  Evaluated evaluate_gradients(const Values& params, const Values& data,
                               const Values& output_gradients, const Values& state = {}) const;

  /// Of all connections.
  std::map<std::string, Shape> shapes() const;
  std::map<std::string, DType> types() const;
  /// A stage as text: "flattening", "terminals", "shapes", "types".
  std::string show(std::string_view stage) const;
  /// An executable of the outputs and, in training, the new state. Its arguments are parameters,
  /// data and state in the order of the model, with their names.
  void save(const std::string& path) const;

  struct State;
  explicit PhysicalModel(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

PhysicalModel compile(const Model& model, const PhysicalSettings& settings = {});

}  // namespace tn::model
