#include "tenon/tree.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "ir/place.h"
#include "tenon/compiled_call.h"
#include "tenon/control_flow.h"
#include "tenon/nn/visit.h"
#include "tenon/transforms.h"
#include "tenon/tree_functions.h"
#include "tenon/vmap.h"
#include "transforms/derivative.h"

namespace tn::tree {

std::string Path::dotted() const {
  std::string before = outer ? outer->dotted() : "";
  if (name.empty() && number < 0) return before;
  if (!before.empty()) before += '.';
  return before + (number < 0 ? std::string(name) : std::to_string(number));
}

std::string Path::accessed() const {
  std::string before = outer ? outer->accessed() : "";
  if (number >= 0) return format("{}[{}]", before, number);
  if (is_key) return format("{}[\"{}\"]", before, name);
  if (!before.empty() && !name.empty()) before += '.';
  return before + std::string(name);
}

bool Slot::is_trainable() const {
  return tensor.defined() && owner && !is_buffer && !owner->frozen.contains(field);
}

void Visitor::text(const Path& path, std::string_view text) {
  setting(path, text.size());
  for (; !text.empty(); text.remove_prefix(std::min<size_t>(8, text.size()))) {
    uint64_t word = 0;
    std::memcpy(&word, text.data(), std::min<size_t>(8, text.size()));
    setting(path, word);
  }
}

void Words::add_beyond(uint64_t word) {
  if (more_.empty()) more_.assign(inline_, inline_ + count_);
  more_.push_back(word);
}

Visitor::~Visitor() = default;

void SettingList::module(const Path& path, nn::ModuleBase&, VisitModule*) {
  setting({.outer = &path, .name = "training"}, 0);
}
void SettingList::tensor(const Slot& slot) {
  auto told = [](uint64_t word) {
    return std::string(word == 0 ? "absent" : word == 1 ? "frozen" : "trained");
  };
  if (slot.owner) all.push_back({.path = slot.path.accessed(), .told = told});
}
void SettingList::setting(const Path& path, uint64_t) { all.push_back({path.accessed()}); }
void SettingList::text(const Path& path, std::string_view) {
  all.push_back({path.accessed(), true});
}

Contents::Contents(std::string_view by) : by(by) {}
Contents::~Contents() = default;
void Contents::argument(size_t) { first.push_back(tensors.size()); }
void Contents::setting(const Path&, uint64_t bits) { structure.push_back(bits); }

void Contents::module(const Path&, nn::ModuleBase& module, VisitModule*) {
  structure.push_back(module.training);
}

void Contents::tensor(const Slot& slot) {
  if (slot.owner) {
    structure.push_back(slot.tensor.defined() ? 1 + slot.is_trainable() : 0);
    if (!slot.tensor.defined()) return;
    fixed.resize(tensors.size());
    fixed.push_back(!slot.is_trainable());
    tensors.push_back(slot.tensor);
    return;
  }
  if (!slot.tensor.defined() && !allows_null)
    fail("{}: {} is a null tensor", by, slot.path.accessed());
  if (takes_over)
    tensors.push_back(std::move(slot.tensor));
  else
    tensors.push_back(slot.tensor);
}

void Filling::tensor(const Slot& slot) {
  if (!slot.is_absent()) slot.tensor = std::move(*next++);
}

void Hollowing::tensor(const Slot& slot) {
  if (!slot.tensor.defined()) return;
  static const Tensor& present = *new Tensor(false);  // outlives every function
  slot.tensor = slot.owner ? present : Tensor();      // null in a module is absent
}

void Finding::tensor(const Slot& slot) {
  if (slot.is_absent()) return;
  if (number-- == 0) found = slot.path.accessed();
}

Tensors leaves_in(std::string_view by, const std::source_location& at,
                  const Callback<void(Visitor&)>& trees) {
  LocScope scope(at);
  Contents contents(by);
  trees(contents);
  return std::move(contents.tensors);
}

void fail_leaves(std::string_view by, size_t wanted, size_t given) {
  fail("{}: the tree has {} tensors, given {}", by, wanted, given);
}

namespace {

struct Paths final : Visitor {
  std::vector<std::string> all;
  void tensor(const Slot& slot) override {
    if (!slot.is_absent()) all.push_back(slot.path.accessed());
  }
};

uint64_t hash_of(const Path& path) {
  uint64_t outer = path.outer ? hash_of(*path.outer) : 0;
  outer = combine(outer, static_cast<uint64_t>(path.number));
  return hash_text(path.name, combine(outer, path.is_key));
}

/// Tells trees of other paths apart without making their texts.
struct PathHashes final : Visitor {
  std::vector<uint64_t> all;
  void tensor(const Slot& slot) override {
    if (!slot.is_absent()) all.push_back(hash_of(slot.path));
  }
};

std::vector<uint64_t> path_hashes(const Callback<void(Visitor&)>& tree) {
  PathHashes hashes;
  tree(hashes);
  return std::move(hashes.all);
}

}  // namespace

std::vector<std::string> paths_in(const Callback<void(Visitor&)>& tree) {
  Paths paths;
  tree(paths);
  return std::move(paths.all);
}

void check_like(std::string_view by, std::string_view what, const Callback<void(Visitor&)>& wanted,
                const Callback<void(Visitor&)>& given) {
  if (path_hashes(wanted) == path_hashes(given)) return;
  std::vector<std::string> a = paths_in(wanted), b = paths_in(given);
  auto [at, other] = std::ranges::mismatch(a, b);
  if (at == a.end() && other == b.end()) return;
  auto named = [](const auto& list, auto place) {
    return place == list.end() ? std::string("nothing") : *place;
  };
  fail("{}: {} has another structure: {} in the place of {}", by, what, named(b, other),
       named(a, at));
}

void fill(std::string_view by, Tensors leaves, const Callback<void(Visitor&)>& tree) {
  size_t places = path_hashes(tree).size();
  if (places != leaves.size()) fail_leaves(by, places, leaves.size());
  Filling filling(leaves.data());
  tree(filling);
}

}  // namespace tn::tree

namespace tn {

flat::Place::Place(const std::source_location& at) : outer_(current_loc.bits) {
  if (!outer_) current_loc = Loc::of(at);
}
flat::Place::~Place() { current_loc.bits = outer_; }

typed::UserCode::UserCode() : outer_(std::exchange(current_loc, {}).bits) {}
typed::UserCode::~UserCode() { current_loc.bits = outer_; }

std::string_view tree::argument_name(size_t i) {
  constexpr std::string_view kNames[] = {"argument 0", "argument 1", "argument 2", "argument 3",
                                         "argument 4", "argument 5", "argument 6", "argument 7",
                                         "argument 8", "argument 9"};
  return i < std::size(kNames) ? kNames[i] : "a further argument";
}

Tensors typed::AnyRun::operator()(const Tensors& given) {
  Tensors tensors = given;
  tree::Filling filling(tensors.data());
  visit_arguments(filling);
  tree::ModuleList copies;
  visit_arguments(copies);
  {
    tree::StandIns stand_ins(modules_, copies);
    UserCode own;
    call();
  }
  tree::Contents made(in.by);
  visit_result(made);
  return std::move(made.tensors);
}

Function typed::AnyRun::function() {
  return [this](const Tensors& given) { return (*this)(given); };
}

flat::Names typed::AnyRun::names() {
  return {in.by,
          [this](size_t i) {
            tree::Finding finding(i);
            visit_arguments(finding);
            return finding.found;
          },
          [this](size_t i) {
            tree::Finding finding(i);
            visit_result(finding);
            return finding.found == "result" ? "the result" : finding.found;
          }};
}

flat::Derivatives typed::AnyRun::value_and_grad(const std::vector<int>& numbers) {
  return flat::value_and_grad(function(), numbers, names())(in.tensors);
}

std::vector<int> typed::trained_in(const tree::Contents& in,
                                   std::initializer_list<size_t> arguments) {
  std::vector<int> numbers;
  for (size_t argument : arguments)
    for (size_t i = in.first[argument]; i < in.first[argument + 1]; ++i)
      if (!in.is_fixed(i)) numbers.push_back(static_cast<int>(i));
  return numbers;
}

Tensors typed::placed(size_t count, const std::vector<int>& numbers, Tensor* derivatives) {
  Tensors all(count);
  for (int i : numbers) all[static_cast<size_t>(i)] = std::move(*derivatives++);
  return all;
}

void typed::AnyRun::forget_tensors() {
  tree::Hollowing hollowing;
  visit_arguments(hollowing);
  visit_result(hollowing);
  in.tensors.clear();
}

void typed::AnyRun::fill_result(Tensors& tensors) {
  tree::Filling filling(tensors.data());
  visit_result(filling);
}

std::vector<int> typed::differentiable(const Tensors& tensors) {
  std::vector<int> numbers;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (is_differentiable(tensors[i].dtype())) numbers.push_back(static_cast<int>(i));
  return numbers;
}

flat::BatchAxes typed::axes_by_tensor(const BatchAxes& axes, const std::vector<size_t>& counts,
                                      std::string_view what) {
  const flat::BatchAxes& list = axes.list;
  if (list.empty()) return {};
  if (!axes.is_for_all && list.size() != counts.size())
    fail("vmap: {} {}_axes for {} {}s", list.size(), what == "result" ? "out" : "in", counts.size(),
         what);
  flat::BatchAxes by_tensor;
  for (size_t i = 0; i < counts.size(); ++i)
    by_tensor.insert(by_tensor.end(), counts[i], list[axes.is_for_all ? 0 : i]);
  return by_tensor;
}

void typed::fail_structure(std::string_view by, std::string_view what) {
  fail(Hint{"numbers are constants: make what changes a tensor"}, "{}: {}", by, what);
}

}  // namespace tn
