// A module keeps no tensor of a trace: those that the function of a shard_map assigns are taken out
// after it has run, leave as further results, and are assigned again.
#include "nn/module_state.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "ir/carried_state.h"
#include "ir/node.h"
#include "tenon/nn/visit.h"

namespace tn::nn {

namespace {

bool is_same(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.node() == b.node() && a.index() == b.index();
}

bool exists(const ModuleHome& home) {
  const ModuleHome* at = &home;
  while (at->next) at = at->next.get();
  return at->module != nullptr;
}

class Noted;
thread_local Noted* noting = nullptr;

class Noted final : public CarriedState {
 public:
  Noted() : outer_(std::exchange(noting, this)) {}
  ~Noted() override {
    if (is_noting_) restore(), noting = outer_;
  }

  void add(const SharedPtr<ModuleHome>& home, Visit module) {
    for (const Module& known : modules_)
      if (known.home.get() == home.get()) return;
    Module made{home, std::move(module), {}, {}};
    each(made, [&](size_t, const Slot& slot) {
      made.before.push_back(slot.tensor), made.places.push_back(&slot.tensor);
    });
    modules_.push_back(std::move(made));
  }
  bool has(const Tensor* held) const {
    return std::ranges::any_of(modules_,
                               [&](const Module& m) { return std::ranges::count(m.places, held); });
  }

  Tensors take(const Tensors& params) override {
    Tensors values;
    for (Module& module : modules_) {
      if (!exists(*module.home) || holds(module, params)) continue;
      each(module, [&](size_t i, const Slot& slot) {
        const Tensor& now = slot.tensor;
        bool is_known = i < module.before.size() && !is_same(now, module.before[i]);
        if (!is_known || !now.defined() || !now.node()->traced) return;
        taken_.push_back({&module, i, slot.path.dotted()});
        values.push_back(now);
        slot.tensor = module.before[i];  // so that a module around it does not take it again
      });
    }
    is_noting_ = false, noting = outer_;
    return values;
  }
  std::string name(size_t i) const override { return format("{} of a module", taken_[i].name); }
  void assign(std::span<const Tensor> values) override {
    for (size_t k = 0; k < taken_.size(); ++k) {
      if (!exists(*taken_[k].module->home)) continue;
      each(*taken_[k].module, [&](size_t i, const Slot& slot) {
        if (i == taken_[k].place) slot.tensor = values[k];
      });
    }
  }

 private:
  struct Module {
    SharedPtr<ModuleHome> home;
    Visit visit;
    Tensors before;
    std::vector<const Tensor*> places;
  };
  struct Taken {
    Module* module;
    size_t place;
    std::string name;
  };

  /// Calls f for each tensor of a module, and its number.
  template <class F>
  static void each(const Module& module, F f) {
    struct Each final : Visitor {
      F& f;
      size_t number = 0;
      explicit Each(F& call) : f(call) {}
      void tensor(const Slot& slot) override { f(number++, slot); }
    } visitor(f);
    module.visit(visitor);
  }
  /// Whether the module is an argument of the function: a copy with tensors of the trace.
  static bool holds(const Module& module, const Tensors& params) {
    return std::ranges::any_of(params, [&](const Tensor& param) {
      return std::ranges::any_of(module.before, [&](const Tensor& t) { return is_same(t, param); });
    });
  }
  /// After an error.
  void restore() {
    for (const Module& module : modules_)
      if (exists(*module.home))
        each(module, [&](size_t i, const Slot& slot) {
          bool is_lost = slot.tensor.defined() && slot.tensor.node()->traced;
          if (is_lost && i < module.before.size()) slot.tensor = module.before[i];
        });
  }

  Noted* outer_;
  bool is_noting_ = true;
  std::vector<Module> modules_;
  std::vector<Taken> taken_;
};

[[maybe_unused]] const bool is_set = [] {
  watch_modules = []() -> std::unique_ptr<CarriedState> { return std::make_unique<Noted>(); };
  return true;
}();

}  // namespace

bool changes_are_noted() { return noting != nullptr; }
void note_changes(const SharedPtr<ModuleHome>& home, Visit module) {
  if (noting) noting->add(home, std::move(module));
}
bool is_carried_out(const Tensor* held) { return noting && noting->has(held); }

}  // namespace tn::nn
