#pragma once
// What follows from the record of a layer: its checks, its tensors, and its calls.
#include "nn/layerdef.h"

namespace tn::nn {

/// Whether `names`, words with spaces between, has the word.
bool has_word(std::string_view names, std::string_view word);
/// Whether an attribute only decides that tensors exist. A module has these in place of it.
bool is_presence(const LayerDef& def, std::string_view attribute);
/// Whether an attribute is a size: integers that a shape names, or one that divides a size.
bool is_size(const LayerDef& def, const Field& field);
/// Whether the attributes give the layer this tensor.
bool has_tensor(const LayerDef& def, const TensorDef& tensor, const void* attrs);

/// The field that holds the name given in place of the numbers of field `i`, such as "same" for
/// `padding`: a choice called `padding_by`, whose first value means that numbers are given. -1:
/// none.
int named_field(const FieldList& fields, size_t i);
/// The number of a choice. Fails for a name that it does not have.
uint8_t choice_of(const LayerDef& def, size_t field, std::string_view name);
/// What a shape is with these attributes; sizes that are 0 are unknown and keep their names.
Pattern pattern_of(const LayerDef& def, const void* attrs, std::string_view shape);
/// The same for an input or a result, whose channels may be last.
std::vector<Pattern> patterns_of(const LayerDef& def, const void* attrs, std::string_view shape);

/// Whether a size is left to inference: 0, or a list without any.
bool is_unknown(const Field& size);
/// Fails for a size that is not positive; of a list, all must be, and there is at least one.
void check_size(const Field& field, std::string_view layer);
/// Fails for attributes that no layer can have, and makes the others canonical. Sizes that are 0
/// are unknown if `may_infer`.
void prepare_attrs(const LayerDef& def, void* attrs, std::string_view layer,
                   bool may_infer = false);
/// Whether the value of field `i` is the one that the layer has if that is left out.
bool is_usual(const LayerDef& def, const void* attrs, size_t i);
/// First values of all tensors, null for those that the attributes leave out.
Tensors draw_tensors(const LayerDef& def, const void* attrs);
/// Checks the inputs and calls the function.
Tensor call_layer(const LayerDef& def, const FunctionDef& function, const void* attrs,
                  const LayerCall& call);

// For the classes (generated), which pass their members and the arguments of calls.

/// Draws the tensors of a new layer. `fields` are the attributes, in order; they become canonical.
void make_layer(const LayerDef& def, void* const* fields, std::span<Tensor* const> tensors);
/// Calls function `function`; null `fields` are those that only decide which tensors exist.
Tensor run_layer(const LayerDef& def, int function, const void* const* fields,
                 std::span<Tensor* const> tensors, std::span<const Operand* const> in,
                 bool training, bool is_constant);

}  // namespace tn::nn
