#include <doctest/doctest.h>

#include <csignal>
#include <cstring>
#include <random>
#include <thread>

#include "base/text.h"
#include "errors.h"
#include "files.h"
#include "storage/checksum.h"
#include "tenon/files.h"
#include "tenon/nn.h"
#include "tenon/operators.h"
#include "tenon/ops.h"

using namespace tn;

namespace {

bool same(const NamedTensors& a, const NamedTensors& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.dtype() == y.second.dtype() &&
           x.second.shape() == y.second.shape() &&
           std::memcmp(x.second.data(), y.second.data(), size_t(x.second.bytes())) == 0;
  });
}

/// One of every type but complex128, a scalar and nothing.
NamedTensors sample() {
  NamedTensors all;
  for (int t = 0; t < kDTypes; ++t) {
    auto type = static_cast<DType>(t);
    if (type == DType::c128) continue;
    all.emplace_back(std::string(name_of(type)), astype(arange(3 + t % 2) < 2, type));
  }
  all.emplace_back("a \"quoted\" näme\n", Tensor(2.5));
  all.emplace_back("", zeros({0, 3}));
  return all;
}

std::string with_header(const std::string& header, size_t elements = 0) {
  uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  return bytes + header + std::string(elements, '\1');
}

std::string error_of(const std::string& bytes) {
  return error_in([&] { parse_safetensors(bytes, "f"); });
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return format(R"({{"dtype":"{}","shape":[{}],"data_offsets":[{}]}})", dtype, shape, offsets);
}

}  // namespace

TEST_CASE("safetensors: what is written is read, in memory and in files") {
  Folder folder;
  std::string path = folder.path + "/f.safetensors";
  Metadata texts{{"format", "pt"}, {"ü", "\x01\"\n"}};
  std::string bytes = safetensors_bytes(sample(), texts);
  save_safetensors(path, sample(), texts);
  CHECK(slurp(path) == bytes);
  for (bool verify : {false, true}) {
    for (const TensorFile& file :
         {load_safetensors(path, verify), parse_safetensors(bytes, "f", verify)}) {
      CHECK(same(file.tensors, sample()));
      CHECK(file.metadata == texts);
    }
  }
  CHECK(parse_safetensors(safetensors_bytes({})).tensors.empty());
  CHECK(parse_safetensors(with_header("{}")).tensors.empty());
}

TEST_CASE("safetensors: tensors of whole cache lines are aligned to them, all others to elements") {
  NamedTensors all = {{"odd", ones({3}, DType::u8)}, {"row", ones({4})}, {"large", ones({8, 16})}};
  TensorFile file = parse_safetensors(safetensors_bytes(all));
  CHECK(same(file.tensors, all));
  auto place = [&](size_t i) { return reinterpret_cast<uintptr_t>(file.tensors[i].second.data()); };
  CHECK(place(2) % 64 == 0);
  CHECK(place(1) == place(2) + 512);
  CHECK(place(0) == place(1) + 16);
}

TEST_CASE("safetensors: elements that are not aligned are copied") {
  std::string bytes = with_header(
      format(R"({{"b":{},"x":{}}})", entry("U8", "1", "0,1"), entry("F32", "1", "1,5")), 5);
  TensorFile file = parse_safetensors(bytes);
  CHECK(file.tensors[1].second.to_vector<float>()[0] == std::bit_cast<float>(0x01010101));
}

TEST_CASE("safetensors: a file may be replaced while its tensors are used") {
  Folder folder;
  std::string path = folder.path + "/f.safetensors";
  save_safetensors(path, {{"x", arange(100'000)}});
  Tensor old = load_safetensors(path).tensors[0].second;
  save_safetensors(path, {{"x", old + 1}});
  CHECK(load_safetensors(path).tensors[0].second.data<int64_t>()[99'999] == 100'000);
  CHECK(old.data<int64_t>()[99'999] == 99'999);
  CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 1);
}

TEST_CASE("safetensors: what cannot be saved") {
  auto error = [](const NamedTensors& tensors, const Metadata& texts = {}) {
    return error_in([&] { safetensors_bytes(tensors, texts); });
  };
  CHECK(contains(error({{"z", astype(ones({2}), DType::c128)}}),
                 "tensor 'z': safetensors has no c128[2]\n  hint: save real(x)"));
  CHECK(contains(error({{"a", ones({2})}, {"a", ones({2})}}), "two tensors are called 'a'"));
  CHECK(contains(error({{"__metadata__", ones({2})}}), "the name '__metadata__' is reserved"));
  CHECK(contains(error({}, {{"tenon.checksum", ""}}), "is reserved"));
  CHECK(contains(error({}, {{"tenon.format", ""}}), "is reserved"));
  CHECK(contains(error({{"\xff", ones({2})}}), "not UTF-8"));
}

TEST_CASE("safetensors: what is wrong with a file is said, with its name and the tensor's") {
  auto one = [](const std::string& fields) { return with_header("{\"x\":" + fields + "}", 8); };
  std::string good = entry("F32", "2", "0,8");
  CHECK(error_of(one(good)) == "");
  struct Case {
    std::string bytes, error;
  };
  for (const Case& c : std::vector<Case>{
           {"", "load: f is empty"},
           {"1234567", "load: f is damaged: it has 7 bytes"},
           {std::string(16, '\xff'), "load: f is not a safetensors file: invalid header"},
           {with_header("[]"),
            "load: f is not a safetensors file: its header is not a JSON object"},
           {with_header("{}").substr(0, 9), "it is cut off: its header has 1 of 2 bytes"},
           {with_header("{\"x\":"), "its header is not valid JSON at byte 6"},
           {with_header("{} {}"), "its header is not valid JSON at byte 4"},
           {with_header("{\"\xff\":1}"), "its header is not valid JSON"},
           {with_header("{\"x\":3}"), "'x': a number, not an object"},
           {with_header("{\"x\":[]}"), "'x': a list, not an object"},
           {one("{}"), "'x': no 'dtype'"},
           {one(R"({"dtype":"F32"})"), "'x': no 'shape'"},
           {one(R"({"dtype":"F32","shape":[2]})"), "'x': 'data_offsets' are not two numbers"},
           {one(entry("F32", "2", "0,4,8")), "'x': 'data_offsets' are not two numbers"},
           {one(entry("F32", "2", "0")), "'x': 'data_offsets' are not two numbers"},
           {one(entry("Q4", "2", "0,8")), "tensor 'x' has elements of type 'Q4'"},
           {one(entry("F32", "-2", "0,8")), "'x': a negative number for 'shape'"},
           {one(entry("F32", "2.0", "0,8")), "'x': a fraction for 'shape'"},
           {one(entry("F32", "null", "0,8")), "'x': null for 'shape'"},
           {one(entry("F32", "[2]", "0,8")), "'x': a list for 'shape'"},
           {one(entry("F32", "{}", "0,8")), "'x': an object for 'shape'"},
           {one(entry("F32", "18446744073709551615", "0,8")), "'x': a number for 'shape'"},
           {one(entry("F32", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2", "0,8")), "more than 16 numbers"},
           {one(entry("F32", "4294967296,4294967296,2", "0,8")), "'x': 8 bytes for float32[42949"},
           {one(entry("F32", "3", "0,8")), "'x': 8 bytes for float32[3]"},
           {one(entry("F32", "2", "8,0")), "'x': it ends at byte 0, before it begins at byte 8"},
           {one(entry("F32", "2", "8,16")), "it is cut off: 'x' ends at byte 16 of 8"},
           {one(entry("F32", "1", "4,8")), "the bytes before 'x' belong to no tensor: 0 to 4"},
           {one(entry("F32", "1", "0,4")), "it has 8 bytes of elements, expected 4"},
           {one(good + ",\"x\":" + good), "it has 'x' twice"},
           {one(good + ",\"y\":" + entry("F32", "1", "4,8")), "'y' overlaps"},
           {one(R"({"dtype":"F32","dtype":"F32"})"), "'x': a text for 'dtype'"},
           {one(R"({"color":"red"})"), "'x': a text for 'color'"},
           {one(R"({"shape":[],"shape":[]})"), "'x': a list for 'shape'"},
           {with_header(R"({"__metadata__":{"a":1}})"), "'__metadata__': a number for 'a'"},
           {with_header(R"({"__metadata__":{"a":"","a":""}})"), "its metadata has 'a' twice"},
           {with_header(std::string(99, '{')), "its header is not valid JSON at byte 2"},
           {with_header("{\"x\":" + std::string(100'000, '[')), "'x': a list, not an object"},
           {with_header(format("{{\"{}\":1}}", std::string(1000, 'n'))), "nnn…': a number"}})
    CHECK_MESSAGE(contains(error_of(c.bytes), c.error), error_of(c.bytes), " for ", c.error);
  CHECK(contains(error_of(with_header(format("{{\"m\":{}}}", entry("BOOL", "2", "0,2"))) + "\1\2"),
                 "'m': boolean elements other than 0 and 1"));
  CHECK(contains(error_in([] { load_safetensors("/no/such"); }), "load: cannot open /no/such"));
}

TEST_CASE("safetensors: every cut and every flipped bit is an error") {
  std::string bytes = safetensors_bytes(sample(), {{"note", "some \x1f text"}});
  for (size_t size = 0; size < bytes.size(); ++size)
    CHECK(contains(error_of(bytes.substr(0, size)), "load: f is"));
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    CHECK_MESSAGE(contains(error_of(flipped), "load: f"), "bit ", bit);
    error_in([&] { parse_safetensors(flipped, "f", false); });  // an error or none
  }
}

TEST_CASE("safetensors: who asks for verification gets it, or an error") {
  std::string others = with_header(format("{{\"x\":{}}}", entry("U8", "1", "0,1")), 1);
  CHECK(parse_safetensors(others).tensors.size() == 1);
  std::string error = error_in([&] { parse_safetensors(others, "f", true); });
  CHECK(contains(error, "load: f has no checksum to verify\n  hint: "));
  // The checksum is that of blocks, which threads share; its digits may lie in any of them.
  NamedTensors large = {{"x", ones({3 << 20})}};
  std::string bytes = safetensors_bytes(large, {{"long", std::string(kSumBlock, 'x')}});
  CHECK(same(parse_safetensors(bytes, "f", true).tensors, large));
  for (size_t at : {size_t{100}, size_t{kSumBlock} + 5, bytes.size() - 1}) {
    std::string flipped = bytes;
    flipped[at] ^= 1;
    CHECK(contains(error_of(flipped), "load: f is damaged: its checksum"));
    if (at > 2 * kSumBlock) CHECK(!parse_safetensors(flipped, "f", false).tensors.empty());
  }
}

TEST_CASE("safetensors: the checksum of older files is compared") {
  std::string header =
      R"({"__metadata__":{"made":"by hand","tenon.xxh3":"36f0a5f567d38cc43fe2752cc36ba793"},)"
      R"("w":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})";
  std::string bytes = with_header(header) + std::string("\0\0\x80?\0\0\x80?\0\0\x80?", 12);
  for (std::optional<bool> verify : {std::optional<bool>(), {true}, {false}}) {
    TensorFile file = parse_safetensors(bytes, "f", verify);
    CHECK(same(file.tensors, {{"w", ones({3})}}));
    CHECK(file.metadata == Metadata{{"made", "by hand"}});
  }
  for (size_t at : {bytes.find("by hand"), bytes.find("36f0"), bytes.size() - 1}) {
    std::string flipped = bytes;
    flipped[at] ^= 1;
    CHECK(contains(error_of(flipped), "load: f is damaged: its checksum does not match\n  hint: "));
    CHECK(parse_safetensors(flipped, "f", false).tensors.size() == 1);
  }
}

TEST_CASE("safetensors: whoever is killed while saving leaves the old file or the new one") {
  Folder folder;
  std::string path = folder.path + "/f.safetensors";
  auto save = [&](int64_t version) {
    std::vector<int64_t> elements(1 << 17, version);
    save_safetensors(path, {{"x", from_bytes(elements.data(), DType::i64, Shape{1 << 17})}});
  };
  save(0);
  std::mt19937 random(3);
  for (int64_t k = 1; k <= 100; ++k) {
    pid_t child = spawn([&] {
      for (int64_t round = k;; ++round) save(round);
    });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 8000));
    kill(child, SIGKILL);
    CHECK(WIFSIGNALED(status_of(child)));
    Tensor x = load_safetensors(path, true).tensors[0].second;
    CHECK(std::ranges::count(x.to_vector<int64_t>(), *x.data<int64_t>()) == x.size());
  }
  save(1000);
  CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 1);
}

TEST_CASE("safetensors: the state of a model is what files take and give") {
  Folder folder;
  std::string path = folder.path + "/model.safetensors", arrays = folder.path + "/model.npz";
  nn::Linear model(2, 3), other(2, 3);
  save_safetensors(path, model.state_dict());
  other.load_state_dict(load_safetensors(path).tensors);
  CHECK(other.weight.to_vector<float>() == model.weight.to_vector<float>());
  save_npz(arrays, model.state_dict());
  other.load_state_dict(load_npz(arrays));
}
