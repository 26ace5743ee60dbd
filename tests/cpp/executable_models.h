#pragma once
// Models that executables are tested with, and arguments for them.
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "plan/target.h"
#include "storage/tnx.h"
#include "tenon/tenon.h"

namespace tn {

struct Model {
  std::string name;
  Function f;
  std::vector<InputInfo> inputs;
  AheadSettings settings(int optimization_level = 3) const {
    return {.optimization_level = optimization_level, .name = name};
  }
  Executable compiled(int optimization_level = 3) const {
    return compile_ahead(f, inputs, settings(optimization_level));
  }
};

/// Small numbers that are all different from their neighbours.
Tensor ramp(const Shape& shape, float scale = 0.25f);

/// GEGLU, an MLP, an attention block, a convolution net, control flow, sorting and gathering.
std::vector<Model> models();

/// With open sizes at `size` of the way from min to max: the same for those of equal ranges.
Tensors arguments(const Model& model, double way);

/// The file without the sections that `drop` says true of.
std::string without(const std::string& file,
                    const std::function<bool(const tnx::SectionInfo&)>& drop);
/// The bytes of its file, and an executable of such bytes.
std::string saved(const Executable& exe, std::span<const Target> targets);
Executable loaded(const std::string& file, bool trust = false);

/// Fails the test when shapes or bits differ.
void check_same(const Tensors& got, const Tensors& want);

}  // namespace tn
