// The functions of tenon_rt.h: they check what C cannot promise, and let no exception out.
#pragma GCC visibility push(default)
#include "tenon_rt.h"
#pragma GCC visibility pop

#include <cstdio>
#include <cstring>
#include <new>

#include "base/error.h"
#include "executable/program.h"
#include "ir/dtype.h"
#include "ir/interned.h"
#include "ops/effects.h"
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

tenon_rt_executable* describe(std::shared_ptr<const Program> program) {
  auto f = std::make_unique<tenon_rt_executable>();
  f->program = std::move(program);
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

/// The caller's elements, for the time of a call.
ProgramValue borrow(const tenon_rt_tensor& given, const tenon_rt_input& input) {
  TypeRef type = type_of(given, input);
  if (type->elements > 0 && !given.data) fail("{}: data is null ({})", input.name, *type);
  auto aligned_to = static_cast<uintptr_t>(size_of(real_of(type->dtype)));
  if (reinterpret_cast<uintptr_t>(given.data) % aligned_to)
    fail("{}: data is not aligned to {} bytes, as {} is", input.name, aligned_to, type->dtype);
  BufferRef buffer =
      adopt(given.data, static_cast<size_t>(type->bytes()), nullptr, [](void*) {}, true);
  return {type, {std::move(buffer), 0}};
}

int64_t size_from(const tenon_rt_tensor& given, const tenon_rt_input& input) {
  if (given.dtype != TENON_RT_I64 || given.rank != 0 || !given.data)
    fail("{}: it is a size: a tensor of rank 0 and type i64", input.name);
  int64_t size;
  std::memcpy(&size, given.data, sizeof size);
  return size;
}

/// What a result lives in until it is released.
struct Owner {
  BufferRef memory;
  std::vector<int64_t> shape;
};

/// Memory that others hold as well (of the caller, of weights, of another result) is copied.
tenon_rt_tensor to_result(ProgramValue& value) {
  Bound& at = value.value;
  if (at.buffer->read_only || !at.buffer.unique()) {
    auto bytes = static_cast<size_t>(value.type->bytes());
    BufferRef own = allocate(bytes);
    if (bytes > 0) std::memcpy(own.data(), HostView(at).data(), bytes);
    at = {std::move(own), 0};
  }
  auto owner = std::make_unique<Owner>();
  for (Dim size : value.type->shape) owner->shape.push_back(size.value());
  owner->memory = std::move(at.buffer);
  char* data = owner->memory.data<char>() + at.offset;
  const int64_t* shape = owner->shape.data();
  auto dtype = static_cast<tenon_rt_dtype>(value.type->dtype);
  return {dtype, value.type->rank(), shape, data, owner.release()};
}

void run(const tenon_rt_executable& f, std::span<const tenon_rt_tensor> inputs,
         std::span<tenon_rt_tensor> outputs) {
  if (inputs.size() != f.inputs.size())
    fail("{}: takes {} inputs, {} were given", f.program->signature().function, f.inputs.size(),
         inputs.size());
  RecordScope scope;
  std::vector<ProgramValue> args;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (f.inputs[i].is_size)
      sizes.push_back(size_from(inputs[i], f.inputs[i]));
    else
      args.push_back(borrow(inputs[i], f.inputs[i]));
  std::vector<ProgramValue> results = f.program->run(args, sizes);
  args.clear();
  for (size_t i = 0; i < results.size(); ++i) outputs[i] = to_result(results[i]);
}

}  // namespace
}  // namespace tn

using namespace tn;

tenon_rt_executable* tenon_rt_load(const char* path, uint32_t flags) {
  return guarded<tenon_rt_executable*>(nullptr, [&] {
    if (!path) fail("load: the path is null");
    constexpr uint32_t kBoth = TENON_RT_VERIFY | TENON_RT_NO_VERIFY;
    if (flags & ~(TENON_RT_TRUST | kBoth) || (flags & kBoth) == kBoth)
      fail("load: unknown flags {:#x}", flags);
    Program::ReadOptions options{.trust = (flags & TENON_RT_TRUST) != 0, .verify = {}};
    if (flags & kBoth) options.verify = (flags & TENON_RT_VERIFY) != 0;
    return describe(Program::read(tnx::File::open(path), options));
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

int tenon_rt_run(const tenon_rt_executable* f, const tenon_rt_tensor* inputs, size_t input_count,
                 tenon_rt_tensor* outputs, size_t output_count) {
  if (outputs) std::fill_n(outputs, output_count, tenon_rt_tensor{});
  int failed = guarded(1, [&] {
    size_t wanted = checked(f).program->signature().outputs.size();
    if (output_count != wanted)
      fail("{}: returns {} results, there is room for {}", f->program->signature().function, wanted,
           output_count);
    if ((!inputs && input_count) || (!outputs && output_count))
      fail("run: {} is null", outputs || !output_count ? "inputs" : "outputs");
    run(*f, {inputs, input_count}, {outputs, output_count});
    return 0;
  });
  if (failed && outputs)
    for (size_t i = 0; i < output_count; ++i) tenon_rt_release(&outputs[i]);
  return failed;
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
