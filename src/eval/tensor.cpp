// Tensor's members that need a value, and the ways tensors are made from memory.
#include "tenon/tensor.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/interrupt.h"
#include "compiler/compile_graph.h"
#include "eval/background.h"
#include "eval/eval.h"
#include "ir/dtype.h"
#include "ir/element.h"
#include "ir/graph.h"
#include "ir/interned.h"
#include "ir/walk.h"
#include "runtime/device.h"
#include "tenon/elements.h"
#include "tenon/ops.h"

namespace tn {

const Tensor& Tensor::eval(Place at) const {
  LocScope scope(at);
  flush({this, 1});
  return *this;
}

bool Tensor::is_evaluated() const {
  return slot_of(*this).data.load(std::memory_order_acquire) != nullptr;
}

const void* Tensor::data(Place at) const {
  LocScope scope(at);
  if (!device().is_host())
    fail(Hint{"x.to(\"cpu\") copies them", "x.to(tn::Device()) copies them"},
         "data: the elements are on {}, not in the host's memory", tn::to_text(device()));
  eval();
  const Slot& slot = slot_of(*this);
  const Buffer& buffer = *slot.data.load(std::memory_order_acquire);
  return static_cast<const char*>(host_address(buffer)) + slot.offset;
}

void check_rank(const Tensor& x, int rank) {
  if (!x.defined()) fail_null_tensor();
  if (x.rank() != rank) fail("elements: {} axes are wanted of {}", rank, *type_of(x));
}

const void* Tensor::checked_data(DType wanted, const Place& at) const {
  LocScope scope(at);
  if (dtype() != wanted)
    fail(Fault::type, "data: the elements are {}, not {}", tn::name_of(dtype()),
         tn::name_of(wanted));
  return data();
}

std::string Tensor::graph() const {
  (void)shape();  // which fails where there is no tensor
  Captured captured = capture({}, {this, 1});
  return to_text(captured.graph);
}

void eval(const std::vector<Tensor>& tensors, std::source_location at) {
  LocScope scope(at);
  flush(tensors);
}

Tensor from_bytes(const void* data, DType dtype, const Shape& shape) {
  RecordScope scope;
  TypeRef type = intern(dtype, shape);
  BufferRef made = allocate(static_cast<size_t>(type->bytes()));
  if (type->bytes()) std::memcpy(made.data(), data, static_cast<size_t>(type->bytes()));
  return make_data(std::move(made), 0, type);
}

Tensor from_elements(const void* data, size_t count, DType dtype, const Shape& shape,
                     std::source_location at) {
  LocScope scope(at);
  Dim elements = shape.elements();
  if (!elements.is(static_cast<int64_t>(count)))
    fail(Hint{"give one value for each element"},
         "array: {} values for the shape {}, of {} elements", count, shape, elements);
  return from_bytes(data, dtype, shape).to(current_device());
}

Tensor array_as(const Scalar& value, DType dtype, const std::source_location& at) {
  LocScope scope(at);
  check_fits("array", value, dtype);
  constexpr DType kWidest[] = {DType::b1, DType::i64, DType::u64, DType::f64, DType::c128};
  return astype(make_scalar(value, kWidest[static_cast<size_t>(value.kind)], false), dtype);
}

Tensor array_as(const Tensor& values, DType dtype, const std::source_location& at) {
  LocScope scope(at);
  if (is_integer(dtype) && is_integer(values.dtype())) {
    Tensor here = values.to(Device());
    const auto* bytes = static_cast<const std::byte*>(here.data(at));
    for (int64_t i = 0; i < values.size(); ++i)
      check_fits("array", element_at(values.dtype(), bytes + i * size_of(values.dtype())), dtype);
  }
  return astype(values, dtype);
}

Tensor from_memory(void* data, DType dtype, const Shape& shape, void* owner, void (*release)(void*),
                   bool read_only) {
  RecordScope scope;
  TypeRef type = intern(dtype, shape);
  return make_data(adopt(data, static_cast<size_t>(type->bytes()), owner, release, read_only), 0,
                   type);
}

Scalar item_of(const Tensor& x, const std::source_location& at) {
  LocScope scope(at);
  if (x.size() != 1)
    fail("item: only a tensor of one element has an item, this is {}", *type_of(x));
  Tensor here = x.to(Device());
  return element_at(x.dtype(), here.data());
}

Scalar real_item_of(const Tensor& x, const std::source_location& at) {
  Scalar s = item_of(x, at);
  LocScope scope(at);
  if (s.kind == Kind::complex)
    fail(Fault::type, Hint{"take tn::real(x)", "take tn::real(x), or item<std::complex<float>>()"},
         "item: a complex number is not real: {}", *type_of(x));
  return s;
}

int64_t integer_item_of(const Tensor& x, int64_t least, uint64_t greatest,
                        const std::source_location& at) {
  Scalar s = real_item_of(x, at);
  LocScope scope(at);
  bool fits =
      s.kind == Kind::natural ? static_cast<uint64_t>(s.integer) <= greatest
      : s.is_integral()
          ? s.integer >= least && (s.integer < 0 || static_cast<uint64_t>(s.integer) <= greatest)
          : s.real > static_cast<double>(least) - 1 && s.real < static_cast<double>(greatest) + 1;
  if (!fits)
    fail(Hint{"read it as a larger type"}, "item: {} is not between {} and {}",
         s.is_integral() ? format("{}", s.integer) : format("{}", s.real), least, greatest);
  if (s.is_integral()) return s.integer;
  return s.real < 0x1p63 ? static_cast<int64_t>(s.real)
                         : static_cast<int64_t>(static_cast<uint64_t>(s.real));
}

/// Reading the values reports the same errors, to those who read them.
static void flush_quietly(const std::vector<Tensor>& tensors) {
  try {
    flush(tensors);
  } catch (const Error&) {           // reported again
  } catch (const std::bad_alloc&) {  // reported again
  } catch (const Stopped&) {         // by stop_async
  }  // what a handler of the user throws goes on
}

void async_eval(const std::vector<Tensor>& tensors) {
  auto is_on_host = [](const Tensor& x) { return x.device().is_host(); };
  if (std::ranges::any_of(tensors, is_on_host))
    evaluating_worker().add([tensors] { flush_quietly(tensors); });
  else
    flush_quietly(tensors);  // devices do their work later than they are given it
}
void synchronize() {
  evaluating_worker().wait();
  synchronize_devices();
}
void stop_async() { evaluating_worker().stop(); }

}  // namespace tn
