#pragma once
// Sequential: layers of any kinds, one after the other.
#include <memory>
#include <typeinfo>
#include <vector>

#include "tenon/nn/module.h"

namespace tn::nn {

/// What can be a layer: it is called with one tensor. Default arguments of a function are none of
/// its type, so that `leaky_relu` cannot, but `LeakyReLU()` can.
template <class L>
concept IsLayer =
    std::invocable<std::decay_t<L>&, const Tensor&> &&
    std::convertible_to<std::invoke_result_t<std::decay_t<L>&, const Tensor&>, Tensor>;

/// Any module or function from a tensor to a tensor, as a value.
class Layer {
 public:
  template <class L>
    requires(!std::same_as<std::remove_cvref_t<L>, Layer> && IsLayer<L>)
  Layer(L&& layer) : held_(std::make_unique<Holds<std::decay_t<L>>>(std::forward<L>(layer))) {}
  Layer(const Layer& other) : held_(other.held_ ? other.held_->copy() : nullptr) {}
  Layer(Layer&&) noexcept = default;
  Layer& operator=(const Layer& other) { return *this = Layer(other); }
  Layer& operator=(Layer&&) noexcept = default;

  Tensor operator()(const Tensor& x) { return held().call(x); }
  Tensor operator()(const Tensor& x) const { return std::as_const(held()).call(x); }
  void visit(Visitor& visitor, const Path& path) { held().visit(visitor, path); }

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
    uint64_t state = is_plain<L> ? 0 : next_state();  // which a copy shares
    explicit Holds(L given) : layer(std::move(given)) {}
    std::unique_ptr<Held> copy() const override { return std::make_unique<Holds>(*this); }
    Tensor call(const Tensor& x) override { return layer(x); }
    Tensor call(const Tensor& x) const override {
      if constexpr (std::invocable<const L&, const Tensor&>)
        return layer(x);
      else
        fail_constant();
    }
    void visit(Visitor& visitor, const Path& path) override {
      visitor.setting(path, typeid(L).hash_code());
      if constexpr (IsModule<L>)
        nn::visit(layer, visitor, path);
      else if constexpr (tree::HasFields<L>)
        tree::visit(layer, visitor, path);
      else if constexpr (!is_plain<L>)
        visitor.setting(path, state);
      else if constexpr (!std::is_empty_v<L>)
        visit_bytes(static_cast<const void*>(&layer), sizeof(L), visitor, path);
    }
  };
  /// Whether the bytes of a function object say what it computes, or its fields do: a compiled
  /// function is traced again for others.
  template <class L>
  static constexpr bool is_plain =
      IsModule<L> || tree::HasFields<L> || std::is_trivially_copyable_v<L>;
  /// A number that no other function object has.
  static uint64_t next_state();
  static void visit_bytes(const void* bytes, size_t count, Visitor& visitor, const Path& path);
  Held& held() const { return held_ ? *held_ : fail_moved(); }
  [[noreturn]] static Held& fail_moved();
  [[noreturn]] static void fail_constant();

  std::unique_ptr<Held> held_;
};

///     tn::nn::Sequential model{tn::nn::Linear(2, 64), tn::relu, tn::nn::Linear(64, 3)};
class Sequential : public Module<Sequential> {
 public:
  std::vector<Layer> layers;

  Sequential() = default;
  template <class First, class... L>
    requires(sizeof...(L) > 0 || !std::same_as<std::remove_cvref_t<First>, Sequential>)
  explicit Sequential(First&& first, L&&... rest) {
    layers.reserve(1 + sizeof...(L));
    add(std::forward<First>(first));
    (add(std::forward<L>(rest)), ...);
  }

  Tensor operator()(const Operand& x);
  Tensor operator()(const Operand& x) const;
  static void fields(auto& m, auto&& f) { f("layers", m.layers); }

 private:
  template <class L>
  void add(L&& layer) {
    static_assert(IsLayer<L>,
                  "a layer is called with one tensor and returns one: give a module, LeakyReLU() "
                  "for leaky_relu, or [](const Tensor& x) { return leaky_relu(x, 0.2); }");
    if constexpr (IsLayer<L>) layers.emplace_back(std::forward<L>(layer));
  }
};

}  // namespace tn::nn
