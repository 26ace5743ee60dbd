#pragma once
// Programs of several workers. `tenon launch -n 4 program` starts four processes of a program; each
// computes its share and exchanges tensors with the others. With one worker all of this is free.
#include <source_location>
#include <string>

#include "tenon/error.h"
#include "tenon/tensor.h"

namespace tn {

/// Another worker of the program ended, hangs, or does something different. The text names it.
class WorkerFailed : public Error {
 public:
  using Error::Error;
};

namespace distributed {

/// Workers that exchange tensors. All workers of a group must make the same calls in the same
/// order.
class Group {
 public:
  int rank() const;                   // of this worker, from 0
  int size() const { return size_; }  // the number of workers
  /// Workers that give the same `color` form a new group, in the order of `key`, then of their
  /// ranks. Every worker of this group must call it.
  Group split(int color, int key = 0) const;
  /// Returns when every worker of the group has called it.
  void barrier() const;
  const std::string& name() const { return name_; }

 private:
  friend Group init();
  friend Group axis(const std::string& name);
  explicit Group(std::string name);
  Group(std::string name, int size) : name_(std::move(name)), rank_(-1), size_(size) {}

  std::string name_;
  int rank_, size_;
};

using Place = std::source_location;  // of the call, for errors

/// The group of all workers. Without a launcher there is one.
Group init();

/// The workers along an axis of the mesh, inside of a function that tn::shard_map runs.
Group axis(const std::string& name);
/// The number of each worker along an axis, there: an int32 that varies by worker.
Tensor axis_index(const std::string& name, Place place = Place::current());

/// The sum of the `x` of all workers, on all of them. Terms are added in a fixed order, so every
/// worker gets the same bits in every run. Bool is summed as i64.
Tensor all_sum(const Tensor& x, const Group& group = init(), Place place = Place::current());
Tensor all_max(const Tensor& x, const Group& group = init(), Place place = Place::current());
Tensor all_min(const Tensor& x, const Group& group = init(), Place place = Place::current());
/// The `x` of all workers, joined along axis 0 in the order of ranks.
Tensor all_gather(const Tensor& x, const Group& group = init(), Place place = Place::current());
/// The sum of the `x` of all workers, of which each gets an equal part along axis 0.
Tensor sum_scatter(const Tensor& x, const Group& group = init(), Place place = Place::current());
/// Another name of `sum_scatter`.
inline Tensor reduce_scatter(const Tensor& x, const Group& group = init(),
                             Place place = Place::current()) {
  return sum_scatter(x, group, place);
}
/// Part r of `x` along axis 0 goes to worker r; the result joins the parts that arrive.
Tensor all_to_all(const Tensor& x, const Group& group = init(), Place place = Place::current());
/// The `x` of worker `root`, on all workers.
Tensor broadcast(const Tensor& x, int root = 0, const Group& group = init(),
                 Place place = Place::current());

/// Sends `x` to worker `to`, which receives it with `recv`, and returns `x`. Messages are exchanged
/// in the order of the calls: when they are called, or when a traced function runs.
Tensor send(const Tensor& x, int to, const Group& group = init(), Place place = Place::current());
/// The tensor that worker `from` sends. Its shape and element type must be the given ones.
Tensor recv(const Shape& shape, DType dtype, int from, const Group& group = init(),
            Place place = Place::current());
/// A tensor with the shape and element type of `x`, from worker `from`.
Tensor recv_like(const Tensor& x, int from, const Group& group = init(),
                 Place place = Place::current());

/// `x`, the same on all workers, where each goes on with its own part of the work: the gradient is
/// the sum of those of all workers.
Tensor sum_gradients(const Tensor& x, const Group& group = init(), Place place = Place::current());
/// `all_sum` where all workers go on with the same work: the gradient of each term is that of the
/// sum, and not W times as much.
Tensor sum_replicated(const Tensor& x, const Group& group = init(), Place place = Place::current());

}  // namespace distributed
}  // namespace tn
