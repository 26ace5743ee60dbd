#pragma once
// Layers as blocks: terminals, sizes and the function follow from the record of the layer.
#include "nn/layer_calls.h"
#include "tenon/model.h"

namespace tn::model {

/// The block of a layer; inferred sizes that are 0, or lists that are empty, are left to inference.
/// `options` are those of calls.
Block layer_block(const nn::LayerDef& def, const AttrBuffer& attrs, const AttrBuffer& options);
/// The same, from pointers to the values of all fields, in order.
Block layer_block(const nn::LayerDef& def, const void* const* fields, const void* const* options);

}  // namespace tn::model
