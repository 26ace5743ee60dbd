// Bad files: all that is done with a file before it runs, on files that libFuzzer changes.
#include <filesystem>
#include <fstream>
#include <random>

#include "ir/graph.h"
#include "loop/kernel.h"
#include "runtime/tnx.h"
#include "tenon/error.h"
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

void read_all(const tnx::File& file) {
  expect_error([&] { file.verify(); });
  for (const tnx::SectionInfo& info : file.sections())
    expect_error([&] {
      if (info.kind == Section::weights) return (void)file.weights(0, info.length);
      std::string bytes = file.read(info.kind, info.name);
      if (info.kind == Section::graph) to_text(parse_graph(bytes));
      if (info.kind == Section::plan) to_text(loop::parse_kernel(bytes));
    });
}

/// The sections of a file, one of them changed.
std::string changed(const tnx::File& file, std::mt19937& random) {
  tnx::Writer writer;
  size_t chosen = random() % file.sections().size();
  for (const tnx::SectionInfo& info : file.sections()) {
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
    writer.add(info.kind, info.name, bytes, info.codec);
  }
  return writer.bytes();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) { return 0; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  expect_error([&] { read_all(*opened(data, size)); });
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
