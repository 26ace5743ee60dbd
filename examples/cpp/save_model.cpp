// Compiles a small network for batches of 1 to 64, saves it as one file, and loads it again.
#include <tenon/tenon.h>

#include <cstdio>

int main() {
  tn::Tensor hidden = tn::random::normal({4, 32}), out = tn::random::normal({32, 3});
  auto network = [=](const tn::Tensor& x) {
    return tn::softmax(tn::matmul(tn::gelu(tn::matmul(x, hidden)), out), {-1});
  };
  auto made =
      tn::compile_ahead(network, {{.shape = {{1, 8, 64, "batch"}, 4}, .name = "x"}},
                        {.name = "network", .constants = {{"hidden", hidden}, {"out", out}}});
  made.save("network.tnx");

  auto loaded = tn::Executable::load<tn::Tensor(tn::Tensor)>("network.tnx");
  std::printf("%s\n", loaded.to_text().c_str());
  std::printf("%s\n", loaded(tn::ones({2, 4})).to_string().c_str());

  try {
    loaded(tn::ones({100, 4}));
  } catch (const tn::UserError& problem) {
    std::printf("\n%s\n", problem.what());
  }
}
