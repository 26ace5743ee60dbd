#pragma once
// Parameters: what a model trains, in the places where the model holds it.
#include <tuple>
#include <utility>
#include <vector>

#include "tenon/nn/visit.h"

namespace tn::nn {

template <class Self>
class Module;

/// A parameter in its place: assigning to `tensor` changes the model.
struct Parameter {
  std::string name;  // "blocks.3.attn.q.weight"
  Tensor& tensor;
};

/// The parameters of a model, or of several trees, by reference: an optimizer changes them there.
///
///     for (auto& [name, w] : model.parameters()) std::cout << name << ' ' << w.size() << '\n';
///     tn::optim::SGD optimizer(model.parameters(), {.learning_rate = 0.1});
///     tn::optim::SGD another(std::tie(w, b), {.learning_rate = 0.1});
///
/// The model must stay where it is.
class Parameters {
 public:
  template <class M>
  Parameters(Module<M>& model, const Place& at = Place::current())
      : Parameters(model.as_visit(), at) {}
  /// Tensors, modules and other trees: their names begin with their number.
  template <class... T>
  Parameters(std::tuple<T&...> trees)
      : Parameters(Visit([trees](Visitor& v) mutable { tree::visit(trees, v); })) {}
  explicit Parameters(Visit model, const Place& at = {});

  /// All of them, buffers left out and those that are frozen included.
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  size_t size() const { return list_.size(); }
  const Parameter& operator[](size_t i) const { return list_[i]; }
  /// The tensors by name, as they are now.
  operator TensorMap() const;
  const Visit& as_visit() const { return visit_; }

 private:
  Visit visit_;
  std::vector<Parameter> list_;
};

// For the library: those of `model` that are trained.
std::vector<Parameter> trained_in(const Visit& model);

}  // namespace tn::nn
