// The functions of tenon_rt.h: they check what C cannot promise, and let no exception out.
#pragma GCC visibility push(default)
#include "tenon_rt.h"
#pragma GCC visibility pop

#include <cstdio>
#include <cstring>
#include <new>

#include "backend/cuda/lending.h"
#include "base/error.h"
#include "executable/program.h"
#include "ir/dtype.h"
#include "ir/interned.h"
#include "ops/effects.h"
#include "runtime/device.h"
#include "runtime/threads.h"

static_assert(TENON_RT_BOOL == int(tn::DType::b1) && TENON_RT_I8 == int(tn::DType::i8) &&
              TENON_RT_I16 == int(tn::DType::i16) && TENON_RT_I32 == int(tn::DType::i32) &&
              TENON_RT_I64 == int(tn::DType::i64) && TENON_RT_U8 == int(tn::DType::u8) &&
              TENON_RT_U16 == int(tn::DType::u16) && TENON_RT_U32 == int(tn::DType::u32) &&
              TENON_RT_U64 == int(tn::DType::u64) && TENON_RT_F8E4M3 == int(tn::DType::f8e4m3) &&
              TENON_RT_F8E5M2 == int(tn::DType::f8e5m2) && TENON_RT_F16 == int(tn::DType::f16) &&
              TENON_RT_BF16 == int(tn::DType::bf16) && TENON_RT_F32 == int(tn::DType::f32) &&
              TENON_RT_F64 == int(tn::DType::f64) && TENON_RT_C64 == int(tn::DType::c64) &&
              TENON_RT_C128 == int(tn::DType::c128) && tn::kDTypes == TENON_RT_C128 + 1);

struct tenon_rt_executable {
  std::shared_ptr<const tn::Program> program;
  tn::Device device;
  std::string device_name;
  std::vector<std::vector<tenon_rt_size>> sizes;  // by input
  std::vector<tenon_rt_input> inputs;
};

namespace tn {
namespace {

thread_local std::string last_error;

/// What the function prints, it prints here as well.
void write_line(std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
}
[[maybe_unused]] const bool kInstalled = (print_line = write_line, true);

/// Calls `body`; what it throws becomes the text of the error, and `failed` the result.
template <class R, class Body>
R guarded(R failed, Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    last_error = "out of memory";
  } catch (const std::exception& error) {
    try {
      last_error = error.what();
    } catch (...) {
      last_error.clear();  // no memory for the text
    }
  }
  return failed;
}

const tenon_rt_executable& checked(const tenon_rt_executable* f) {
  if (!f) fail(Hint{"tenon_rt_load gives null when it fails"}, "the executable is null");
  return *f;
}

bool is_dtype(int number) { return number >= 0 && number < kDTypes; }

std::vector<tenon_rt_size> sizes_of(const InputSignature& input) {
  std::vector<tenon_rt_size> sizes;
  sizes.reserve(input.sizes.size());
  for (const InputSignature::Range& r : input.sizes)
    sizes.push_back({r.min, r.opt, r.max, r.name.empty() ? nullptr : r.name.c_str()});
  return sizes;
}

tenon_rt_executable* describe(std::shared_ptr<const Program> program, Device device) {
  auto f = std::make_unique<tenon_rt_executable>();
  f->program = std::move(program);
  f->device = device;
  f->device_name = to_text(device);
  for (const InputSignature& input : f->program->signature().inputs) {
    const std::vector<tenon_rt_size>& sizes = f->sizes.emplace_back(sizes_of(input));
    DType dtype = input.type ? input.type->dtype : DType::i64;
    int rank = input.type ? input.type->rank() : 0;
    f->inputs.push_back({input.name.c_str(), static_cast<tenon_rt_dtype>(dtype), rank, sizes.data(),
                         input.type == nullptr});
  }
  return f.release();
}

/// The type of what the caller gave for `input`.
TypeRef type_of(const tenon_rt_tensor& given, const tenon_rt_input& input) {
  auto number = static_cast<int>(given.dtype);
  if (!is_dtype(number)) fail("{}: there is no element type {}", input.name, number);
  if (given.rank < 0 || given.rank > kMaxRank)
    fail("{}: the rank is {}, the maximum is {}", input.name, given.rank, kMaxRank);
  if (given.rank > 0 && !given.shape)
    fail("{}: the rank is {}, and shape is null", input.name, given.rank);
  Shape shape;
  for (int32_t i = 0; i < given.rank; ++i) {
    if (given.shape[i] < 0) fail("{}: shape[{}] is {}", input.name, i, given.shape[i]);
    shape.push_back(given.shape[i]);
  }
  return intern(static_cast<DType>(number), shape);
}

int32_t number_of(Device device) { return device.is_host() ? 0 : device.index + 1; }

/// Fails unless elements are on the host or on the device that they are for.
void check_place(const tenon_rt_tensor& given, const char* name, Device device) {
  if (given.device == 0 || given.device == number_of(device)) return;
  if (given.device < 0) fail("{}: there is no device {}", name, given.device);
  fail("{}: data is in memory of cuda:{}, and the executable runs on {}", name, given.device - 1,
       to_text(device));
}

/// The caller's elements, for the time of a call. Those of the host are copied to the device once
/// their types were checked.
ProgramValue borrow(const tenon_rt_tensor& given, const tenon_rt_input& input, Device device) {
  TypeRef type = type_of(given, input);
  if (type->elements > 0 && !given.data) fail("{}: data is null ({})", input.name, *type);
  auto aligned_to = static_cast<uintptr_t>(size_of(real_of(type->dtype)));
  if (reinterpret_cast<uintptr_t>(given.data) % aligned_to)
    fail("{}: data is not aligned to {} bytes, as {} is", input.name, aligned_to, type->dtype);
  check_place(given, input.name, device);
  auto bytes = static_cast<size_t>(type->bytes());
  BufferRef buffer = given.device ? cuda::view_of(device, given.data, bytes)
                                  : adopt(given.data, bytes, nullptr, [](void*) {}, true);
  return {on_device(type, device), {std::move(buffer), 0}};
}

int64_t size_from(const tenon_rt_tensor& given, const tenon_rt_input& input) {
  if (given.dtype != TENON_RT_I64 || given.rank != 0 || !given.data || given.device)
    fail("{}: it is a size: a tensor of rank 0 and type i64", input.name);
  int64_t size;
  std::memcpy(&size, given.data, sizeof size);
  return size;
}

/// What a result lives in until it is released.
struct Owner {
  Bound at;
  size_t bytes;
  int64_t stream;  // of the caller, who may use the memory of a device there
  std::vector<int64_t> shape = {};

  Owner(Bound value, size_t count, int64_t callers)
      : at(std::move(value)), bytes(count), stream(callers) {}
  ~Owner() {
    if (device().is_host()) return;
    try {
      follow_stream();
    } catch (...) {  // the next call that uses the GPU reports that it has failed
    }
  }
  Owner(const Owner&) = delete;
  Device device() const { return at.buffer->device; }
  /// What uses the memory from now on comes after what the caller has put on the stream. That of
  /// each thread may be that of another one: all of them are waited for.
  void follow_stream() const {
    if (stream == cuda::kThreadStream) return cuda::wait_for_stream(device(), stream);
    cuda::follow(device(), stream);
  }
};

/// Memory that others hold as well (of the caller, of weights, of another result) is copied.
tenon_rt_tensor to_result(ProgramValue& value, int64_t stream) {
  Bound& at = value.value;
  auto bytes = static_cast<size_t>(value.type->bytes());
  Device device = at.buffer->device;
  if (at.buffer->read_only || !at.buffer.unique()) {
    BufferRef own = device.is_host() ? allocate(bytes) : cuda::copied(at, bytes);
    if (device.is_host() && bytes > 0) std::memcpy(own.data(), HostView(at).data(), bytes);
    at = {std::move(own), 0};
  }
  const BufferRef& memory = at.buffer;
  void* data = device.is_host() ? memory.data<char>() + at.offset : cuda::lend(at, stream);
  auto owner = std::make_unique<Owner>(std::move(at), bytes, stream);
  for (Dim size : value.type->shape) owner->shape.push_back(size.value());
  const int64_t* shape = owner->shape.data();
  auto dtype = static_cast<tenon_rt_dtype>(value.type->dtype);
  return {dtype, value.type->rank(), shape, data, owner.release(), number_of(device)};
}

/// Where the caller's own work is, and where results go.
struct CallStream {
  int64_t number = 0;
  bool keeps_results = false;  // on the device
};

/// Work may still read inputs when a call returns or fails: the caller's stream waits for it.
struct InputsInUse {
  Device device;
  int64_t stream;
  bool wanted = false;
  ~InputsInUse() {
    if (!wanted) return;
    try {
      cuda::lend(device, stream);
    } catch (...) {  // the GPU has failed, which every call reports
    }
  }
};

void run_checked(const tenon_rt_executable& f, std::span<const tenon_rt_tensor> inputs,
                 std::span<tenon_rt_tensor> outputs, CallStream stream) {
  if (inputs.size() != f.inputs.size())
    fail("{}: takes {} inputs, {} were given", f.program->signature().function, f.inputs.size(),
         inputs.size());
  RecordScope scope;
  DeviceScope device(f.device);
  std::vector<ProgramValue> args;
  std::vector<int64_t> sizes;
  bool uses_device = false;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (f.inputs[i].is_size) {
      sizes.push_back(size_from(inputs[i], f.inputs[i]));
    } else {
      args.push_back(borrow(inputs[i], f.inputs[i], f.device));
      uses_device = uses_device || inputs[i].device;
    }
  InputsInUse in_use{f.device, stream.number};
  if (uses_device) {
    cuda::follow(f.device, stream.number);
    in_use.wanted = true;
  }
  std::vector<ProgramValue> results = f.program->run(args, sizes);
  args.clear();
  for (ProgramValue& result : results)
    if (!stream.keeps_results)
      result.value = copy_to({}, result.value, static_cast<size_t>(result.type->bytes()));
  for (size_t i = 0; i < results.size(); ++i) {
    outputs[i] = to_result(results[i], stream.number);
    if (outputs[i].device) in_use.wanted = false;  // the stream waits for it
  }
}

int run(const tenon_rt_executable* f, const tenon_rt_tensor* inputs, size_t input_count,
        tenon_rt_tensor* outputs, size_t output_count, CallStream stream) {
  if (outputs) std::fill_n(outputs, output_count, tenon_rt_tensor{});
  int failed = guarded(1, [&] {
    size_t wanted = checked(f).program->signature().outputs.size();
    if (output_count != wanted)
      fail("{}: returns {} results, there is room for {}", f->program->signature().function, wanted,
           output_count);
    if ((!inputs && input_count) || (!outputs && output_count))
      fail("run: {} is null", outputs || !output_count ? "inputs" : "outputs");
    run_checked(*f, {inputs, input_count}, {outputs, output_count}, stream);
    return 0;
  });
  if (failed && outputs)
    for (size_t i = 0; i < output_count; ++i) tenon_rt_release(&outputs[i]);
  return failed;
}

}  // namespace
}  // namespace tn

using namespace tn;

tenon_rt_executable* tenon_rt_load(const char* path, uint32_t flags) {
  return tenon_rt_load_on(path, flags, "cpu");
}

tenon_rt_executable* tenon_rt_load_on(const char* path, uint32_t flags, const char* device) {
  return guarded<tenon_rt_executable*>(nullptr, [&] {
    if (!path || !device) fail("load: the {} is null", path ? "device" : "path");
    constexpr uint32_t kBoth = TENON_RT_VERIFY | TENON_RT_NO_VERIFY;
    if (flags & ~(TENON_RT_TRUST | kBoth) || (flags & kBoth) == kBoth)
      fail("load: unknown flags {:#x}", flags);
    Program::ReadOptions options{.trust = (flags & TENON_RT_TRUST) != 0,
                                 .verify = {},
                                 .device = device_named(device, "load")};
    if (flags & kBoth) options.verify = (flags & TENON_RT_VERIFY) != 0;
    return describe(Program::read(tnx::File::open(path), options), options.device);
  });
}

void tenon_rt_close(tenon_rt_executable* f) { delete f; }

size_t tenon_rt_element_bytes(tenon_rt_dtype dtype) {
  auto number = static_cast<int>(dtype);
  return is_dtype(number) ? static_cast<size_t>(size_of(static_cast<DType>(number))) : 0;
}

size_t tenon_rt_inputs(const tenon_rt_executable* f) { return f ? f->inputs.size() : 0; }

size_t tenon_rt_outputs(const tenon_rt_executable* f) {
  return f ? f->program->signature().outputs.size() : 0;
}

const tenon_rt_input* tenon_rt_input_at(const tenon_rt_executable* f, size_t i) {
  return guarded<const tenon_rt_input*>(nullptr, [&] {
    const std::vector<tenon_rt_input>& inputs = checked(f).inputs;
    if (i >= inputs.size()) fail("there is no input {}: there are {}", i, inputs.size());
    return &inputs[i];
  });
}

const char* tenon_rt_target(const tenon_rt_executable* f) {
  return guarded<const char*>(nullptr, [&] { return checked(f).program->target.c_str(); });
}

const char* tenon_rt_device(const tenon_rt_executable* f) {
  return guarded<const char*>(nullptr, [&] { return checked(f).device_name.c_str(); });
}

int tenon_rt_run(const tenon_rt_executable* f, const tenon_rt_tensor* inputs, size_t input_count,
                 tenon_rt_tensor* outputs, size_t output_count) {
  return run(f, inputs, input_count, outputs, output_count, {});
}

int tenon_rt_run_on_device(const tenon_rt_executable* f, const tenon_rt_tensor* inputs,
                           size_t input_count, tenon_rt_tensor* outputs, size_t output_count,
                           void* stream) {
  return run(f, inputs, input_count, outputs, output_count,
             {reinterpret_cast<int64_t>(stream), true});
}

int tenon_rt_to_device(const tenon_rt_executable* f, const tenon_rt_tensor* x,
                       tenon_rt_tensor* copy) {
  if (copy) *copy = {};
  return guarded(1, [&] {
    Device device = checked(f).device;
    if (!x || !copy) fail("to_device: {} is null", x ? "copy" : "x");
    if (x->device > 0)
      fail("to_device: x is in memory of cuda:{}: it takes elements of the host", x->device - 1);
    tenon_rt_input input{"to_device: x", x->dtype, x->rank, nullptr, 0};
    RecordScope scope;
    ProgramValue value = borrow(*x, input, device);
    value.value = copy_to(device, value.value, static_cast<size_t>(value.type->bytes()));
    *copy = to_result(value, 0);
    return 0;
  });
}

int tenon_rt_read(const tenon_rt_tensor* result, void* to) {
  return guarded(1, [&] {
    if (!result || !result->owner) fail("read: the tensor is not a result");
    const Owner& owner = *static_cast<const Owner*>(result->owner);
    if (owner.bytes == 0) return 0;
    if (!to) fail("read: there is no memory to copy to: null");
    if (owner.device().is_host()) {
      std::memcpy(to, HostView(owner.at).data(), owner.bytes);
      return 0;
    }
    owner.follow_stream();
    Bound host{adopt(to, owner.bytes, nullptr, [](void*) {}, false), 0};
    usable_runtime(owner.device()).copy(owner.at, host, owner.bytes);
    return 0;
  });
}

void tenon_rt_release(tenon_rt_tensor* result) {
  if (!result) return;
  delete static_cast<Owner*>(result->owner);
  *result = {};
}

const char* tenon_rt_error(void) { return last_error.c_str(); }

int tenon_rt_set_threads(int threads) {
  return guarded(1, [&] {
    if (threads < 1) fail("set_threads: at least 1 thread is needed: {}", threads);
    set_num_threads(threads);
    return 0;
  });
}

const char* tenon_rt_version(void) { return TENON_VERSION; }
