#pragma once
// Signature: the inputs and outputs of an executable, and the checks of a call.
#include "base/bytes.h"
#include "ir/sizes.h"
#include "ir/type.h"

namespace tn {

/// One run-time input. Sizes that vary are symbols of the type; those of equal names are one.
struct InputSignature {
  struct Range {
    int64_t min, opt, max;
    std::string name;  // given by the user; "" otherwise
    bool is_open() const { return min != max; }
  };
  std::string name;          // "x", "data.b.list[1]"
  TypeRef type = nullptr;    // null: a size by itself
  Dim size = {};             // then: which
  std::vector<Range> sizes;  // by axis; of a size by itself, one
  std::string place;         // "train.py:14": where it was declared; may be ""

  /// The size along an axis.
  Dim dim(size_t axis) const { return type ? type->shape[static_cast<int>(axis)] : size; }
  /// What users call it: "x.shape[0]"; of a size by itself, its name.
  std::string path(size_t axis) const;
};

/// A condition on the sizes of a call, and the op that requires it.
struct SizeDemand {
  SizeGuard guard;    // its Loc is not used
  std::string place;  // "add at model.py:88"
};

struct Signature {
  std::string function;  // its name, for messages
  std::vector<InputSignature> inputs;
  std::vector<TypeRef> outputs;
  std::vector<std::string> output_names;
  std::vector<Binding> opt;  // the symbols, in order, at their `opt`
  std::vector<SizeDemand> demands;
  std::string surface;  // what the language around it keeps: the tree of arguments and results

  /// Fails when the types, in the order of the tensor inputs, and the sizes do not fit: the message
  /// names the argument, the dimension, the bounds and where they were declared. Otherwise gives
  /// the values of the symbols.
  std::vector<Binding> check(std::span<const TypeRef> types, std::span<const int64_t> sizes) const;

  /// The symbols with what `value` gives for the range of each.
  std::vector<Binding> at(int64_t InputSignature::Range::* value) const;
  /// Sizes all over the ranges that keep the demands, `opt` first.
  std::vector<std::vector<Binding>> samples() const;
  /// A guard in words of the caller, "x.shape[0] >= 5", and "x.shape[0] = 3" for its symbols.
  std::string text_of(const SizeGuard& guard) const;
  std::string values_text(const SizeGuard& guard, std::span<const Binding> sizes) const;
};

void write(ByteWriter& out, const Signature& signature);
Signature read_signature(ByteReader& in);

}  // namespace tn
