// Loads a saved executable, runs it and times it, on data from files or on random numbers.
//
//     run_model [--device cuda] model.tnx [FILE...]
//
// There is one raw file per input, or "-" for random numbers.
// On a GPU it also times calls whose inputs and results stay there, as a server would chain them.
// Varying sizes are those that the executable is optimized for. TRUST=1 in the environment allows
// machine code that was compiled elsewhere.
#include <tenon/runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace rt = tn::rt;

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point began) {
  return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

std::string text_of(std::span<const int64_t> shape) {
  std::string text;
  for (int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

/// Numbers in [0, 1) for floats, zeros for the rest.
void fill(tenon_rt_dtype dtype, std::vector<char>& bytes) {
  std::mt19937 bits(1);
  std::uniform_real_distribution<float> draw(0, 1);
  auto* numbers = reinterpret_cast<float*>(bytes.data());
  if (dtype == TENON_RT_F32)
    std::generate_n(numbers, bytes.size() / sizeof(float), [&] { return draw(bits); });
}

void read(const std::string& path, std::vector<char>& bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
    throw rt::Error(path + ": " + std::to_string(bytes.size()) + " bytes are needed");
}

/// Inputs are copied to the device once; of the last results, the first is copied back.
void time_on_device(const rt::Executable& f, const std::vector<rt::Input>& inputs) {
  constexpr int kCalls = 10;
  std::vector<rt::Tensor> copies, results;
  std::vector<rt::Input> there;
  for (size_t i = 0; i < inputs.size(); ++i)
    there.push_back(f.input(i).is_size ? inputs[i] : copies.emplace_back(f.to_device(inputs[i])));
  auto began = Clock::now();
  for (int call = 0; call < kCalls; ++call) results = f.run_on_device(there);
  if (!results.empty() && results[0].dtype() == TENON_RT_F32)
    results[0].to_vector<float>();  // which waits for the last call
  std::printf("on the device %.3f ms a call\n", milliseconds_since(began) / kCalls);
}

int run(const std::vector<std::string>& args, const std::string& device) {
  auto began = Clock::now();
  rt::Executable f(args.at(0), {.trust = std::getenv("TRUST") != nullptr, .device = device});
  std::printf("loaded in %.2f ms, runs %s on %s\n", milliseconds_since(began), f.target().c_str(),
              f.device().c_str());

  std::vector<std::vector<char>> memory(f.inputs());
  std::vector<rt::Input> inputs;
  for (size_t i = 0; i < f.inputs(); ++i) {
    const tenon_rt_input& input = f.input(i);
    if (input.is_size) {
      inputs.emplace_back(input.sizes[0].opt);
      continue;
    }
    std::vector<int64_t> shape;
    size_t bytes = tenon_rt_element_bytes(input.dtype);
    for (int32_t k = 0; k < input.rank; ++k) {
      shape.push_back(input.sizes[k].opt);
      bytes *= static_cast<size_t>(shape.back());
    }
    memory[i].resize(bytes);
    if (i + 1 < args.size() && args[i + 1] != "-")
      read(args[i + 1], memory[i]);
    else
      fill(input.dtype, memory[i]);
    std::printf("%s: %s\n", input.name, text_of(shape).c_str());
    inputs.emplace_back(input.dtype, memory[i].data(), shape);
  }

  double best = 0;
  for (int call = 0; call < 10; ++call) {
    began = Clock::now();
    std::vector<rt::Tensor> results = f(inputs);
    double took = milliseconds_since(began);
    if (call == 0) std::printf("first call %.3f ms\n", took);
    best = call == 0 ? took : std::min(best, took);
    if (call == 9)
      for (const rt::Tensor& y : results) std::printf("result: %s\n", text_of(y.shape()).c_str());
  }
  std::printf("best call %.3f ms\n", best);
  if (f.device() != "cpu") time_on_device(f, inputs);
  return 0;
}

int main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  std::string device = "cpu";
  if (args.size() > 2 && args[0] == "--device") {
    device = args[1];
    args.erase(args.begin(), args.begin() + 2);
  }
  if (args.empty())
    return std::fprintf(stderr, "usage: run_model [--device D] model.tnx [FILE...]\n"), 2;
  try {
    return run(args, device);
  } catch (const rt::Error& error) {
    std::fprintf(stderr, "run_model: %s\n", error.what());
    return 1;
  }
}
