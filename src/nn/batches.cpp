// Batches of examples: their order, shuffled or not, and the rows of a batch.
#include "base/error.h"
#include "ir/node.h"
#include "ir/place.h"
#include "ops/draws.h"
#include "tenon/data.h"
#include "tenon/random.h"

namespace tn::data {

AnyBatches::AnyBatches(Tensors columns, int64_t size, BatchSettings settings,
                       std::source_location at)
    : place_(at), columns_(std::move(columns)), size_(size), settings_(std::move(settings)) {
  LocScope scope(at);
  if (settings_.key.defined()) ops::check_one_key("batches", settings_.key);
  if (size < 1) fail("batches: the size must be 1 or more: {}", size);
  if (settings_.epochs < 0) fail("batches: the number of epochs is negative: {}", settings_.epochs);
  count_examples("batches");
  per_epoch_ = settings_.drop_last ? examples_ / size : (examples_ + size - 1) / size;
}

AnyBatches::AnyBatches(Tensors columns, EqualParts parts, std::source_location at)
    : place_(at), columns_(std::move(columns)), per_epoch_(parts.count) {
  LocScope scope(at);
  if (parts.count < 1) fail("split: the number of parts must be 1 or more: {}", parts.count);
  count_examples("split");
  if (examples_ % parts.count != 0 || (examples_ == 0 && parts.count > 1))
    fail("split: {} examples do not divide into {} parts", examples_, parts.count);
  size_ = examples_ / parts.count;
}

void AnyBatches::count_examples(const char* by) {
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].rank() == 0) fail("{}: tensor {} has no examples: it is a scalar", by, i);
    if (i == 0) examples_ = columns_[i].dim(0);
    if (columns_[i].dim(0) != examples_)
      fail("{}: the tensors have {} and {} examples", by, examples_, columns_[i].dim(0));
  }
}

Tensors AnyBatches::at(int64_t number, std::source_location at) const {
  LocScope scope(at);
  if (columns_.empty()) fail("batches: they were moved from: there are no examples");
  if (number < 0 || number >= size())
    fail(Fault::index, "batches: there is no batch {}: the last one is {}", number, size() - 1);
  int64_t epoch = number / per_epoch_, start = number % per_epoch_ * size_;
  Index part = Index::slice(start, std::min(start + size_, examples_));
  if (settings_.key.defined() && epoch_ != epoch) {
    Tensor key = random::fold_in(settings_.key, epoch);
    order_ = random::permutation(examples_, 0, false, key).eval();
    epoch_ = epoch;
  }
  Tensors batch;
  for (const Tensor& column : columns_)
    batch.push_back(order_.defined() ? take(column, index(order_, {part}), Axis(0))
                                     : index(column, {part}));
  return batch;
}

}  // namespace tn::data
