#pragma once
// Tensors that a call of a compiled function takes out of their Python objects while it runs.
#include "compiled/call_arguments.h"

namespace tn::python {

/// An argument whose memory results may take.
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

/// The call that runs with what an object held, or null.
GivenAway* holder_of(const Tensor* inside);
/// Waits for that call where another thread makes it, without Python's lock; false if there is none
/// to wait for.
bool wait_for_call(const Tensor* inside);

}  // namespace tn::python
