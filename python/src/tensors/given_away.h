#pragma once
// Donated tensors: a call of a compiled function takes them out of their Python objects.
#include "compiled/call_arguments.h"

namespace tn::python {

/// An argument whose memory results may reuse.
struct Donated {
  static constexpr size_t kNone = SIZE_MAX;
  size_t tensor;        // among those of the arguments
  size_t heir = kNone;  // among the results: what outputs hold in its place
};

/// Their objects hold nothing until this ends. Then they hold the old tensors that a failed run did
/// not overwrite, or after a successful run the new ones: a thread that reads such an object before
/// the outputs are assigned gets the new value.
class GivenAway {
 public:
  GivenAway(std::span<const Donated> donated, CallArguments& args);
  ~GivenAway();
  GivenAway(const GivenAway&) = delete;
  void replace_by(std::span<const Tensor> results);

 private:
  friend GivenAway* holder_of(const Tensor* inside);
  struct Given {
    Tensor* inside;
    Donated what;
    bool variable;
  };
  CallArguments& args_;
  std::vector<Given> given_;
};

/// The running call that the tensor of an object was donated to, or null.
GivenAway* holder_of(const Tensor* inside);
/// Waits, without the GIL, for that call if another thread runs it; false if there is none to wait
/// for.
bool wait_for_call(const Tensor* inside);

}  // namespace tn::python
