#pragma once
// Layers as blocks: terminals, sizes and the function follow from the record of the layer.
#include "nn/layer_calls.h"
#include "tenon/model.h"

namespace tn::model {

/// The block of a layer; inferred sizes that are 0, or lists that are empty, are left to inference.
Block layer_block(const nn::LayerDef& def, const AttrBuffer& attrs);
/// The same, from pointers to the values of all attributes, in order.
Block layer_block(const nn::LayerDef& def, const void* const* fields);

}  // namespace tn::model
