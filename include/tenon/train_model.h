#pragma once
// Training of logical models: a model with losses, and steps of an optimizer.
//
//     tn::model::TrainModel training(m);
//     training.add_loss(tn::model::MSELoss(), {{"input", "output"}, {"target", "y"}});
//     auto physical = tn::model::compile(training, {.shapes = {{"input", "8 2"}}});
//     auto params = physical.randomize_params();
//     params = physical.step(optimizer, params, {{"input", x}, {"y", y}}).params;
#include "tenon/optim/optimizer.h"
#include "tenon/physical_model.h"

namespace tn::model {

/// A copy of a model to which losses and metrics are attached.
class TrainModel : public Model {
 public:
  explicit TrainModel(const Model& model);

  /// Adds a loss block; the weighted sum of all losses is minimised. The loss is an output under
  /// its key, by default "loss_0" and so on; the sum is the output "loss". Returns the key.
  std::string add_loss(const Block& loss, Connections connections, double weight = 1,
                       std::string key = {});
  /// Adds a block whose output is an output of the model, under `key`.
  void add_metric(const Block& metric, const std::string& key, Connections connections);
  /// The model with the sum of the losses.
  Model completed() const;

 private:
  std::vector<std::pair<std::string, double>> losses_;
};

/// The results of a training step: everything that the next one needs.
struct TrainStep {
  Tensor loss;  // before the step
  Values outputs, params, state;
};

class PhysicalTrainModel : public PhysicalModel {
 public:
  explicit PhysicalTrainModel(const PhysicalModel& model) : PhysicalModel(model) {}
  /// One step of the optimizer. Without a state the running statistics start from their initial
  /// values; a model that draws random numbers needs one.
  TrainStep step(optim::Optimizer& optimizer, const Values& params, const Values& data,
                 const Values& state = {}) const;
};

PhysicalTrainModel compile(const TrainModel& model, const PhysicalSettings& settings = {});

}  // namespace tn::model
