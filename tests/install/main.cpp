// A user's program: it compiles, links and runs against the installed library alone.
#include <tenon/tenon.h>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  tn::Tensor x = tn::array<float>({1, 2, 3, 4, 5, 6});
  tn::Tensor m = tn::reshape(x, {2, 3});
  tn::Tensor gram = tn::matmul(m, tn::matrix_transpose(m));
  if (gram.to_vector<float>() != std::vector<float>{14, 32, 32, 77}) return 1;
  if (tn::sum(m * 2 + 1).item<float>() != 48) return 2;
  try {
    tn::matmul(m, m);
    return 3;
  } catch (const tn::UserError& error) {
    std::printf("%s\ncaught: %s\n", gram.to_string().c_str(), error.what());
  }
  if (argc < 2) return 0;
  auto scaled = [](const tn::Tensor& x) { return tn::gelu(x) * 2; };
  tn::compile_ahead(scaled, {{.shape = {{1, 8, 16}, 2}, .name = "x"}}).save(argv[1]);
  return 0;
}
