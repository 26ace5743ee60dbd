#pragma once
// Walks over a tape: reverse mode, forward mode and batching. Null tensors are zeros.
#include "transforms/tape.h"

namespace tn {

/// Cotangents of the tape's inputs from those of its outputs.
Tensors sweep_back(const Tape& tape, std::span<const Tensor> inputs, const Tensors& cotangents);
/// Tangents of the tape's outputs from those of its inputs.
Tensors sweep_forward(const Tape& tape, const Tensors& tangents);

/// A value under vmap: with the batch as axis 0, or the same for every example.
struct Batched {
  Tensor value;
  bool batched = false;
};
/// The tape's outputs, with `inputs` in place of its own. Outputs that do not depend on them are
/// taken from `outputs`.
std::vector<Batched> sweep_batch(const Tape& tape, std::vector<Batched> inputs,
                                 std::span<const Tensor> outputs, Dim size);

}  // namespace tn
