#pragma once
// The arguments of one call of a compiled function: what selects the trace, and the tensors to run
// on.
#include <optional>

#include "trees.h"

namespace tn::python {

/// What must be equal for a trace to serve another call.
struct Signature {
  std::vector<uint64_t> words;   // structure, types of tensors, values of numbers
  std::vector<nb::object> rest;  // keywords and what else is not a tensor, compared with ==

  bool same_rest(const Signature& other) const;
};

/// Which arguments are constants as a whole, by position and by name.
struct StaticArguments {
  std::vector<size_t> positions;
  std::vector<nb::object> names;  // interned
  bool has(size_t position) const;
  bool has(PyObject* name) const;
};

class CallArguments {
 public:
  /// As Python's vectorcall gives them: `keywords` names the last ones, or is null.
  CallArguments(PyObject* const* args, size_t positional, PyObject* keywords,
                const StaticArguments& constants);

  /// A float or an int among the leaves: a part of the signature, or given to the trace.
  struct Number {
    size_t leaf, word;  // the word with its value
  };

  Signature signature;
  Tensors tensors;
  std::vector<Number> numbers;

  /// What the trace that takes the numbers in `given` (of `numbers`) runs on.
  Tensors with_numbers(const std::vector<size_t>& given) const;
  /// `f` of the same arguments with others in place of those.
  nb::object call(PyObject* f, const Tensors& others, const std::vector<size_t>& given) const;

 private:
  /// An argument: a tree, or (without a structure) a leaf.
  struct Part {
    size_t leaves = 1;
    std::optional<Structure> structure = {};
  };
  void add(PyObject* argument, bool constant);
  void add_leaf(size_t at);
  void add_object(nb::object object);
  void word(uint64_t w) { signature.words.push_back(w); }

  size_t positional_;
  nb::object keywords_;
  Leaves leaves_;           // of all arguments
  std::vector<size_t> at_;  // of each tensor among them
  std::vector<Part> parts_;
};

}  // namespace tn::python
