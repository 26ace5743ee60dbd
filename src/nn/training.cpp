#include "tenon/nn/training.h"

#include "base/error.h"
#include "tenon/random.h"

namespace tn::nn {
namespace {

/// What `f` returns. `restore` runs afterwards, also where `f` fails: then that is the error.
template <class F, class G>
auto restored(const F& f, G restore) {
  auto run = [&] {
    try {
      return f();
    } catch (...) {
      try {
        restore();
      } catch (const std::exception&) {
      }
      throw;
    }
  };
  auto made = run();
  restore();
  return made;
}

/// The tensors of some state, absent ones too, and all else that decides what is computed from it.
struct Contents : Visitor {
  std::vector<Tensor*> tensors;
  std::vector<uint64_t> structure;

  explicit Contents(const Visit& state) { state(*this); }
  void module(const Path&, ModuleBase& module) override { structure.push_back(module.training); }
  void setting(const Path&, uint64_t bits) override { structure.push_back(bits); }
  void tensor(const Slot& slot) override {
    tensors.push_back(&slot.tensor);
    structure.push_back(slot.tensor ? 1 + slot.is_trainable() : 0);
  }
};

/// There is other state after a call than before.
struct StateChanged {};

}  // namespace

ValueAndGrad<Tensors> value_and_grad_in(const Visit& model, const std::function<Tensors()>& f) {
  TensorMap before = trainable_in(model);
  if (before.empty()) fail("value_and_grad: the model has no trainable parameters");
  std::vector<std::string> names;
  std::vector<int> argnums;
  Tensors parameters;
  for (const auto& [name, parameter] : before) {
    argnums.push_back(static_cast<int>(names.size()));
    names.push_back(name), parameters.push_back(parameter);
  }
  auto named = [&](const Tensors& tensors) {
    TensorMap by_name;
    for (size_t i = 0; i < names.size(); ++i) by_name.emplace(names[i], tensors[i]);
    return by_name;
  };
  auto of_parameters = [&](const Tensors& given) { return put(model, named(given)), f(); };
  auto name_of = [&](size_t i) { return names[i]; };
  auto derivatives_of = flat::value_and_grad(of_parameters, argnums, {"value_and_grad", name_of});
  flat::Derivatives made =
      restored([&] { return derivatives_of(parameters); }, [&] { put(model, before); });
  return {std::move(made.values), named(made.derivatives)};
}

struct StateCalls::Impl {
  Visit state;
  std::function<std::function<void()>()> keep;
  flat::CompiledFunction compiled;
  std::vector<bool> present = {};  // of the call under way: which tensors there are

  /// The tensors there are, in the order of the arguments.
  std::vector<Tensor*> slots() const {
    std::vector<Tensor*> all = Contents(state).tensors, there;
    for (size_t i = 0; i < all.size(); ++i)
      if (present[i]) there.push_back(all[i]);
    return there;
  }
  /// Values in the places of the state, from an iterator.
  template <class It>
  void assign(It values) {
    for (Tensor* slot : slots()) *slot = *values++;
  }
  Tensors traced(flat::CompiledCall& call, const Tensors& all);
};

namespace {

/// A call with the random key and the state in front of its arguments.
template <class Impl>
struct StateCall final : flat::CompiledCall {
  Impl& impl;
  flat::CompiledCall& inner;

  StateCall(Impl& owner, flat::CompiledCall& call)
      : CompiledCall(call.place), impl(owner), inner(call) {
    Contents contents(impl.state);
    impl.present.clear();
    in.tensors = {random::state()};
    for (Tensor* slot : contents.tensors) {
      impl.present.push_back(bool(*slot));
      if (*slot) in.tensors.push_back(*slot);
    }
    donated = in.tensors.size();
    const Tensors& args = inner.in.tensors;
    in.tensors.insert(in.tensors.end(), args.begin(), args.end());
    for (uint64_t word : contents.structure) in.structure.push_back(word);
    for (uint64_t word : inner.in.structure) in.structure.push_back(word);
  }

  Tensors trace(const Tensors& params) override { return impl.traced(inner, params); }
  std::shared_ptr<const void> kept() override { return inner.kept(); }
  void finish(Tensors&& results, const void* kept) override {
    random::set_state(results[0]);
    impl.assign(results.begin() + 1);
    results.erase(results.begin(), results.begin() + static_cast<ptrdiff_t>(donated));
    inner.finish(std::move(results), kept);
  }
  void visit_arguments(tree::Visitor& visitor) override { inner.visit_arguments(visitor); }
  std::string name(size_t tensor) override {
    if (tensor == 0) return "the random state";
    return tensor < donated ? format("state {}", tensor - 1) : inner.name(tensor - donated);
  }
  std::string setting_name(size_t word) override {
    size_t of_state = in.structure.size() - inner.in.structure.size();
    return word < of_state ? "a setting of the state" : inner.setting_name(word - of_state);
  }
};

}  // namespace

/// Runs `call` on state from `all`. What comes out is returned, and the state is as before.
Tensors StateCalls::Impl::traced(flat::CompiledCall& call, const Tensors& all) {
  auto run = [&] {
    random::set_state(all[0]);
    assign(all.begin() + 1);
    auto first = all.begin() + 1 + std::ranges::count(present, true);
    std::vector<uint64_t> before = Contents(state).structure;
    Tensors results = call.trace(Tensors(first, all.end()));
    Contents after(state);
    if (after.structure != before) throw StateChanged();
    Tensors out{random::state()};
    for (Tensor* t : after.tensors)
      if (*t) out.push_back(*t);
    out.insert(out.end(), results.begin(), results.end());
    return out;
  };
  return restored(run, [back = keep(), key = random::state()]() mutable {
    back();
    random::set_state(key);
  });
}

StateCalls::StateCalls(Visit state, std::function<std::function<void()>()> keep,
                       CompileSettings settings)
    : impl_(new Impl{std::move(state), std::move(keep), flat::CompiledFunction(settings)}) {}

void StateCalls::operator()(flat::CompiledCall& call) const {
  StateCall with_state(*impl_, call);
  for (Tensor* slot : impl_->slots()) *slot = {};  // a donated buffer has no other holder
  try {
    impl_->compiled(with_state);
  } catch (const StateChanged&) {
    impl_->assign(with_state.in.tensors.begin() + 1);
    Tensors results = call.trace(call.in.tensors);
    call.finish(std::move(results), call.kept().get());
  } catch (...) {
    impl_->assign(with_state.in.tensors.begin() + 1);
    throw;
  }
}

/// What `use` makes of a call that does not run.
template <class F>
static std::string inspected(std::string_view name, const F& use) {
  try {
    return use();
  } catch (const StateChanged&) {
    fail(Hint{"call it once before"}, "{}: the function makes new state, and is not compiled",
         name);
  }
}

std::string StateCalls::show(std::string_view stage, flat::CompiledCall& call) const {
  StateCall with_state(*impl_, call);
  return inspected("show", [&] { return impl_->compiled.show(stage, with_state); });
}

std::string StateCalls::explain(flat::CompiledCall& call) const {
  StateCall with_state(*impl_, call);
  return inspected("explain", [&] { return impl_->compiled.explain(with_state); });
}

CallStats StateCalls::stats() const { return impl_->compiled.stats(); }

}  // namespace tn::nn
