#pragma once
// Functions derived from the record of a layer: checks, creation of its tensors, and calls.
#include "ir/place.h"
#include "nn/layerdef.h"
#include "tenon/nn/visit.h"

namespace tn::nn {

/// The words of a text with spaces between them.
std::vector<std::string_view> words_of(std::string_view text);
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
uint8_t choice_of(const LayerDef& def, size_t field, std::string_view name, const Place& at);
/// A shape pattern with these attributes substituted; unknown sizes (0) keep their names.
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
/// Whether field `i` has its default value.
bool is_usual(const LayerDef& def, const void* attrs, size_t i);
/// Initial values of all tensors; null for those that the attributes exclude.
Tensors draw_tensors(const LayerDef& def, const void* attrs);
/// The attributes of a layer inside a layer with these.
AttrBuffer child_attrs(const LayerDef& def, const void* attrs, const ChildDef& child);
/// Checks the inputs and calls the function.
Tensors call_layer(const LayerDef& def, const FunctionDef& function, const void* attrs,
                   const LayerCall& call);

// For the classes (generated), which pass their members and the arguments of calls.

/// Draws the tensors of a new layer. `fields` are the attributes, in order; they become canonical.
void make_layer(const LayerDef& def, void* const* fields, std::span<Tensor* const> tensors,
                const Place& at);
/// The call of a layer object. Null `fields` are those that only decide which tensors exist.
struct ObjectCall {
  int function = 0;
  const void* const* fields = nullptr;
  std::span<Tensor* const> tensors;
  Tensors in;
  bool training = false, is_constant = false;
  const void* const* options = nullptr;
  Callback<Tensor(int child, const Tensor& x)> call_child = {};
};
Tensors run_layer(const LayerDef& def, const ObjectCall& call);
/// An argument: its tensor, or a null one if it is left out.
Tensor given(const Operand& x);
/// Adds an argument of several tensors, null ones if it is left out.
void give(Tensors& in, const LayerDef& def, const InputDef& input, const Tensors& several);

}  // namespace tn::nn
