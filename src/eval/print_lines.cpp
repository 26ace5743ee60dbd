// The ops print and check, and where lines that programs print are written.
#include <cstdio>
#include <mutex>

#include "base/at_fork.h"
#include "base/error.h"
#include "ir/trace.h"
#include "ops/effects.h"
#include "ops/op_decls.h"
#include "tenon/debug.h"
#include "tenon/ops.h"

namespace tn {

namespace {

struct PrintSink {
  std::mutex mutex;
  Callback<void(std::string_view)> write;
};
PrintSink& print_sink() {
  static auto& only = guarded_for_process<PrintSink>(kInnermost);
  return only;
}

void write_line(std::string_view line) {
  Callback<void(std::string_view)> write;
  {
    std::lock_guard lock(print_sink().mutex);
    write = print_sink().write;
  }
  if (write) return write(line);
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
}

[[maybe_unused]] const bool kPrintInstalled = (print_line = write_line, true);

template <class A>
void perform(const OpDef& op, Tensors in, A attrs) {
  if (Trace* trace = Trace::tracing(); trace && trace->anchor.defined()) {
    attrs.anchored = true;
    in.push_back(trace->anchor);
  }
  Trace::perform(emit_all(op, in, &attrs)[0]);
}

Tensors settled(const Tensors& values, std::string_view by) {
  Tensors list = values;
  for (Tensor& t : list) {
    if (!t.defined()) fail(Fault::type, "{}: a value is missing", by);
    t = cast_to(t, t.dtype());
  }
  return list;
}

}  // namespace

void set_print_sink(Callback<void(std::string_view)> write) {
  std::lock_guard lock(print_sink().mutex);
  print_sink().write = std::move(write);
}

void print(std::string_view text, const Tensors& values) {
  perform(ops::print, settled(values, "print"), ops::PrintAttrs{text});
}

void check(const Operand& condition, std::string_view text, const Tensors& values) {
  LocScope scope(condition.place);
  Tensor flag = condition.tensor ? *condition.tensor : Tensor::from_scalar(condition.scalar);
  if (flag.dtype() != DType::b1)
    fail(Fault::type, Hint{"compare: x > 0"}, "check: the condition must be bool, not {}",
         *type_of(flag));
  Tensors in = settled(values, "check");
  in.insert(in.begin(), flag);
  std::string place = to_text(current_loc);
  perform(ops::check, std::move(in), ops::CheckAttrs{text, place});
}

}  // namespace tn
