#pragma once
// Saved executables for C++, without the compiler: tenon_rt.h with lifetimes, spans and exceptions.
// Needs no other header of Tenon. Link with tenon::rt.
//
//     tn::rt::Executable f("f.tnx");
//     std::vector<float> x{1, 2};
//     auto results = f({{x, {1, 2}}});
//     std::span<const float> y = results[0].data<float>();
//
// On a GPU: Executable f("f.tnx", {.device = "cuda"}). Results of f.run_on_device stay there, and
// may be inputs of further calls.
#include <complex>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tenon_rt.h"

namespace tn::rt {

/// An invalid file, call or argument; the text is that of tenon_rt_error().
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The element type of a C++ type.
template <class T>
constexpr tenon_rt_dtype dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return TENON_RT_BOOL;
  if constexpr (std::is_same_v<T, float>) return TENON_RT_F32;
  if constexpr (std::is_same_v<T, double>) return TENON_RT_F64;
  if constexpr (std::is_same_v<T, std::complex<float>>) return TENON_RT_C64;
  if constexpr (std::is_same_v<T, std::complex<double>>) return TENON_RT_C128;
  if constexpr (std::is_integral_v<T>) {
    constexpr int kSize = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return static_cast<tenon_rt_dtype>((std::is_signed_v<T> ? TENON_RT_I8 : TENON_RT_U8) + kSize);
  }
  static_assert(std::is_arithmetic_v<T> || std::is_same_v<T, std::complex<float>> ||
                    std::is_same_v<T, std::complex<double>>,
                "elements are bool, integers, float, double or complex; others are given as "
                "Input(dtype, data, shape)");
}

/// Elements owned by the caller, valid until the call returns. Copied only from the host to a GPU.
/// Those on a GPU may be read for longer by run_on_device: what changes them goes on its stream.
class Input {
 public:
  /// `device`: where `data` is, as in tenon_rt_tensor: 0 is the host, 1 the memory of "cuda:0".
  Input(tenon_rt_dtype dtype, const void* data, std::vector<int64_t> shape, int32_t device = 0)
      : dtype_(dtype), data_(data), shape_(std::move(shape)), device_(device) {}
  /// From any contiguous range: std::vector, std::array, std::span.
  template <std::ranges::contiguous_range R>
  Input(const R& elements, std::vector<int64_t> shape)
      : Input(dtype_of<std::ranges::range_value_t<R>>(), std::ranges::data(elements),
              std::move(shape)) {
    int64_t count = 1;
    for (int64_t size : shape_) count *= size;
    if (count != static_cast<int64_t>(std::ranges::size(elements)))
      throw Error("an input has " + std::to_string(std::ranges::size(elements)) +
                  " elements, and its shape " + std::to_string(count));
  }
  /// A size input.
  Input(int64_t size) : dtype_(TENON_RT_I64), is_size_(true), size_(size) {}

  tenon_rt_tensor get() const {
    const void* data = is_size_ ? &size_ : data_;
    return {dtype_,        static_cast<int32_t>(shape_.size()),
            shape_.data(), const_cast<void*>(data),
            nullptr,       device_};
  }

 private:
  tenon_rt_dtype dtype_;
  const void* data_ = nullptr;
  std::vector<int64_t> shape_;
  int32_t device_ = 0;
  bool is_size_ = false;
  int64_t size_ = 0;
};

/// A result, which owns its memory.
class Tensor {
 public:
  explicit Tensor(tenon_rt_tensor taken) : at_(taken) {}
  Tensor(Tensor&& other) noexcept : at_(std::exchange(other.at_, {})) {}
  Tensor& operator=(Tensor&& other) noexcept {
    std::swap(at_, other.at_);
    return *this;
  }
  ~Tensor() { tenon_rt_release(&at_); }

  tenon_rt_dtype dtype() const { return at_.dtype; }
  std::span<const int64_t> shape() const { return {at_.shape, static_cast<size_t>(at_.rank)}; }
  size_t size() const {
    size_t count = 1;
    for (int64_t size : shape()) count *= static_cast<size_t>(size);
    return count;
  }
  int32_t device() const { return at_.device; }  // as of an Input
  void* data() const { return at_.data; }
  /// The elements, which must be of that type, and on the host.
  template <class T>
  std::span<T> data() const {
    check_type<T>();
    if (device()) throw Error("the result is on a GPU: to_vector() copies it to the host");
    return {static_cast<T*>(at_.data), size()};
  }
  /// A copy of the elements on the host. Waits for them.
  template <class T>
  std::vector<T> to_vector() const {
    check_type<T>();
    std::vector<std::conditional_t<std::is_same_v<T, bool>, char, T>> copy(size());
    if (tenon_rt_read(&at_, copy.data())) throw Error(tenon_rt_error());
    if constexpr (std::is_same_v<T, bool>)
      return std::vector<T>(copy.begin(), copy.end());
    else
      return copy;
  }
  /// As an argument of the next call.
  operator Input() const { return {dtype(), data(), {shape().begin(), shape().end()}, device()}; }

 private:
  template <class T>
  void check_type() const {
    if (dtype_of<std::remove_const_t<T>>() != at_.dtype)
      throw Error("the result has elements of another type");
  }
  tenon_rt_tensor at_;
};

struct LoadOptions {
  bool trust = false;  // run machine code that was not saved by this user here
  /// Whether checksums are verified. true: of the whole file, when loading. false: not of weights.
  /// Not set: of the whole file, when loading or, if it is large, in the first call.
  std::optional<bool> verify = {};
  std::string device = "cpu";  // or "cuda" (the first GPU), "cuda:1"

  uint32_t flags() const {
    uint32_t flags = trust ? uint32_t{TENON_RT_TRUST} : 0;
    if (verify) flags |= *verify ? uint32_t{TENON_RT_VERIFY} : uint32_t{TENON_RT_NO_VERIFY};
    return flags;
  }
};

/// A loaded file. Any number of threads may call it concurrently.
class Executable {
 public:
  explicit Executable(const std::string& path, const LoadOptions& options = {})
      : f_(tenon_rt_load_on(path.c_str(), options.flags(), options.device.c_str()),
           tenon_rt_close) {
    if (!f_) throw Error(tenon_rt_error());
  }

  size_t inputs() const { return tenon_rt_inputs(f_.get()); }
  size_t outputs() const { return tenon_rt_outputs(f_.get()); }
  const tenon_rt_input& input(size_t i) const {
    if (const tenon_rt_input* found = tenon_rt_input_at(f_.get(), i)) return *found;
    throw Error(tenon_rt_error());
  }
  /// What the code that runs was made for: "x86-64-v4", "sm_90", "ptx_80"; or "interpreter".
  std::string target() const { return tenon_rt_target(f_.get()); }
  std::string device() const { return tenon_rt_device(f_.get()); }  // "cpu" or "cuda:0"

  /// Results are on the host.
  std::vector<Tensor> operator()(std::span<const Input> inputs) const {
    return run(inputs, [](auto... call) { return tenon_rt_run(call...); });
  }
  std::vector<Tensor> operator()(std::initializer_list<Input> inputs) const {
    return (*this)(std::span<const Input>(inputs.begin(), inputs.size()));
  }
  /// Results stay on the device, and are not waited for. `stream` is that of the caller's own work
  /// (tenon_rt_run_on_device).
  std::vector<Tensor> run_on_device(std::span<const Input> inputs, void* stream = nullptr) const {
    return run(inputs, [&](auto... call) { return tenon_rt_run_on_device(call..., stream); });
  }
  std::vector<Tensor> run_on_device(std::initializer_list<Input> in, void* stream = nullptr) const {
    return run_on_device(std::span<const Input>(in.begin(), in.size()), stream);
  }
  /// A copy on the device of elements of the host, for many calls.
  Tensor to_device(const Input& input) const {
    tenon_rt_tensor in = input.get(), copy;
    if (tenon_rt_to_device(f_.get(), &in, &copy)) throw Error(tenon_rt_error());
    return Tensor(copy);
  }

 private:
  template <class Run>
  std::vector<Tensor> run(std::span<const Input> inputs, Run run) const {
    std::vector<tenon_rt_tensor> in, out(outputs());
    for (const Input& input : inputs) in.push_back(input.get());
    if (run(f_.get(), in.data(), in.size(), out.data(), out.size())) throw Error(tenon_rt_error());
    return {out.begin(), out.end()};
  }
  std::unique_ptr<tenon_rt_executable, void (*)(tenon_rt_executable*)> f_;
};

}  // namespace tn::rt
