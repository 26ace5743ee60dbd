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
  auto derivatives_of = tn::value_and_grad(of_parameters, argnums, {"value_and_grad", name_of});
  Derivatives made =
      restored([&] { return derivatives_of(parameters); }, [&] { put(model, before); });
  return {std::move(made.values), named(made.derivatives)};
}

struct StateCalls::Impl {
  Visit state;
  std::function<std::function<void()>()> keep;
  CompileSettings settings;
  std::map<std::vector<uint64_t>, CompiledFunction> by_structure = {};
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

  /// The random key, the state, then the arguments.
  CompiledFunction& prepare(const Function& f, const Tensors& args, Tensors& all);
  Tensors traced(const Function& f, const Tensors& all);
  Tensors call(const Function& f, const Tensors& args);
};

CompiledFunction& StateCalls::Impl::prepare(const Function& f, const Tensors& args, Tensors& all) {
  Contents contents(state);
  present.clear();
  all = {random::state()};
  for (Tensor* slot : contents.tensors) {
    present.push_back(bool(*slot));
    if (*slot) all.push_back(*slot);
  }
  CompileSettings with_state = settings;
  with_state.donated = static_cast<int>(all.size());
  all.insert(all.end(), args.begin(), args.end());
  contents.structure.push_back(args.size());
  auto found = by_structure.find(contents.structure);
  if (found != by_structure.end()) return found->second;
  auto function = [this, f](const Tensors& given) { return traced(f, given); };
  return by_structure.try_emplace(contents.structure, function, with_state).first->second;
}

/// Runs `f` on state from `all`. What comes out is returned, and the state is as before.
Tensors StateCalls::Impl::traced(const Function& f, const Tensors& all) {
  auto run = [&] {
    random::set_state(all[0]);
    assign(all.begin() + 1);
    auto first = all.begin() + 1 + std::ranges::count(present, true);
    std::vector<uint64_t> before = Contents(state).structure;
    Tensors results = f(Tensors(first, all.end()));
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

Tensors StateCalls::Impl::call(const Function& f, const Tensors& args) {
  Tensors all, results;
  CompiledFunction& compiled = prepare(f, args, all);
  for (Tensor* slot : slots()) *slot = {};  // a donated buffer has no other holder
  try {
    results = compiled(std::move(all));
  } catch (const StateChanged&) {
    assign(all.begin() + 1);
    return f(args);
  } catch (...) {
    assign(all.begin() + 1);
    throw;
  }
  random::set_state(results[0]);
  assign(results.begin() + 1);
  results.erase(results.begin(), results.begin() + 1 + std::ranges::count(present, true));
  return results;
}

StateCalls::StateCalls(Visit state, std::function<std::function<void()>()> keep,
                       CompileSettings settings)
    : impl_(new Impl{std::move(state), std::move(keep), std::move(settings)}) {}

Tensors StateCalls::operator()(const Function& f, const Tensors& args) const {
  return impl_->call(f, args);
}

std::string StateCalls::show(std::string_view stage, const Function& f, const Tensors& args) const {
  Tensors all;
  CompiledFunction& compiled = impl_->prepare(f, args, all);
  try {
    return compiled.show(stage, all);
  } catch (const StateChanged&) {
    fail(Hint{"call it once before"}, "show: the function makes new state, and is not compiled");
  }
}

CallStats StateCalls::stats() const {
  CallStats sum;
  for (const auto& [structure, compiled] : impl_->by_structure) {
    CallStats one = compiled.stats();
    sum.traces += one.traces, sum.hits += one.hits, sum.replans += one.replans;
    sum.graph_compiles += one.graph_compiles, sum.kernel_compiles += one.kernel_compiles;
    for (const auto& [reason, count] : one.traces_by_reason) sum.traces_by_reason[reason] += count;
  }
  return sum;
}

}  // namespace tn::nn
