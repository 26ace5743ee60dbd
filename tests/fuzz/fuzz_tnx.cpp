// Bad files: all that is done with a file before it runs, on files that libFuzzer changes.
#include <filesystem>
#include <random>

#include "executable/program.h"
#include "tenon/executable.h"
#include "tenon/tenon.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

using namespace tn;
using Section = tnx::Kind;

namespace {

std::shared_ptr<const tnx::File> opened(const uint8_t* data, size_t size) {
  return tnx::File::over(std::string(reinterpret_cast<const char*>(data), size));
}

/// Errors are what a bad file should give.
template <class F>
void expect_error(const F& f) {
  try {
    f();
  } catch (const UserError&) {
  } catch (const Unsupported&) {
  }
}

/// Kernels are read, and nothing is run. A file without trust is compiled again, which takes long.
void read_all(std::shared_ptr<const tnx::File> file, bool trust) {
  expect_error([&] { file->verify(); });
  expect_error([&] { Program::read(file, {.trust = trust}); });
}

/// Files to begin with. Those of level 0 need no machine code where the graph is compiled again.
void write_seeds(const std::filesystem::path& folder) {
  auto geglu = [](const Tensors& in) -> Tensors {
    Tensors halves = split(matmul(in[0], ones({2, 8})) + arange(8), 2, -1);
    return {halves[0] * gelu(halves[1])};
  };
  auto reduced = [](const Tensors& in) -> Tensors {
    return {sum(softmax(in[0]), Axes(0)), take(in[0], array<int64_t>({1, 0}), 1)};
  };
  Tensor right = ones({2, 8192});  // large enough to lie in the file as the kernel reads it
  auto packed = [&](const Tensors& in) -> Tensors { return {matmul(in[0], right)}; };
  InputInfo x{.shape = {{1, 2, 16, "batch"}, 2}, .name = "x"};
  auto seed = [&](const Function& f, int level, const char* name) {
    std::string path = folder / format("{}-{}", name, level);
    compile_ahead(f, {x}, {.optimization_level = level}).save(path);
  };
  for (int level : {0, 1, 3}) seed(geglu, level, "geglu"), seed(reduced, level, "reduced");
  seed(packed, 3, "packed");
  Mesh mesh = make_mesh({{"model", 2}});
  Tensor weight = [&] {
    MeshScope on(mesh);
    return shard(ones({2, 8}), {"", "model"});
  }();
  auto divided = [&](const Tensors& in) -> Tensors { return {matmul(in[0], weight)}; };
  compile_ahead(divided, {x}, {.optimization_level = 0, .mesh = mesh}).save(folder / "mesh-0");
}

/// The sections of a file, one of them changed.
std::string changed(const tnx::File& file, std::mt19937& random) {
  tnx::Writer writer;
  size_t chosen = random() % file.sections().size();
  for (const tnx::SectionInfo& info : file.sections()) {
    if (info.kind == Section::sums) continue;  // add_weights makes it
    if (info.kind == Section::weights) {
      BufferRef elements = file.weights(0, info.length);
      writer.add_weights({{elements.data(), elements.bytes()}});
      continue;
    }
    std::string bytes = file.read(info.kind, info.name);
    if (&info == &file.sections()[chosen]) {
      size_t size = bytes.size();
      bytes.resize(size + 64);
      auto* data = reinterpret_cast<uint8_t*>(bytes.data());
      bytes.resize(LLVMFuzzerMutate(data, size, bytes.size()));
    }
    writer.add(info.kind, info.name, bytes, info.codec, info.required);
  }
  return writer.bytes();
}

}  // namespace

/// The first argument is the folder of files that were interesting so far.
extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  if (*count > 1 && std::filesystem::is_directory((*arguments)[1])) write_seeds((*arguments)[1]);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bool trust = size > 0 && data[size - 1] % 8 != 0;
  expect_error([&] { read_all(opened(data, size), trust); });
  return 0;
}

/// Changes of compressed bytes would hardly ever come to what reads the sections.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  std::mt19937 random(seed);
  std::string result;
  if (random() % 8 != 0)
    expect_error([&] {
      auto file = opened(data, size);
      if (!file->sections().empty()) result = changed(*file, random);
    });
  if (result.empty() || result.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::copy(result.begin(), result.end(), data);
  return result.size();
}
