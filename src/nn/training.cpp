#include "tenon/nn/training.h"

#include "base/error.h"
#include "ir/place.h"
#include "ir/sizes.h"
#include "ir/watch.h"
#include "tenon/executable.h"
#include "tenon/random.h"
#include "transforms/backward.h"

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
      } catch (const std::exception&) {  // the error of `f` is reported
      }
      throw;
    }
  };
  auto made = run();
  restore();
  return made;
}

/// Properties of the tensor in a place, as bits.
enum Held : uint8_t { kPresent = 1, kTrainable = 2, kVariable = 4, kGradient = 8 };

/// A place of some state.
struct StateSlot {
  Tensor* tensor;
  uint8_t held;

  Tensor gradient() const { return held & kGradient ? grad(*tensor) : Tensor(); }
  /// Puts the next of `values` there, with the gradient behind it. A `same` tensor is that which
  /// the values were computed from: what leads to a variable goes on doing so.
  template <class It>
  void fill(It& values, const Tensor& same = {}) const {
    if (!(held & kPresent)) return;
    Tensor value = *values++, left = held & kGradient ? *values++ : Tensor();
    *tensor = held & kVariable ? as_variable(same.defined() ? same : value, left) : value;
  }
};

/// The places of some state, including absent tensors, and all settings that the computation
/// depends on.
struct Contents : typed::Settings {
  std::vector<StateSlot> places;

  explicit Contents(const Visit& state) { state(*this); }
  void tensor(const Slot& slot) override {
    uint8_t held = slot.tensor.defined() ? kPresent : 0;
    if (slot.is_trainable()) held |= kTrainable;
    if (slot.tensor.defined() && is_variable(*slot.tensor.node())) held |= kVariable;
    if (held & kVariable && grad(slot.tensor).defined()) held |= kGradient;
    places.push_back({&slot.tensor, held});
    words.push_back(held);
  }
  /// The tensors that there are, each with its gradient behind it.
  Tensors values() const {
    Tensors all;
    for (const StateSlot& place : places) {
      if (place.held & kPresent) all.push_back(*place.tensor);
      if (Tensor gradient = place.gradient(); gradient.defined())
        all.push_back(std::move(gradient));
    }
    return all;
  }
  /// Moves the tensors out: a donated buffer must have no other reference.
  void clear() const {
    for (const StateSlot& place : places) {
      if (place.held & kGradient) exchange_gradient(*place.tensor->node(), {});
      *place.tensor = {};
    }
  }
};

/// What the words of Contents are, and the names of its places: "state 0.weight".
struct StateNames final : tree::SettingList {
  std::vector<std::string> places;

  explicit StateNames(const std::vector<StatePart>& parts) {
    for (size_t i = 0; i < parts.size(); ++i) {
      size_t words = all.size(), tensors = places.size();
      parts[i].visit(*this);
      for (; words < all.size(); ++words) name_in(i, all[words].path);
      for (; tensors < places.size(); ++tensors) name_in(i, places[tensors]);
    }
  }
  void tensor(const Slot& slot) override {
    places.push_back(slot.path.accessed());
    all.push_back({.path = places.back(), .told = told});
  }

 private:
  static void name_in(size_t part, std::string& path) {
    path = format("state {}{}{}", part, path.empty() || path[0] == '[' ? "" : ".", path);
  }
  static std::string told(uint64_t held) {
    if (!(held & kPresent)) return "absent";
    std::string text = held & kTrainable ? "trained" : "fixed";
    return text + (held & kGradient ? ", with a gradient" : held & kVariable ? ", a variable" : "");
  }
};

/// There is other state after a call than before.
struct StateChanged {};

/// Everything in some state but its tensors, and these.
struct KeptPart : typed::Settings {
  Tensors tensors;

  explicit KeptPart(const Visit& state) { state(*this); }
  void module(const Path& path, ModuleBase& module, VisitModule* visit) override {
    Settings::module(path, module, visit);
    words.push_back(module.frozen.size());
    for (const std::string& field : module.frozen) text(path, field);
  }
  void tensor(const Slot& slot) override { tensors.push_back(slot.tensor); }
};

/// Puts the tensors back into their places. What a function made in addition, or set differently,
/// needs the copy: that replaces objects which the user may have references to.
class Restoring {
 public:
  explicit Restoring(const StatePart& part)
      : visit_(part.visit), before_(part.visit), put_copy_back_(part.keep()) {}
  void operator()() {
    KeptPart now(visit_);
    if (now.words != before_.words || now.tensors.size() != before_.tensors.size())
      put_copy_back_();
    Putting putting(before_.tensors);
    visit_(putting);
  }

 private:
  struct Putting : Visitor {  // null tensors too
    Tensors::const_iterator next;
    explicit Putting(const Tensors& tensors) : next(tensors.begin()) {}
    void tensor(const Slot& slot) override { slot.tensor = *next++; }
  };
  Visit visit_;
  KeptPart before_;
  Callback<void()> put_copy_back_;
};

/// The tensors of each model that have names in `wanted`, and shapes like the first of their names:
/// what vmap has cut is not what the whole model has.
std::vector<TensorMap> parameters_like(const std::vector<Visit>& models, const TensorMap& wanted) {
  std::vector<TensorMap> all;
  TensorMap first;
  for (const Visit& model : models) {
    TensorMap& own = all.emplace_back();
    for (const auto& [name, tensor] : tensors_in(model)) {
      if (!wanted.contains(name)) continue;
      const Tensor& like = first.emplace(name, tensor).first->second;
      if (identical(like.shape(), tensor.shape())) own.emplace(name, tensor);
    }
  }
  return all;
}

}  // namespace

ValueAndGrad<Tensors> value_and_grad_in(const ModuleBase& model, const Visit& visit,
                                        const Callback<Tensors()>& f, const Place& at) {
  LocScope scope(at);
  TensorMap trained = trainable_in(visit);
  if (trained.empty()) fail("value_and_grad: the model has no trainable parameters");
  std::vector<Visit> models = tree::stand_ins_of(model);
  models.push_back(visit);
  std::vector<TensorMap> before = parameters_like(models, trained);
  std::vector<std::string> names;
  std::vector<int> argnums;
  Tensors parameters;
  for (const auto& [name, parameter] : trained) names.push_back(name);
  for (const TensorMap& own : before)
    for (const std::string& name : names) {
      argnums.push_back(static_cast<int>(parameters.size()));
      auto found = std::ranges::find_if(before, [&](auto& map) { return map.contains(name); });
      parameters.push_back((own.contains(name) ? own : *found).at(name));
    }
  auto of_parameters = [&](const Tensors& given) {
    auto next = given.begin();
    for (size_t i = 0; i < models.size(); ++i) {
      TensorMap own;
      for (const std::string& name : names) {
        if (before[i].contains(name)) own.emplace(name, *next);
        ++next;
      }
      put(models[i], own);
    }
    return f();
  };
  auto restore = [&] {
    for (size_t i = 0; i < models.size(); ++i) put(models[i], before[i]);
  };
  auto name_of = [&](size_t i) { return names[i % names.size()]; };
  auto derivatives_of =
      flat::value_and_grad(of_parameters, argnums, {"value_and_grad", name_of}, models.size());
  flat::Derivatives made = restored([&] { return derivatives_of(parameters); }, restore);
  TensorMap gradients;
  for (size_t i = 0; i < names.size(); ++i) gradients.emplace(names[i], made.derivatives[i]);
  return {std::move(made.values), std::move(gradients)};
}

struct StateCalls::Impl {
  std::vector<StatePart> parts;
  Visit state;  // of all parts
  flat::CompiledFunction compiled;
  std::vector<uint8_t> held = {};  // of the current call, by place
  std::vector<bool> same = {};     // of the last trace: state that it returns as it was given

  /// Values in the places of the state, from an iterator.
  template <class It>
  void assign(It values) const {
    each_place([&](const StateSlot& place) { place.fill(values); });
  }
  template <class F>
  void each_place(F f) const {
    std::vector<StateSlot> places = Contents(state).places;
    for (size_t i = 0; i < places.size(); ++i) f(StateSlot{places[i].tensor, held[i]});
  }
  Tensors traced(flat::CompiledCall& call, const Tensors& all);
};

namespace {

/// Data that a trace stores for later calls.
struct KeptState {
  std::vector<bool> same;
  SharedPtr<const void> inner;
};

/// A call with the random key and the state in front of its arguments.
template <class Impl>
struct StateCall final : flat::CompiledCall {
  Impl& impl;
  flat::CompiledCall& inner;

  StateCall(Impl& owner, flat::CompiledCall& call)
      : CompiledCall(call.place), impl(owner), inner(call) {
    LocScope scope(call.place);
    Contents contents(impl.state);
    impl.held.clear();
    for (const StateSlot& place : contents.places) impl.held.push_back(place.held);
    in.tensors = contents.values();
    in.tensors.insert(in.tensors.begin(), random::state());
    donated = in.tensors.size();
    const Tensors& args = inner.in.tensors;
    in.tensors.insert(in.tensors.end(), args.begin(), args.end());
    for (uint64_t word : contents.words) in.structure.push_back(word);
    for (uint64_t word : inner.in.structure) in.structure.push_back(word);
  }

  Tensors trace(const Tensors& params) override { return impl.traced(inner, params); }
  SharedPtr<const void> kept() override {
    return SharedPtr<const KeptState>::make(impl.same, inner.kept());
  }
  void finish(Tensors&& results, const void* kept) override {
    const auto& of_trace = *static_cast<const KeptState*>(kept);
    random::set_state(results[0]);
    auto values = results.begin() + 1;
    impl.each_place([&](const StateSlot& place) {
      auto i = static_cast<size_t>(values - results.begin());
      place.fill(values, of_trace.same[i] ? in.tensors[i] : Tensor());
    });
    results.erase(results.begin(), results.begin() + static_cast<ptrdiff_t>(donated));
    inner.finish(std::move(results), of_trace.inner.get());
  }
  void visit_arguments(tree::Visitor& visitor) override { inner.visit_arguments(visitor); }
  std::string name(size_t tensor) override {
    if (tensor == 0) return "the random state";
    if (tensor >= donated) return inner.name(tensor - donated);
    std::vector<std::string> names;  // of values: a gradient is behind its tensor
    StateNames of(impl.parts);
    for (size_t i = 0; i < of.places.size(); ++i) {
      if (impl.held[i] & kPresent) names.push_back(of.places[i]);
      if (impl.held[i] & kGradient) names.push_back(format("the gradient of {}", of.places[i]));
    }
    return names[tensor - 1];
  }
  std::vector<tree::Setting> settings() override {
    std::vector<tree::Setting> all = std::move(StateNames(impl.parts).all);
    std::vector<tree::Setting> of_arguments = inner.settings();
    all.insert(all.end(), of_arguments.begin(), of_arguments.end());
    return all;
  }
};

bool is_same(const Tensor& a, const Tensor& b) {
  return a.node() == b.node() && a.index() == b.index();
}

}  // namespace

/// Runs `call` on state from `all`. Returns the new state; `all` does not change.
Tensors StateCalls::Impl::traced(flat::CompiledCall& call, const Tensors& all) {
  auto run = [&] {
    random::set_state(all[0]);
    assign(all.begin() + 1);
    std::vector<uint64_t> before = Contents(state).words;
    size_t first = 1 + Contents(state).values().size();
    Tensors results = call.trace({all.begin() + static_cast<ptrdiff_t>(first), all.end()});
    Contents after(state);
    if (after.words != before) throw StateChanged();
    Tensors out = after.values();
    out.insert(out.begin(), random::state());
    same.assign(1, false);
    for (size_t i = 1; i < first; ++i) same.push_back(is_same(out[i], all[i]));
    after.clear();
    out.insert(out.end(), results.begin(), results.end());
    return out;
  };
  std::vector<Restoring> back(parts.begin(), parts.end());
  return restored(run, [&back, key = random::state()]() mutable {
    for (Restoring& part : back) part();
    random::set_state(key);
  });
}

StateCalls::StateCalls(std::vector<StatePart> state, const CompileSettings& settings,
                       const std::source_location& at)
    : impl_(new Impl{state, {}, flat::CompiledFunction(settings, at)}) {
  impl_->state = [parts = std::move(state)](Visitor& v) {
    for (const StatePart& part : parts) part.visit(v);
  };
}

void StateCalls::operator()(flat::CompiledCall& call) const {
  StateCall with_state(*impl_, call);
  Contents(impl_->state).clear();
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

/// The result of `use` for a call that is not executed.
template <class F>
static std::string inspected(std::string_view name, const F& use) {
  try {
    return use();
  } catch (const StateChanged&) {
    fail(Hint{"call the function once first"},
         "{}: the function creates state and has not been compiled yet", name);
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
std::vector<std::string> StateCalls::why_recompiled() const {
  return impl_->compiled.why_recompiled();
}

}  // namespace tn::nn
