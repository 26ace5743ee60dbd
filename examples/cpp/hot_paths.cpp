// Compiles hot loops automatically, and a region that a configuration file selects.
#include <tenon/tenon.h>

#include <chrono>
#include <cstdio>
#include <thread>

static float step(const tn::Tensor& x, const tn::Tensor& w) {
  tn::Tensor hidden = tn::relu(tn::matmul(x, w));
  tn::signal::Context region("score");  // a name, which means nothing without a configuration
  return tn::sum(tn::tanh(hidden) * 0.5f).item<float>();
}

int main() {
  // Often a file: tn::signal::load("config.yaml"), or TENON_CONFIG=config.yaml.
  tn::signal::load_text("score: {compile: {mode: reduce-overhead}}");
  tn::set_auto_compile(true, 5);
  tn::Tensor x = tn::ones({64, 32}), w = tn::full({32, 32}, 0.01f);
  tn::eval({x, w});

  float first = step(x, w);
  bool same = true;
  for (int i = 0; i < 200; ++i) {
    same = same && step(x, w) == first;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // it compiles beside the loop
  }
  std::printf("the same value in each step: %s\n", same ? "yes" : "no");
  for (const tn::HotPathInfo& path : tn::hot_paths())
    std::printf("%-7s %-20s %d runs\n", path.region.empty() ? "process" : path.region.c_str(),
                path.sequence.c_str(), static_cast<int>(path.count));
}
