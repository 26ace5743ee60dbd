#include "tenon/nn/pipeline_stages.h"

#include <optional>

#include "base/error.h"
#include "ir/sizes.h"
#include "nn/checks.h"
#include "nn/whole_mesh.h"
#include "tenon/operators.h"
#include "tenon/ops.h"

namespace tn::nn {
namespace {

/// Microbatch i has the rows i, i + n, i + 2 n, ... So each has a part of every block of a batch
/// that is divided among workers, and no row goes from one to another.
std::vector<Tensor> split(const Tensor& x, int64_t n) {
  if (n < 1) fail("pipeline: microbatches must be a positive integer: {}", n);
  if (x.rank() == 0 || !decide_divides(Dim(n), x.shape()[0]))
    fail(Hint{"pad the batch, or choose microbatches that divide it"},
         "pipeline: {} cannot be split into {} microbatches", *type_of(x), n);
  Shape grid{floor_div(x.shape()[0], n), n};
  for (int d = 1; d < x.rank(); ++d) grid.push_back(x.shape()[d]);
  const Tensor rows = reshape(x, grid);
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < n; ++i) parts.push_back(rows[{all, i}]);
  return parts;
}

/// Where the tensors of a stage lie.
struct FindDevice final : Visitor {
  std::optional<Device> device;
  void tensor(const Slot& slot) override {
    if (!device && slot.tensor.defined()) device = slot.tensor.device();
  }
};

Tensor through(std::vector<Layer>& stages, Tensor x) {
  for (Layer& stage : stages) {
    FindDevice found;
    stage.visit(found, {});
    if (found.device) x = x.to(*found.device);
    x = stage(x);
  }
  return x;
}

}  // namespace

Tensor Pipeline::operator()(const Operand& x) {
  return computed(*this, x, [&] {
    std::vector<Tensor> results;
    for (Tensor& part : split(taken(x), microbatches))
      results.push_back(through(stages, std::move(part)));
    Tensor rows = stack(results, 1);
    Shape shape{rows.shape()[0] * microbatches};
    for (int d = 2; d < rows.rank(); ++d) shape.push_back(rows.shape()[d]);
    return on_whole_mesh(reshape(rows, shape));
  });
}

Tensor Pipeline::loss(const Callback<Tensor(const Tensor& result, const Tensor& y)>& f,
                      const Operand& x, const Operand& y) {
  return computed(*this, x, [&] {
    Tensor batch = taken(x), labels = taken(y);
    bool has_rows = batch.rank() > 0 && labels.rank() > 0;
    if (has_rows && !identical(batch.shape()[0], labels.shape()[0]))
      fail(Hint{"targets have a row for each row of the batch"},
           "pipeline: arguments have {} and {} rows", batch.shape()[0], labels.shape()[0]);
    std::vector<Tensor> inputs = split(batch, microbatches), targets = split(labels, microbatches);
    std::vector<Tensor> terms;
    for (size_t i = 0; i < inputs.size(); ++i) {
      Tensor result = through(stages, std::move(inputs[i]));
      Tensor term = f(result, targets[i].to(result.device()));
      if (term.rank() != 0)
        fail(Hint{"take its mean or sum"}, "pipeline: a loss is a scalar, not {}", *type_of(term));
      terms.push_back(std::move(term));
    }
    return on_whole_mesh(mean(stack(terms)));
  });
}

}  // namespace tn::nn
