#pragma once
// Inference: the shape and element type of every connection of a flat model, from the declarations
// of blocks and users and from each other.
#include <set>

#include "functions/traced.h"
#include "ir/type.h"
#include "model/flat.h"

namespace tn::model {

/// Options of compiling a model.
struct InferenceRequest {
  std::map<std::string, std::string> shapes = {};  // by name; as of terminals
  std::map<std::string, DType> types = {};
  DType precision = DType::f32;  // of floating parameters, states and data without a declared type
  bool static_shapes = false;    // sizes that nothing determines are refused
  bool training = true;
};

/// A flat model with the types of all connections. Sizes of data that nothing determines are
/// symbols; `sizes` are values to try them with.
struct Resolved {
  FlatModel flat;
  Indexed<TypeRef> types;  // by wire
  std::vector<Binding> sizes;
  bool training = true;

  std::vector<TypeRef> open_types() const;
  /// Of a block; null for absent ones.
  std::vector<TypeRef> operand_types(const FlatBlock& block) const;
};

Resolved infer(FlatModel flat, const InferenceRequest& request);

/// Runs a block: the outputs, then the new states. An error names the block; ops have its place.
Tensors compute(const FlatBlock& block, const Tensors& in, bool training, const Tensor& key);

/// What a block records for operands of these types; null ones are absent.
Traced traced(const FlatBlock& block, std::span<const TypeRef> in, bool training,
              std::span<const Binding> sizes);

/// Every connection with its shape, and with its element type.
std::string shapes_text(const Resolved& model);
std::string types_text(const Resolved& model);

}  // namespace tn::model
