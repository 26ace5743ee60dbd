#pragma once
// Recording: a resolved model as ops on tensors.
#include "model/infer.h"

namespace tn::model {

/// Whether evaluations take a random key: some block draws numbers.
bool draws(const Resolved& model);

/// The outputs, then the new values of `flat.states`, then, where the model draws, the key of the
/// next evaluation; from the values of `flat.open`, then a key. Types may differ from the resolved
/// ones in open sizes.
Tensors record(const Resolved& model, const Tensors& given);

/// The first values of parameters and states, by `flat.open`; null for data.
Tensors first_values(const Resolved& model, const Tensor& key);

}  // namespace tn::model
