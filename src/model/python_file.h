#pragma once
// A model as one Python file.
#include "model/model_functions.h"

namespace tn::model {

struct PythonFile {
  std::string text;  // functions `forward` and, unless for inference, `gradients`
  Values constants;  // what the functions read from a safetensors file, by its names there
};

/// For "numpy", "torch" or "jax". Functions take what is given, without what is `fixed`, in order;
/// `gradients` takes those of all outputs behind it. They return outputs, new states (in training),
/// gradients. Constants are read from `constants_file`, which lies beside the file.
PythonFile python_file(const Functions& functions, std::string_view target, const Values& fixed,
                       const std::string& constants_file);

}  // namespace tn::model
