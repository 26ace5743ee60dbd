#include "tensors/given_away.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/at_fork.h"
#include "ir/watch.h"
#include "transforms/backward.h"

namespace tn::python {
namespace {

/// Python's lock guards them. A child of fork has not the threads.
struct Calls {
  std::vector<GivenAway*> running = {};
  int waiting = 0;  // threads, for one of them to end
};

Calls& calls() {
  static auto& all = *[] {
    in_child_after_fork([] { calls() = {}; });
    return new Calls;
  }();
  return all;
}

/// Where they wait.
struct End {
  std::mutex mutex;
  std::condition_variable reached;
};

End& end_of_a_call() {
  static auto& end = *new PerProcess<End>;
  return *end;
}

thread_local int own_calls = 0;

}  // namespace

GivenAway::GivenAway(std::span<const Donated> donated, CallArguments& args) : args_(args) {
  for (const Donated& d : donated) {
    size_t k = d.tensor;
    Tensor* inside = tensor_in(args.object(k));
    if (!inside) continue;
    // Of the state, only what its container and this call alone hold; a variable has its
    // new value wherever it is held.
    bool variable = args.is_state(k) && is_variable(*inside->node());
    if (args.is_state(k) && !variable && Py_REFCNT(args.object(k)) > 2) continue;
    given_.push_back({inside, d, variable});
  }
  calls().running.push_back(this);
  ++own_calls;
  for (const Given& given : given_) *given.inside = {};
}

GivenAway::~GivenAway() {
  for (const auto& [inside, what, variable] : given_) {
    *inside = args_.tensors[what.tensor];
    if (inside->defined() && variable) *inside = as_variable(*inside, args_.gradient(what.tensor));
  }
  --own_calls;
  std::erase(calls().running, this);
  if (!calls().waiting) return;
  End& end = end_of_a_call();
  std::lock_guard lock(end.mutex);
  end.reached.notify_all();
}

void GivenAway::replace_by(std::span<const Tensor> results) {
  for (const auto& [inside, what, variable] : given_)
    if (Tensor& left = args_.tensors[what.tensor]; !left.defined() && what.heir < results.size())
      left = results[what.heir];
}

GivenAway* holder_of(const Tensor* inside) {
  auto has = [&](const GivenAway* call) {
    return std::ranges::count(call->given_, inside, &GivenAway::Given::inside) > 0;
  };
  auto found = std::ranges::find_if(calls().running, has);
  return found == calls().running.end() ? nullptr : *found;
}

bool wait_for_call(const Tensor* inside) {
  GivenAway* call = holder_of(inside);
  if (!call || own_calls) return false;  // the other call may wait for this thread's
  struct Waiting {
    Waiting() { ++calls().waiting; }
    ~Waiting() { --calls().waiting; }
  } waiting;
  End& end = end_of_a_call();
  while (holder_of(inside) == call) {
    {
      std::unique_lock lock(end.mutex);  // before Python's is let go of: the end is not missed
      nb::gil_scoped_release unlocked;
      end.reached.wait_for(lock, std::chrono::milliseconds(100));
      lock.unlock();
    }
    if (PyErr_CheckSignals()) throw nb::python_error();
  }
  return true;
}

}  // namespace tn::python
