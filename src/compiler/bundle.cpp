#include "compiler/bundle.h"

#include <algorithm>
#include <set>

namespace tn {
namespace {

class Bundler {
 public:
  explicit Bundler(Plan& plan)
      : plan_(plan), most_(static_cast<size_t>(costs_of(plan.target).most_bundled)) {}

  void run() {
    if (std::ranges::none_of(plan_.steps, is_simple)) return;
    std::vector<Step> steps = std::move(plan_.steps);
    plan_.steps.clear();
    for (Step& step : steps) {
      if (!can_join(step)) close();
      if (!is_simple(step)) {
        plan_.steps.push_back(std::move(step));
        continue;
      }
      for (size_t i = 0; i < step.buffers.size(); ++i)
        (is_written(step, i) ? written_ : read_).insert(step.buffers[i]);
      open_.push_back(std::move(step));
    }
    close();
  }

 private:
  /// A compiled kernel of one phase; one that has no code yet counts as such.
  static bool is_simple(const Step& step) {
    auto* kernel = std::get_if<KernelStep>(&step.what);
    return kernel && !kernel->program && !(kernel->code && !kernel->code->is_one_phase);
  }
  static bool is_written(const Step& step, size_t place) {
    return std::ranges::count(step.writes, static_cast<int32_t>(place)) > 0;
  }

  /// Whether `step` needs nothing of the open ones, and they nothing that it overwrites.
  bool can_join(const Step& step) const {
    if (!is_simple(step) || open_.size() >= most_) return false;
    for (size_t i = 0; i < step.buffers.size(); ++i) {
      int32_t b = step.buffers[i];
      if (written_.count(b) || (is_written(step, i) && read_.count(b))) return false;
    }
    return true;
  }

  void close() {
    if (open_.size() == 1) plan_.steps.push_back(std::move(open_[0]));
    if (open_.size() > 1) plan_.steps.push_back(joined());
    open_.clear(), written_.clear(), read_.clear();
  }

  Step joined() {
    Step out{BundleStep{}};
    for (const Step& step : open_) {
      auto first = static_cast<int32_t>(out.buffers.size());
      out.buffers.insert(out.buffers.end(), step.buffers.begin(), step.buffers.end());
      out.scalars.insert(out.scalars.end(), step.scalars.begin(), step.scalars.end());
      for (int32_t place : step.writes) out.writes.push_back(first + place);
      for (Step::Pair pair : step.in_place)
        out.in_place.push_back({first + pair.input, first + pair.output});
    }
    // A result may take the place of an operand that no other kernel of the bundle reads.
    std::erase_if(out.in_place, [&](Step::Pair pair) {
      return std::ranges::count(out.buffers, out.buffers[static_cast<size_t>(pair.input)]) > 1;
    });
    out.name = open_[0].name + " and others";
    out.loc = open_[0].loc;
    std::get<BundleStep>(out.what).parts = std::move(open_);
    return out;
  }

  Plan& plan_;
  size_t most_;  // parts of a bundle
  std::vector<Step> open_;
  std::set<int32_t> written_, read_;
};

}  // namespace

void bundle_steps(Plan& plan) { Bundler(plan).run(); }

}  // namespace tn
