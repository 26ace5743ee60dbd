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
/// A model may be moved afterwards, as by a growing std::vector: its optimizers follow it. Other
/// trees must stay where they are, and so must what a loop over the parameters changes.
class Parameters {
 public:
  template <class M>
  Parameters(Module<M>& model, const Place& at = Place::current())
      : Parameters(model.as_followed_visit(), at) {}
  /// Tensors, modules and other trees: their names begin with their number.
  template <class... T>
  Parameters(std::tuple<T&...> trees, const Place& at = Place::current())
      : Parameters(Visit([all = followed(trees)](Visitor& v) mutable { tree::visit(all, v); }),
                   at) {}
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
  /// One of several trees: a module wherever it is moved to.
  template <class T>
  struct Followed {
    T* tree;
    SharedPtr<ModuleHome> home = {};  // of a module
    explicit Followed(T& followed) : tree(&followed) {
      if constexpr (IsModule<T>) home = static_cast<ModuleBase&>(followed).home();
    }
    void visit(Visitor& visitor, const Path& path) {
      if constexpr (IsModule<T>)
        nn::visit(static_cast<T&>(module_of(*home)), visitor, path);
      else
        tree::visit(*tree, visitor, path);
    }
  };
  template <class... T>
  static std::tuple<Followed<T>...> followed(std::tuple<T&...> trees) {
    return std::apply([](T&... each) { return std::tuple<Followed<T>...>(each...); }, trees);
  }
  Visit visit_;
  std::vector<Parameter> list_;
};

// For the library: those of `model` that are trained.
std::vector<Parameter> trained_in(const Visit& model);

}  // namespace tn::nn
