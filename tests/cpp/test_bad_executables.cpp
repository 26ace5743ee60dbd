// Files of executables that were damaged, or made to do harm: an error, or a file that loads.
#include <doctest/doctest.h>

#include <random>

#include "errors.h"
#include "eval/eval.h"
#include "executable/program.h"
#include "files.h"
#include "ir/node.h"
#include "tenon/tenon.h"

using namespace tn;
using Section = tnx::Kind;

namespace {

std::string saved(const Function& f, InputInfo x, int level) {
  Folder folder;
  std::string path = folder.path + "/f.tnx";
  compile_ahead(f, {std::move(x)}, {.optimization_level = level}).save(path);
  return slurp(path);
}

/// A function with a constant and a size that varies. At level 0 there is no machine code, and a
/// graph is compiled again in microseconds.
const std::string& sample() {
  auto gated = [](const Tensors& in) -> Tensors {
    Tensor weights = reshape(arange(16, {}, 1, DType::f32), {2, 8});
    Tensors halves = split(matmul(in[0], weights), 2, -1);
    return {halves[0] * gelu(halves[1]), sum(in[0], Axes(0))};
  };
  static const std::string bytes =
      saved(gated, {.shape = {{1, 2, 16, "batch"}, 2}, .name = "x"}, 0);
  return bytes;
}

/// One with machine code, and a constant that is there only in the order that a kernel reads.
const std::string& compiled() {
  static const std::string bytes = [] {
    Tensor weights = reshape(arange(128 * 128, {}, 1, DType::f32), {128, 128});
    auto gated = [&](const Tensors& in) -> Tensors { return {gelu(matmul(in[0], weights))}; };
    return saved(gated, {.shape = {{1, 8, 16, "batch"}, 128}, .name = "x"}, 3);
  }();
  return bytes;
}

/// One for two workers, with a constant that is divided among them.
const std::string& divided() {
  static const std::string bytes = [] {
    Mesh mesh = make_mesh({{"model", 2}});
    Tensor weights = [&] {
      MeshScope on(mesh);
      return shard(reshape(arange(16, {}, 1, DType::f32), {2, 8}), {"", "model"});
    }();
    Folder folder;
    std::string path = folder.path + "/f.tnx";
    auto f = [&](const Tensors& in) -> Tensors { return {matmul(in[0], weights)}; };
    InputInfo x{.shape = {{1, 2, 16, "batch"}, 2}, .name = "x"};
    compile_ahead(Function(f), {x}, {.optimization_level = 0, .mesh = mesh}).save(path);
    return slurp(path);
  }();
  return bytes;
}

/// What loading says; "" when it succeeds. Nothing but errors for users may come.
std::string error_of(std::string bytes, bool trust = true) {
  try {
    Program::read(tnx::File::over(std::move(bytes), "f"), {.trust = trust});
  } catch (const UserError& e) {
    return e.what();
  } catch (const Unsupported& e) {
    return e.what();
  }
  return "";
}

/// A file with other bytes in a section, and the checksum that belongs to them.
template <class Change>
std::string with(const std::string& whole, Section kind, const Change& change) {
  auto file = tnx::File::over(whole);
  tnx::Writer writer;
  for (const tnx::SectionInfo& info : file->sections()) {
    if (info.kind == Section::weights) {
      BufferRef weights = file->weights(0, info.length);
      writer.add_weights({{weights.data(), weights.bytes()}});
      continue;
    }
    std::string bytes = file->read(info.kind, info.name);
    if (info.kind == kind) change(bytes);
    writer.add(info.kind, info.name, bytes, info.codec, info.required);
  }
  return writer.bytes();
}

std::string with_graph(std::string_view text) {
  return error_of(with(sample(), Section::graph, [&](std::string& bytes) { bytes = text; }));
}

void damage(std::string& bytes, std::mt19937& random) {
  static constexpr std::string_view kTexts[] = {
      "9223372036854775807", "-1", "%0", "batch", "[", "0", "(", "}\n", "f64", "  %7 = "};
  for (unsigned k = 0; k <= random() % 3 && !bytes.empty(); ++k) {
    size_t at = random() % bytes.size(), length = random() % 8;
    if (random() % 4 == 0)
      bytes[at] ^= static_cast<char>(1 << random() % 8);
    else if (random() % 3 == 0)
      bytes.replace(at, length, kTexts[random() % std::size(kTexts)]);
    else if (random() % 2 == 0)
      bytes.insert(at, bytes.substr(random() % bytes.size(), 4 * length));
    else
      bytes.erase(at, length);
  }
}

}  // namespace

TEST_CASE("bad executables: cut off anywhere") {
  REQUIRE(error_of(sample()).empty());
  for (size_t k = 0; k < 2000; ++k) {
    size_t length = k * sample().size() / 2000;
    CAPTURE(length);
    REQUIRE(error_of(sample().substr(0, length)).starts_with("load: f"));
  }
}

TEST_CASE("bad executables: a bit flipped anywhere is an error") {
  for (const std::string& whole : {sample(), compiled()})
    for (size_t at = 0; at < whole.size(); at += whole.size() > 20'000 ? 7 : 1) {
      CAPTURE(at);
      std::string bytes = whole;
      bytes[at] ^= static_cast<char>(1 << at % 8);
      REQUIRE(error_of(bytes).starts_with("load: f"));
    }
}

TEST_CASE("bad executables: no result comes from weights that were not verified") {
  Tensor weights = arange(1 << 21, {}, 1, DType::f32);  // 8 MiB: too large to verify when loading
  auto scaled = [&](const Tensors& in) -> Tensors { return {in[0] * weights}; };
  std::string whole = saved(scaled, {.shape = {1 << 21}, .name = "x"}, 3);
  Tensor x = ones({1 << 21});
  eval({x});
  ProgramValue arg{type_of(x), bound_of(slot_of(x))};
  auto read = [](const std::string& bytes, std::optional<bool> verify) {
    return Program::read(tnx::File::over(bytes, "f"), {.trust = true, .verify = verify});
  };
  CHECK(read(whole, {})->run({&arg, 1}, {}).size() == 1);
  std::string flipped = whole;
  auto place = tnx::File::over(whole)->sections()[0].place;
  flipped[place + (5 << 20)] ^= 4;
  CHECK(contains(error_in([&] { read(flipped, true); }), "load: f is damaged: the checksum"));
  auto loaded = read(flipped, {});
  for (int k = 0; k < 2; ++k) {
    CHECK(contains(error_in([&] { loaded->run({&arg, 1}, {}); }), "load: f is damaged"));
    CHECK(contains(error_in([&] { loaded->options(); }), "load: f is damaged"));
    tnx::Writer writer;  // whose checksums would cover the damage
    CHECK(contains(error_in([&] { loaded->write(writer, {}, true); }), "load: f is damaged"));
  }
  CHECK(read(flipped, false)->run({&arg, 1}, {}).size() == 1);
}

/// Damages sections of a file, each `times` times. Returns how many of the files could be loaded.
static int loaded_of_damaged(const std::string& file, std::initializer_list<Section> sections,
                             int times, uint32_t seed) {
  std::mt19937 random(seed);
  int loaded = 0;
  for (Section kind : sections)
    for (int k = 0; k < times; ++k) {
      CAPTURE(static_cast<int>(kind));
      CAPTURE(k);
      std::string error;
      REQUIRE_NOTHROW(error =
                          error_of(with(file, kind, [&](std::string& b) { damage(b, random); })));
      REQUIRE((error.empty() || error.starts_with("load: f")));
      loaded += error.empty();
    }
  return loaded;
}

TEST_CASE("bad executables: sections of others, with the right checksums") {
  CHECK(loaded_of_damaged(sample(), {Section::meta, Section::graph, Section::constants}, 1000, 5) <
        1500);
}

TEST_CASE("bad executables: meshes of others, with the right checksums") {
  REQUIRE(error_of(divided()).empty());
  loaded_of_damaged(divided(), {Section::mesh, Section::constants, Section::graph}, 200, 9);
  auto with_mesh = [](std::string_view text, const std::vector<std::string>& divisions) {
    return error_of(with(divided(), Section::mesh, [&](std::string& bytes) {
      ByteWriter mesh;
      mesh(text), mesh(divisions);
      bytes = mesh.bytes;
    }));
  };
  using Texts = std::vector<std::string>;
  CHECK(with_mesh("model=2", Texts{"@[-,model]"}).empty());
  std::string_view mesh = "load: f: section mesh: ";
  CHECK(contains(with_mesh("model=2", Texts{}), "constants have no divisions"));
  CHECK(contains(with_mesh("model=3", Texts{"@[-,model]"}), "does not fit dimension 1"));
  CHECK(contains(with_mesh("model=2", Texts{"@[-,model] partial(model)"}), "is not partial"));
  CHECK(contains(with_mesh("model=2", Texts{"@[-,model:9223372036854775807]"}), "does not fit"));
  for (std::string_view text : {"", "model", "model=0", "model=300", "model=2, model=2", "a b=2",
                                "a=256, b=256, c=256, d=256, e=256, f=256, g=256, h=256"})
    CHECK(with_mesh(text, Texts{"@[-,-]"}).starts_with(mesh));
}

TEST_CASE("bad executables: kernels of others, with the right checksums") {
  std::mt19937 random(7);
  REQUIRE(error_of(compiled()).empty());
  REQUIRE(error_of(compiled(), false).empty());
  auto error = [&](Section kind, bool trust) {
    return error_of(with(compiled(), kind, [&](std::string& b) { damage(b, random); }), trust);
  };
  for (Section kind : {Section::constants, Section::plan, Section::code, Section::seal})
    for (int k = 0; k < 520; ++k) {
      bool trust = k < 500;  // without, the graph is compiled again where the rest allows it
      CAPTURE(static_cast<int>(kind));
      CAPTURE(k);
      std::string text;
      REQUIRE_NOTHROW(text = error(kind, trust));
      REQUIRE((text.empty() || text.starts_with("load: f")));
    }
}

TEST_CASE("bad executables: packed constants of other ops") {
  auto with_plan = [](std::string_view from, std::string_view to) {
    std::string bytes = with(compiled(), Section::plan, [&](std::string& plan) {
      size_t at = plan.find(from);
      REQUIRE(at != plan.npos);
      for (; at != plan.npos; at = plan.find(from, at + 1)) plan.replace(at, from.size(), to);
    });
    return error_of(bytes, false);
  };
  // More rows than the constant has would be unpacked into it.
  CHECK(contains(with_plan("f32[8,128]", "f32[8,999]"), "load: f: section plan: "));
  CHECK(contains(with_plan("rhs_contract=[0]", "rhs_contract=[7]"), "load: f: section plan: "));
}

TEST_CASE("bad executables: graphs that are none") {
  CHECK(contains(with_graph(""), "load: f: section graph: "));
  CHECK(contains(with_graph("func @main(%x: f32[batch,2]) -> f32[batch,2] {\n"
                            "  %0 = add %1, %x : f32[batch,2]\n"
                            "  %1 = add %0, %x : f32[batch,2]\n"
                            "  return %1\n}\n"),
                 "line 2: %1 is not defined"));
  CHECK(contains(with_graph("func @main() -> f32[] {\n  return %0\n}\n"), "is not defined"));
  CHECK(contains(with_graph(std::string(100000, '(')), "load: f: section graph: "));
  std::string deep;
  for (int k = 0; k < 20000; ++k) deep += "func @f() -> f32[] {\n  %0 = call {body=";
  CHECK(contains(with_graph(deep), "load: f: section graph: "));
  CHECK(contains(with_graph("func @main(%x: f32[" + std::string(100000, '(') + "]"),
                 "load: f: section graph: "));
}

#ifndef __SANITIZE_ADDRESS__  // which keeps what was freed
/// The most memory that was in use since `forget_peak`, in KiB.
static long peak() {
  std::string status = slurp("/proc/self/status");
  return std::stol(status.substr(status.find("VmHWM:") + 6));
}
static void forget_peak() { spill("/proc/self/clear_refs", "5"); }

TEST_CASE("bad executables: they ask for little memory") {
  sample();
  std::mt19937 random(6);
  forget_peak();
  long before = peak();
  for (Section kind : {Section::meta, Section::graph, Section::constants})
    for (int k = 0; k < 300; ++k)
      error_of(with(sample(), kind, [&](std::string& b) { damage(b, random); }));
  CHECK(peak() - before < 64 << 10);
}
#endif
