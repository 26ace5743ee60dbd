#include "tenon/optim/accumulate.h"

#include "base/error.h"
#include "ir/trace.h"

namespace tn::optim {

void fail_no_batches() { fail("accumulate: there are no batches"); }

void settle(const Tensors& totals) {
  if (!Trace::current()) eval(totals);
}

}  // namespace tn::optim
