#pragma once
// The arguments of one call of a compiled function: what selects the trace, and the tensors to run
// on.
#include <optional>

#include "functions/retrace.h"
#include "trees/trees.h"

namespace tn::python {

/// Which arguments are constants as a whole, by position and by name.
struct StaticArguments {
  std::vector<size_t> positions;
  std::vector<nb::object> names;  // interned
  bool has(size_t position) const;
  bool has(PyObject* name) const;
  bool is_empty() const { return positions.empty() && names.empty(); }
};

/// Equal with equal classes, also inside tuples: 1, True and 1.0 differ, and so do 0.0 and -0.0.
bool same_object(PyObject* a, PyObject* b);

/// What a weak reference leads to, or null: it is dead, and no other object, None neither.
PyObject* referent(PyObject* weak);

/// Whether a float holds it: then it becomes the same whether it is known or given at run time.
bool is_exact_integer(PyObject* o);

/// Its repr, cut where it is long.
std::string short_repr(nb::handle o);

/// What a trace is found by. Everything must be equal, apart from sizes and numbers that the trace
/// leaves open.
struct CallKey {
  /// A float or an int among the leaves.
  struct Number {
    size_t leaf;
    bool real;
    uint64_t bits;      // NaN, -0.0 and infinities are distinct, like any other values
    bool open = false;  // in the key of a trace: it takes any value
  };
  /// An argument: a tree, or (without a structure) a leaf. The last are the state, and the
  /// gradients of its tensors.
  struct Part {
    size_t leaves = 1;
    std::optional<Structure> structure = {};
  };

  /// A leaf that is neither tensor nor number, or a static argument.
  struct Constant {
    size_t leaf;
    nb::object value;
    bool weak = false;  // in the key of a trace: a reference to what is compared by identity

    bool is(const Constant& now) const;
  };

  std::vector<uint64_t> words;  // structure, kinds of leaves
  std::vector<TypeRef> types;   // of tensors; in the key of a trace with symbols for open sizes
  std::vector<size_t> at;       // of each tensor among the leaves
  std::vector<uint8_t> kept;    // by tensor: what is computed from it is kept for backward()
  std::vector<Number> numbers;
  std::vector<Constant> constants;  // compared with ==
  std::vector<nb::object> data;     // what nodes of trees hold besides leaves; likewise
  nb::object keywords;              // names of the last arguments, or null
  size_t positional = 0;            // arguments before those
  std::vector<Part> parts;          // for readers

  /// Whether a call is one of this trace's, apart from sizes and the values of numbers.
  bool is_like(const CallKey& call) const;
  /// Whether the numbers of a call are those of this trace, which is like it.
  bool takes_numbers_of(const CallKey& call) const;
  /// Lets objects die that the trace is for: it serves no others.
  void hold_weakly();
  bool is_dead() const;
  /// The same number of arguments, with the same names.
  bool has_arguments_of(const CallKey& other) const;
  /// "params['w']". `names` are those of the first arguments, as far as known.
  using Names = std::vector<std::string>;
  std::string path(size_t leaf, const Names& names) const;
  /// Where `data[k]` belongs: "model.config"; and, where it is a tuple of attributes, their names.
  std::pair<std::string, nb::object> place_of_data(size_t k, const Names& names) const;
  /// Of the objects and the dataclasses in trees.
  nb::list tree_classes() const;
  /// What is other here than in `known`.
  std::vector<Difference> differences(const CallKey& known, const Names& names) const;
  void clear();

 private:
  std::string arguments_text() const;
  std::string name(size_t part, const Names& names) const;
  /// A leaf as readers see it: "float32[3]", "1.0".
  std::string text(size_t leaf) const;
};

class CallArguments {
 public:
  /// A call of `f` as Python's vectorcall gives it: `keywords` names the last ones, or is null.
  /// Nothing was read before, or it is cleared.
  void read(nb::handle f, PyObject* const* args, size_t positional, PyObject* keywords,
            const StaticArguments& constants);
  /// What the containers in `state` hold is given too, behind the arguments, and behind it the
  /// gradients of those tensors that require them.
  void read_state(PyObject* state);
  void clear();

  nb::handle function;
  CallKey key;
  Tensors tensors;
  std::vector<Binding> sizes;  // of the symbols of the trace that was found
  Tensors opened;              // attributes of objects that it takes, behind the numbers

  /// Appends the numbers in `given` (of `key.numbers`), which the trace takes behind the tensors.
  void append_numbers(const std::vector<size_t>& given, Tensors& to) const;
  void append_numbers(const std::vector<size_t>& given) { append_numbers(given, tensors); }
  /// The leaves with others in place of those.
  Leaves substituted(const Tensors& others, const std::vector<size_t>& given) const;
  /// The gradient of tensor k when the call began, or null, and its place among the tensors.
  Tensor gradient(size_t k) const;
  size_t place_of_gradient(size_t k) const;
  /// What the state is apart from its leaves, and where those begin.
  const Structure& state_structure() const { return *key.parts[key.parts.size() - 2].structure; }
  size_t first_of_state() const { return state_; }
  /// Puts the leaves of the state into its containers.
  void assign_state(PyObject* state, std::span<const nb::object> leaves) const;
  /// The function of arguments like these, with these leaves.
  nb::object call(std::span<const nb::object> leaves) const;

  /// The Python object of tensor k.
  PyObject* object(size_t k) const { return leaves_[key.at[k]].ptr(); }
  /// Which argument tensor k is a part of; the state comes after the arguments.
  size_t part(size_t k) const;
  bool is_argument(size_t k) const { return key.at[k] < state_; }
  bool is_state(size_t k) const { return !is_argument(k) && key.at[k] < gradients_; }

 private:
  void add(PyObject* argument, bool constant);
  void add_tree(PyObject* tree, Structure::Look look);
  void add_leaf(size_t at);
  void add_constant(size_t at, std::string_view what);
  void add_gradients();
  void word(uint64_t w) { key.words.push_back(w); }

  Leaves leaves_;                       // of all arguments
  Leaves modules_;                      // weak references
  size_t state_ = 0, gradients_ = 0;    // where those of the state begin, and of its gradients
  std::vector<size_t> have_gradients_;  // tensors, in the order of their gradients
};

}  // namespace tn::python
