#pragma once
// Sequential: layers of any kinds, one after the other.
#include <memory>
#include <typeinfo>
#include <vector>

#include "tenon/nn/module.h"

namespace tn::nn {

/// Any module or function from a tensor to a tensor, as a value.
class Layer {
 public:
  template <class L>
    requires(!std::same_as<std::remove_cvref_t<L>, Layer> &&
             std::invocable<std::decay_t<L>&, const Tensor&>)
  Layer(L&& layer) : held_(std::make_unique<Holds<std::decay_t<L>>>(std::forward<L>(layer))) {}
  Layer(const Layer& other) : held_(other.held_ ? other.held_->copy() : nullptr) {}
  Layer(Layer&&) noexcept = default;
  Layer& operator=(const Layer& other) { return *this = Layer(other); }
  Layer& operator=(Layer&&) noexcept = default;

  Tensor operator()(const Tensor& x) { return held_->call(x); }
  Tensor operator()(const Tensor& x) const { return std::as_const(*held_).call(x); }
  void visit(Visitor& visitor, const Path& path) { held_->visit(visitor, path); }

  /// The layer itself, if it is an `L`; otherwise null.
  template <class L>
  L* as() {
    auto* held = dynamic_cast<Holds<L>*>(held_.get());
    return held ? &held->layer : nullptr;
  }

 private:
  struct Held {
    virtual ~Held() = default;
    virtual std::unique_ptr<Held> copy() const = 0;
    virtual Tensor call(const Tensor& x) = 0;
    virtual Tensor call(const Tensor& x) const = 0;
    virtual void visit(Visitor& visitor, const Path& path) = 0;
  };
  template <class L>
  struct Holds final : Held {
    L layer;
    explicit Holds(L given) : layer(std::move(given)) {}
    std::unique_ptr<Held> copy() const override { return std::make_unique<Holds>(layer); }
    Tensor call(const Tensor& x) override { return layer(x); }
    Tensor call(const Tensor& x) const override {
      if constexpr (std::invocable<const L&, const Tensor&>)
        return layer(x);
      else
        fail_constant();
    }
    void visit(Visitor& visitor, const Path& path) override {
      visitor.setting(path, typeid(L).hash_code());
      if constexpr (IsModule<L>) nn::visit(layer, visitor, path);
      if constexpr (std::is_pointer_v<L>) visitor.setting(path, reinterpret_cast<uintptr_t>(layer));
    }
  };
  [[noreturn]] static void fail_constant();

  std::unique_ptr<Held> held_;
};

///     tn::nn::Sequential model{tn::nn::Linear(2, 64), tn::relu, tn::nn::Linear(64, 3)};
class Sequential : public Module<Sequential> {
 public:
  std::vector<Layer> layers;

  Sequential() = default;
  template <class First, class... L>
    requires((sizeof...(L) > 0 || !std::same_as<std::remove_cvref_t<First>, Sequential>) &&
             std::constructible_from<Layer, First>)
  explicit Sequential(First&& first, L&&... rest) {
    layers.reserve(1 + sizeof...(L));
    layers.emplace_back(std::forward<First>(first));
    (layers.emplace_back(std::forward<L>(rest)), ...);
  }

  Tensor operator()(const Operand& x);
  Tensor operator()(const Operand& x) const;
  static void fields(auto& m, auto&& f) { f("layers", m.layers); }
};

}  // namespace tn::nn
