// Classifies images with a saved executable, without Python and without the compiler.
//
//     classify digits.tnx images scores
//
// `images` holds float32 elements, one image after the other; the scores of the classes are written
// in the same format.
#include <tenon/runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace rt = tn::rt;

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point began) {
  return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

std::vector<float> read(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw rt::Error("cannot read " + path);
  std::vector<float> elements(static_cast<size_t>(file.tellg()) / sizeof(float));
  auto bytes = static_cast<std::streamsize>(elements.size() * sizeof(float));
  file.seekg(0).read(reinterpret_cast<char*>(elements.data()), bytes);
  return elements;
}

void write(const std::string& path, std::span<const float> elements) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(elements.data()),
             static_cast<std::streamsize>(elements.size_bytes()));
  if (!file.flush()) throw rt::Error("cannot write " + path);
}

void run(const std::string& model, const std::string& images_path, const std::string& scores_path) {
  auto began = Clock::now();
  rt::Executable classify(model);
  double loading = milliseconds_since(began);

  // All sizes but the first are those of one image.
  const tenon_rt_input& input = classify.input(0);
  std::vector<int64_t> shape{1};
  int64_t pixels = 1;
  for (int32_t k = 1; k < input.rank; ++k) {
    shape.push_back(input.sizes[k].opt);
    pixels *= shape.back();
  }
  std::vector<float> images = read(images_path);
  shape[0] = static_cast<int64_t>(images.size()) / pixels;

  std::vector<rt::Tensor> results = classify({{images, shape}});
  double best = 1e9;
  for (int call = 0; call < 20; ++call) {
    began = Clock::now();
    results = classify({{images, shape}});
    best = std::min(best, milliseconds_since(began));
  }
  write(scores_path, results[0].data<const float>());
  std::printf("loaded in %.2f ms, %lld images in %.2f ms\n", loading,
              static_cast<long long>(shape[0]), best);
}

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: classify model.tnx images scores\n"), 2;
  try {
    run(argv[1], argv[2], argv[3]);
  } catch (const rt::Error& error) {
    std::fprintf(stderr, "classify: %s\n", error.what());
    return 1;
  }
}
