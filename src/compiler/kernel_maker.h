#pragma once
// KernelMaker: the kernel of one group of elementwise ops, with the reduction that ends it, if any.
#include <map>

#include "compiler/access.h"
#include "compiler/plan_builder.h"
#include "loop/lowering.h"

namespace tn {

/// The real or imaginary part of a number, as `type` holds it, in the kernel under construction.
/// One that is given at run time joins `scalars`. Narrow floats are rounded once, from double.
loop::S number_part(loop::Builder& b, std::vector<int32_t>& scalars, const Home& home, DType type,
                    bool imaginary);

/// The op's own loop nest.
loop::Kernel nest_of(const Graph& graph, const GraphOp& op);

class KernelMaker {
 public:
  KernelMaker(const Graph& graph, std::string name, const Shape& domain, const Axes& reduced);

  /// Reads `v` from where it is.
  void read(Val v, const Home& from);
  /// Writes `v`, which `compute` makes, row-major to the buffer of `to`.
  void write(Val v, const Home& to);
  /// No more accesses: adds the loops.
  void start();
  void compute(const GraphOp& op);
  /// Writes `v` as it was read, for values whose order in memory must change.
  void copy(Val v);
  loop::Kernel finish();

  std::vector<int32_t> buffers, scalars;  // of the step, in the kernel's order

 private:
  struct Access {
    Val v;
    int number;     // in nest_
    int parameter;  // of the kernel
  };
  int parameter(const Home& home, DType dtype, bool written);
  loop::Element value(Val v);
  loop::Element load(const Access& access);
  void define(Val v, loop::Element made);
  loop::Element reduce(const GraphOp& op, loop::Element x);

  const Graph& graph_;
  loop::Builder b_;
  LoopNest nest_;
  std::map<Val, Access> reads_;
  std::vector<Access> writes_;
  std::map<Val, Home> uniform_;  // numbers
  std::map<Val, loop::Element> made_;
};

}  // namespace tn
