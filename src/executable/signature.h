#pragma once
// Signature: what an executable is called with and returns, and the checks of a call.
#include "base/bytes.h"
#include "ir/sizes.h"
#include "ir/type.h"

namespace tn {

/// One run-time input. Sizes that vary are symbols of the type; those of equal names are one.
struct InputSignature {
  struct Range {
    int64_t min, opt, max;
    std::string name;  // given by the user; "" otherwise
  };
  std::string name;          // "x", "data.b.list[1]"
  TypeRef type = nullptr;    // null: a size by itself
  std::vector<Range> sizes;  // by axis; of a size by itself, one
  std::string place;         // "train.py:14": where it was declared; may be ""
};

/// What must hold of the sizes of a call, and who says so.
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
};

void write(ByteWriter& out, const Signature& signature);
Signature read_signature(ByteReader& in);

}  // namespace tn
