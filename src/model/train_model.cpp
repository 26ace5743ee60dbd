#include "tenon/train_model.h"

#include "base/error.h"
#include "tenon/operators.h"

namespace tn::model {

static constexpr const char* kLoss = "loss";

TrainModel::TrainModel(const Model& model) : Model(model) { keep_ends(); }

void TrainModel::add_metric(const Block& metric, const std::string& key, Connections connections) {
  IOKey output(key);
  output.expose = true;
  connections.emplace_back("output", output);
  *this |= metric(std::move(connections));
}

std::string TrainModel::add_loss(const Block& loss, Connections connections, double weight,
                                 std::string key) {
  if (key.empty()) key = format("{}_{}", kLoss, losses_.size());
  if (key == kLoss) fail("add_loss: '{}' is the name of the sum of all losses", kLoss);
  add_metric(loss, key, std::move(connections));
  losses_.emplace_back(key, weight);
  return key;
}

Model TrainModel::completed() const {
  if (losses_.empty())
    fail(Hint{"add one: add_loss(MSELoss(), ...)"}, "TrainModel: there is no loss");
  BlockDef def{.kind = "Loss", .terminals = {}};
  Connections connections;
  std::vector<double> weights;
  for (const auto& [key, weight] : losses_) {
    std::string name = format("x{}", weights.size());
    def.terminals.push_back({.name = name, .shape = ""});
    connections.emplace_back(name, key);
    weights.push_back(weight);
  }
  def.terminals.push_back({.name = "output", .role = Role::output, .shape = ""});
  def.compute = [weights](const BlockCall& call) -> Tensors {
    Tensor total;
    for (size_t i = 0; i < weights.size(); ++i) {
      Tensor part = weights[i] == 1 ? call.in[i] : call.in[i] * weights[i];
      total = total.defined() ? total + part : part;
    }
    return {total};
  };
  IOKey output(kLoss);
  output.expose = true;
  connections.emplace_back("output", output);
  Model made = *this;
  made |= Block(std::move(def))(std::move(connections));
  return made;
}

TrainStep PhysicalTrainModel::step(optim::Optimizer& optimizer, const Values& params,
                                   const Values& data, const Values& state) const {
  Values seed{{kLoss, ones({}, types().at(kLoss))}};
  Values before = state.empty() ? initial_state() : state;
  // With the same key, all steps would draw the same numbers: evaluating without one is an error.
  if (state.empty() && before.contains("random.key")) before.clear();
  Evaluated made = evaluate_gradients(params, data, seed, before);
  Values trained;  // not data
  for (const auto& [name, gradient] : made.gradients)
    if (params.contains(name)) trained.emplace(name, gradient);
  TrainStep step{made.outputs.at(kLoss), std::move(made.outputs), params, std::move(made.state)};
  for (auto& [name, value] : optimizer.apply_gradients(trained, params)) step.params[name] = value;
  Tensors pending;
  for (const auto& [name, value] : step.params) pending.push_back(value);
  eval(pending);
  return step;
}

PhysicalTrainModel compile(const TrainModel& model, const PhysicalSettings& settings) {
  return PhysicalTrainModel(compile(model.completed(), settings));
}

}  // namespace tn::model
