#include "cli/arguments.h"

#include <charconv>
#include <optional>

#include "base/error.h"
#include "cli/input_text.h"
#include "cli/output.h"
#include "files/npy.h"
#include "ir/dtype.h"
#include "tenon/random.h"

namespace tn {
namespace {

constexpr const char* kForms = "write --input name=file.npy, or name=8 for a size";

class Maker {
 public:
  Maker(const std::vector<InputInfo>& inputs, const ArgumentOptions& options, ChosenSizes chosen)
      : inputs_(inputs), options_(options), sizes_(std::move(chosen)) {
    check_chosen();
    read_given();
    for (const InputInfo& input : inputs_)
      for (size_t axis = 0; axis < input.shape.size(); ++axis) note_size(input, axis);
  }

  Arguments make() {
    Arguments made;
    Tensor key = random::key(static_cast<int64_t>(options_.seed));
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const InputInfo& input = inputs_[i];
      if (input.is_size)
        made.sizes.push_back(number(input));
      else if (auto given = tensors_.find(input.name); given != tensors_.end())
        made.tensors.push_back(given->second);
      else
        made.tensors.push_back(drawn(input, random::fold_in(key, static_cast<int64_t>(i))));
    }
    eval(made.tensors);
    return made;
  }

 private:
  static std::string place_of(const InputInfo& input, size_t axis) {
    return input.is_size ? input.name : format("{}.{}", input.name, axis);
  }

  void check_chosen() const {
    std::vector<std::string> known;
    for (const InputInfo& input : inputs_)
      for (size_t axis = 0; axis < input.shape.size(); ++axis) {
        known.push_back(place_of(input, axis));
        if (!input.shape[axis].name.empty()) known.push_back(input.shape[axis].name);
      }
    for (const auto& [name, value] : sizes_)
      if (std::ranges::find(known, name) == known.end())
        fail("--size {}: there is no such size: there are {}", name, join(known, ", "));
  }

  const InputInfo& input_named(std::string_view name) const {
    std::vector<std::string> known;
    for (const InputInfo& input : inputs_) {
      if (input.name == name) return input;
      known.push_back(input.name);
    }
    fail("--input {}: there is no such input: there {} {}", name, known.size() == 1 ? "is" : "are",
         join(known, ", "));
  }

  void read_given() {
    for (const std::string& text : options_.inputs) {
      size_t equals = text.find('=');
      if (equals == text.npos) fail(Hint{kForms}, "--input {}: expected NAME=VALUE", text);
      std::string name = text.substr(0, equals), value = text.substr(equals + 1);
      const InputInfo& input = input_named(name);
      if (sizes_.count(name) + tensors_.count(name)) fail("--input {}: it is given twice", name);
      if (input.is_size) {
        sizes_[name] = whole(text, value);
        continue;
      }
      Tensor x = parse_npy(read_text(value), value);
      if (options_.cast) x = astype(x, input.dtype);
      if (x.dtype() != input.dtype)
        fail(Hint{"--cast converts it"}, "--input {}: expected {}, the file has {}", name,
             input.dtype, x.dtype());
      tensors_[name] = x;
    }
  }

  static int64_t whole(std::string_view of, std::string_view text) {
    int64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      fail("--input {}: not a whole number: {}", of, text);
    return value;
  }

  /// Sizes of one name are equal, wherever one of them was said.
  void note_size(const InputInfo& input, size_t axis) {
    const std::string& name = input.shape[axis].name;
    if (name.empty() || sizes_.count(name)) return;
    if (auto said = sizes_.find(place_of(input, axis)); said != sizes_.end())
      sizes_[name] = said->second;
    else if (auto given = tensors_.find(input.name); given != tensors_.end())
      if (static_cast<int>(axis) < given->second.rank())
        sizes_[name] = given->second.dim(static_cast<int>(axis));
  }

  int64_t size_of_axis(const InputInfo& input, size_t axis) const {
    for (const std::string& key : {place_of(input, axis), input.shape[axis].name})
      if (auto said = sizes_.find(key); said != sizes_.end()) return said->second;
    return input.shape[axis].opt;
  }

  void must_be_random(const InputInfo& input) const {
    if (!options_.random)
      fail(Hint{format("--input {}={}, or --random for random values", input.name,
                       input.is_size ? "8" : input.name + ".npy")},
           "no value for the input {}", to_text(input));
  }

  int64_t number(const InputInfo& input) const {
    bool said = sizes_.count(input.name) || sizes_.count(input.shape.at(0).name);
    if (!said) must_be_random(input);
    return size_of_axis(input, 0);
  }

  /// Whole numbers are 0 and 1, which are places in anything that is not empty.
  Tensor drawn(const InputInfo& input, const Tensor& key) const {
    must_be_random(input);
    Shape shape;
    for (size_t axis = 0; axis < input.shape.size(); ++axis)
      shape.push_back(size_of_axis(input, axis));
    if (is_inexact(input.dtype)) return astype(random_normal(key, 0, 1, shape), input.dtype);
    return astype(random_randint(key, 0, 2, shape), input.dtype);
  }

  const std::vector<InputInfo>& inputs_;
  const ArgumentOptions& options_;
  ChosenSizes sizes_;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace

void ArgumentOptions::add_to(CLI::App& command) {
  command.add_option("--input", inputs, "A value: x=x.npy for a tensor, n=8 for a size")
      ->allow_extra_args(false)
      ->type_name("NAME=FILE");
  command.add_flag("--random", random, "Random values for inputs that are not given");
  command.add_option("--seed", seed, "Of the random values (0)");
  command.add_flag("--cast", cast, "Convert elements to the type that is wanted");
}

Arguments make_arguments(const std::vector<InputInfo>& inputs, const ArgumentOptions& options,
                         const ChosenSizes& chosen) {
  return Maker(inputs, options, chosen).make();
}

}  // namespace tn
