// Bad calls of the interface for C: the bytes say which functions are called with what.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "tenon/executable.h"
#include "tenon/tenon.h"
#include "tenon_rt.h"

namespace {

namespace fs = std::filesystem;

auto& executables = *new std::vector<tenon_rt_executable*>;  // until the process ends

/// Two executables: of tensors with open sizes, and of a tensor and a size.
void make_executables() {
  using namespace tn;
  setenv("TENON_CACHE", "0", 1);
  fs::path file = fs::temp_directory_path() / ("tenon-fuzz-" + std::to_string(std::rand()));
  auto open = [&](const Executable& f) {
    f.save(file);
    executables.push_back(tenon_rt_load(file.c_str(), 0));
    if (!executables.back()) std::abort();
  };
  InputInfo x{.shape = {{0, 2, 9, "n"}, 3}, .name = "x"}, y{.shape = {{0, 2, 9, "n"}}, .name = "y"};
  auto both = [](const Tensors& in) -> Tensors {
    return {exp(in[0]), sum(in[0], Axes(1)) + in[1], in[0]};
  };
  open(compile_ahead(both, {x, y}, {.optimization_level = 0}));
  auto sized = [](const Tensors& in, const std::vector<Dim>& sizes) -> Tensors {
    return {broadcast_to(in[0], {sizes[0]})};
  };
  open(flat::compile_ahead_sized(sized, {{.shape = {1}, .name = "x"}, size_input({1, 2, 9}, "n")},
                                 {.optimization_level = 0}));
  fs::remove(file);
}

class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : at_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  uint8_t small() {
    if (left_ == 0) return 0;
    return --left_, *at_++;
  }
  int64_t number() {  // small ones mostly, and any
    uint8_t kind = small();
    if (kind < 200) return kind % 12;
    int64_t value = 0;
    size_t taken = std::min(left_, sizeof value);
    std::memcpy(&value, at_, taken);
    at_ += taken, left_ -= taken;
    return value;
  }

 private:
  const uint8_t* at_;
  size_t left_;
};

/// A tensor as a caller may describe it. Memory is as large as the description says, as far as that
/// is possible: what is larger must be refused before it is read.
struct Argument {
  std::vector<int64_t> shape;
  std::vector<int64_t> memory;
  tenon_rt_tensor tensor = {};

  explicit Argument(Bytes& in) {
    constexpr size_t kMostBytes = 1 << 16;
    tensor.dtype = static_cast<tenon_rt_dtype>(in.small() < 200 ? TENON_RT_F32 : in.number());
    tensor.rank = static_cast<int32_t>(in.number());
    size_t bytes = std::max<size_t>(tenon_rt_element_bytes(tensor.dtype), 1);
    for (int32_t k = 0; k < std::clamp(tensor.rank, 0, 64); ++k) {
      shape.push_back(in.number());
      if (__builtin_mul_overflow(bytes, static_cast<size_t>(shape.back()), &bytes))
        bytes = kMostBytes;
    }
    memory.resize(std::min(bytes, kMostBytes) / sizeof(int64_t) + 2, in.number());
    uint8_t how = in.small();
    tensor.shape = how % 16 == 1 ? nullptr : shape.data();
    tensor.device = how % 16 == 3 ? 1 : 0;
    tensor.data = how % 16 == 2 ? nullptr : reinterpret_cast<char*>(memory.data()) + how / 224;
  }
};

void run(const tenon_rt_executable* f, Bytes& in) {
  std::vector<std::unique_ptr<Argument>> arguments;
  std::vector<tenon_rt_tensor> tensors;
  size_t count = f ? tenon_rt_inputs(f) : 1, results = f ? tenon_rt_outputs(f) : 1;
  if (in.small() > 240) count = in.small() % 8;
  if (in.small() > 240) results = in.small() % 8;
  for (size_t i = 0; i < count; ++i) {
    arguments.push_back(std::make_unique<Argument>(in));
    tensors.push_back(arguments.back()->tensor);
  }
  std::vector<tenon_rt_tensor> out(results);
  bool no_inputs = in.small() > 250, no_outputs = in.small() > 250;
  int failed = tenon_rt_run(f, no_inputs ? nullptr : tensors.data(), count,
                            no_outputs ? nullptr : out.data(), results);
  if (failed && !*tenon_rt_error()) std::abort();
  volatile char seen = 0;
  for (tenon_rt_tensor& t : out) {
    size_t bytes = tenon_rt_element_bytes(t.dtype);
    for (int32_t k = 0; k < t.rank; ++k) bytes *= static_cast<size_t>(t.shape[k]);
    for (size_t i = 0; t.data && i < bytes; ++i) seen = static_cast<char*>(t.data)[i];
    if (failed && t.owner) std::abort();
    tenon_rt_release(&t);
    tenon_rt_release(&t);
  }
  (void)seen;
}

void load(Bytes& in) {
  char path[8] = {};
  for (size_t i = 0; i + 1 < sizeof path; ++i) path[i] = static_cast<char>(in.small());
  tenon_rt_executable* f =
      tenon_rt_load(in.small() > 250 ? nullptr : path, static_cast<uint32_t>(in.number()));
  if (f) std::abort();  // there is no such file
  tenon_rt_close(f);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  make_executables();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes in(data, size);
  for (int calls = 0; calls < 8 && !in.empty(); ++calls) {
    uint8_t what = in.small();
    const tenon_rt_executable* f =
        what % 32 == 0 ? nullptr : executables[what % executables.size()];
    if (what < 200) {
      run(f, in);
      continue;
    }
    if (what < 210) load(in);
    tenon_rt_input_at(f, static_cast<size_t>(in.number()));
    tenon_rt_element_bytes(static_cast<tenon_rt_dtype>(in.number()));
    tenon_rt_target(f);
    if (in.small() > 250) tenon_rt_set_threads(static_cast<int>(in.number() % 5) - 1);
  }
  return 0;
}
