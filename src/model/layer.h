#pragma once
// How blocks without a record are written: terminals, what is known of sizes, and a function.
//
//     return Layer("MSE").input("input", "...").input("target", "...").computes("", […](…) {…});
#include "base/error.h"
#include "nn/checks.h"
#include "tenon/model_blocks.h"

namespace tn::model {

Tensor all_zeros(const InitialCall& call);

class Layer {
 public:
  explicit Layer(std::string kind) { def_.kind = std::move(kind); }

  /// A name in shapes; left out, it is inferred.
  Layer& size(const std::string& name, std::optional<int64_t> size) {
    if (!size) return *this;
    nn::check_sizes(def_.kind, {{name, *size}});
    def_.sizes.emplace(name, *size);
    return setting(name, *size);
  }
  Layer& multiple(std::string whole, int64_t times, std::string part) {
    if (times > 1) def_.multiples.push_back({std::move(whole), times, std::move(part)});
    return *this;
  }

  Layer& input(std::string name, std::string shape, std::optional<DType> usual = {}) {
    return add({.name = std::move(name), .shape = std::move(shape), .usual = usual});
  }
  Layer& optional_input(std::string name, std::string shape) {
    return add({.name = std::move(name), .shape = std::move(shape), .optional = true});
  }
  Layer& parameter(std::string name, std::string shape, Initializer initial) {
    return add({.name = std::move(name),
                .role = Role::parameter,
                .shape = std::move(shape),
                .initial = std::move(initial)});
  }
  Layer& state(std::string name, std::string shape, Initializer initial) {
    parameter(std::move(name), std::move(shape), std::move(initial));
    def_.terminals.back().role = Role::state;
    return *this;
  }

  /// What readers of the model are told.
  template <class T>
  Layer& setting(std::string_view name, const T& value) {
    def_.settings += format("{}{}={}", def_.settings.empty() ? "" : ", ", name, value);
    return *this;
  }
  /// The same, where it is not what it usually is.
  template <class T>
  Layer& setting(std::string_view name, const T& value, const T& usual) {
    return value == usual ? *this : setting(name, value);
  }

  Layer& draws_in_training() {
    def_.draws = Draws::in_training;
    return *this;
  }

  /// The layer; its output has this shape.
  template <class F>
  Block computes(std::string shape, F f) {
    return computes_all(std::move(shape), [f](const BlockCall& call) { return Tensors{f(call)}; });
  }
  /// The same of a function that also gives the new states.
  Block computes_all(std::string shape, std::function<Tensors(const BlockCall&)> f) {
    add({.name = "output", .role = Role::output, .shape = std::move(shape)});
    def_.same_type = true;
    def_.compute = std::move(f);
    return std::move(def_);
  }

 private:
  Layer& add(Terminal terminal) {
    def_.terminals.push_back(std::move(terminal));
    return *this;
  }

  BlockDef def_;
};

/// "d0 d1": the names of spatial axes.
std::string spatial_axes(int axes);
/// "3", "3 3" or "[3, 5]": one where all are equal.
std::string short_text(const Ints& list);

}  // namespace tn::model
