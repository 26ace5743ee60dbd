// Generated code gives the interpreter's bits: the forms of kernels, at sizes around every
// boundary.
#include <algorithm>

#include "errors.h"
#include "loop/builder.h"
#include "native_kernels.h"
#include "runtime/threads.h"

using namespace tn;
using namespace tn::loop;

namespace {

std::string with_size(std::string text, std::string_view name, int64_t n) {
  for (size_t at = text.find(name); at != text.npos; at = text.find(name, at))
    text.replace(at, name.size(), std::to_string(n));
  return text;
}

/// One code for all sizes, whatever size it was made for.
void check_symbolic(const std::string& text, std::vector<int64_t> sizes,
                    const cpu::CodeTarget& target) {
  Kernel kernel = parse_kernel(text);
  sizes.insert(sizes.end(), {3, 7, 100});
  if (*std::max_element(sizes.begin(), sizes.end()) > 5000)
    sizes.insert(sizes.end(), {1023, 1024, 1025, 5000});
  Dim symbol = Dim::symbol("N");
  for (int64_t likely : {1, 40, 100000}) {
    CAPTURE(likely);
    cpu::clear_kernel_cache();
    Binding guess{symbol, likely};
    KernelRequest request{&kernel, KernelForm::whole, {&guess, 1}};
    KernelCounts counts;
    auto code = cpu::compile_kernels({&request, 1}, target, &counts)[0];
    CHECK(counts.compiled == (code ? 1 : 0));
    CHECK((code || target.level == CpuLevel::v2));
    if (!code) return;
    for (int64_t n : sizes) {
      Binding size{symbol, n};
      if (n > 0) compare(kernel, *code, {&size, 1}, static_cast<uint32_t>(n));
    }
  }
}

/// On every target, at every size of N.
void check(const std::string& text, std::initializer_list<int64_t> sizes) {
  for (const cpu::CodeTarget& target : native_targets()) {
    CAPTURE(static_cast<int>(target.level));
    CAPTURE(target.vector_bits);
    for (int64_t n : sizes) {
      CAPTURE(n);
      Kernel kernel = parse_kernel(with_size(text, "N", n));
      bool native = agrees(kernel, target, static_cast<uint32_t>(n));
      CHECK((native || target.level == CpuLevel::v2));
    }
    check_symbolic(text, sizes, target);
  }
}

constexpr std::initializer_list<int64_t> kSizes = {0,  5,  9,  1,   2,    15,   16,   17,
                                                   63, 64, 65, 129, 1000, 4097, 20000};

}  // namespace

TEST_CASE("native: flat kernels") {
  check(R"(kernel f(x: f32[N], y: f32[N]) -> (z: f32[N]) {
    axes p0:N par
    v0 = load x[p0] : f32
    v1 = load y[p0] : f32
    v2 = mul v0, v1 : f32
    v3 = add v2, v0 : f32
    v4 = max v3, v1 : f32
    store z[p0] = v4
  })",
        kSizes);
  check(R"(kernel f(x: f32[N]) -> (z: f32[N]) {
    axes p0:N par
    v0 = load x[p0] : f32
    v1 = erf v0 : f32
    v2 = mul v0, v1 : f32
    store z[p0] = v2
  })",
        {1, 17, 1000});
}

TEST_CASE("native: broadcasts and rows") {
  check(R"(kernel f(x: f32[7*N], y: f32[N], w: f32[7]) -> (z: f32[7*N]) {
    axes p0:7 par, p1:N par
    v0 = load x[N*p0 + p1] : f32
    v1 = load y[p1] : f32
    v2 = load w[p0] : f32
    v3 = mul v0, v1 : f32
    v4 = add v3, v2 : f32
    store z[N*p0 + p1] = v4
  })",
        kSizes);
}

TEST_CASE("native: sums and extremes along rows") {
  for (const char* monoid : {"add", "max", "min", "mul"})
    check(std::string(R"(kernel f(x: f32[5*N]) -> (z: f32[5]) {
      axes p0:5 par, r1:N red
      v0 = load x[N*p0 + r1] : f32
      v1 = reduce )") +
              monoid + R"( v0 over r1 : f32
      store z[p0] = v1
    })",
          kSizes);
}

TEST_CASE("native: softmax") {
  check(R"(kernel softmax(x: f32[9*N]) -> (z: f32[9*N]) {
    axes p0:9 par, r1:N red
    v0 = load x[N*p0 + r1] : f32
    v1 = reduce max v0 over r1 : f32
    v2 = sub v0, v1 : f32
    v3 = exp v2 : f32
    v4 = reduce add v3 over r1 : f32
    v5 = div v3, v4 : f32
    store z[N*p0 + r1] = v5
  })",
        kSizes);
}

TEST_CASE("native: columns") {
  check(R"(kernel mean(x: f32[37*N]) -> (z: f32[37*N], i: i64[37]) {
    axes p0:37 par, r1:N red
    v0 = load x[p0 + 37*r1] : f32
    v1 = reduce add v0 over r1 : f32
    v2 = sub v0, v1 : f32
    v3 = reduce argmax v2 over r1 : i64
    store z[p0 + 37*r1] = v2
    store i[p0] = v3
  })",
        kSizes);
  for (const char* monoid : {"add", "max"})
    check(std::string(R"(kernel f(x: f32[37*N]) -> (z: f32[37]) {
      axes p0:37 par, r1:N red
      v0 = load x[p0 + 37*r1] : f32
      v1 = reduce )") +
              monoid + R"( v0 over r1 : f32
      store z[p0] = v1
    })",
          kSizes);
}

TEST_CASE("native: long rows are cut, and their chunks reduced as rows are") {
  Dim symbol = Dim::symbol("N");
  for (const char* monoid : {"add", "max", "argmax"})
    for (int64_t rows : {1, 3, 40}) {
      const char* type = monoid == std::string("argmax") ? "i64" : "f32";
      std::string text = format(R"(kernel f(x: f32[{1}*N]) -> (y: {0}[{1}], z: {0}[{1}]) {{
        axes p0:{1} par, r1:N red
        v0 = load x[N*p0 + r1] : f32
        v1 = mul v0, v0 : f32
        v2 = reduce {2} v0 over r1 : {0}
        v3 = reduce {2} v1 over r1 : {0}
        store y[p0] = v2
        store z[p0] = v3
      }})",
                                type, rows, monoid);
      CAPTURE(text);
      Kernel kernel = parse_kernel(text);
      for (int64_t extent : {16384, 16385, 50000, 1200001}) {
        if (rows * extent > 4000000) continue;
        CHECK(agrees(parse_kernel(with_size(text, "N", extent)), {}, 7));
        for (int64_t likely : {100, 100000}) {  // in one phase, and in two
          cpu::clear_kernel_cache();
          Binding guess{symbol, likely}, size{symbol, extent};
          KernelRequest request{&kernel, KernelForm::whole, {&guess, 1}};
          auto code = cpu::compile_kernels({&request, 1})[0];
          REQUIRE(code);
          CHECK(code->bind({&size, 1})->is_one_phase == !(likely == 100000 && rows < 16));
          compare(kernel, *code, {&size, 1}, 7);
        }
      }
    }
}

TEST_CASE("native: scans, gathers and scatters in order") {
  check(R"(kernel f(x: f32[11*N]) -> (z: f32[11*N], w: f32[11*N]) {
    axes p0:11 par, s1:N scan
    v0 = load x[N*p0 + s1] : f32
    v1 = scan add v0 over s1 reverse : f32
    v2 = scan max v0 over s1 reverse exclusive : f32
    store z[N*p0 + s1] = v1
    store w[N*p0 + s1] = v2
  })",
        {1, 2, 64, 100});
  Binding rows{Dim::symbol("N"), 300};
  for (Dim n : {Dim(300), rows.symbol})
    for (Combine combine : {Combine::set, Combine::add})
      for (int64_t inner : {1, 5, 40}) {
        Builder b("scatter");
        int p = b.add_axis(n), q = b.add_axis(inner);
        int in = b.add_buffer("x", DType::f32, n * inner), at = b.add_buffer("i", DType::i32, n);
        int out = b.add_buffer("y", DType::f32, 7 * inner, true);
        PolyTable& t = b.polys();
        PolyId row = b.value_index(b.load(at, b.axis(p)), 7);
        S x = b.load(in, t.add(t.scale(b.axis(p), inner), b.axis(q)));
        b.store(out, t.add(t.scale(row, inner), b.axis(q)), x, kNone, combine);
        Kernel kernel = b.finish();
        KernelRequest request{&kernel};
        for (const cpu::CodeTarget& target : native_targets()) {
          auto code = cpu::compile_kernels({&request, 1}, target)[0];
          REQUIRE(code);
          compare(kernel, *code, {&rows, 1}, 3, {}, 7);
        }
      }
}

TEST_CASE("native: arguments take the type of their value") {
  Builder b("scale");
  int axis = b.add_axis(100), in = b.add_buffer("x", DType::f32, 100);
  int out = b.add_buffer("y", DType::f32, 100, true);
  S factor = b.argument(b.add_argument(), DType::f32),
    whole = b.argument(b.add_argument(), DType::i32);
  b.store(out, b.axis(axis), b.load(in, b.axis(axis)) * factor + sc::cast(whole, DType::f32));
  Kernel kernel = b.finish();
  for (const cpu::CodeTarget& target : native_targets()) CHECK(agrees(kernel, target, 3, {0.3, 7}));
}

TEST_CASE("native: a tile kernel covers its ranges alone") {
  std::vector<Binding> sizes{{Dim::symbol("B"), 2}, {Dim::symbol("R"), 3}, {Dim::symbol("C"), 70}};
  for (const char* axes : {"p0:2 par, p1:3 par, p2:70 par", "p0:B par, p1:3 par, p2:70 par",
                           "p0:B par, p1:R par, p2:C par"}) {
    bool rows = contains(axes, "R");
    std::string batch = rows ? "R*C" : "210", row = rows ? "C" : "70";
    Kernel kernel = parse_kernel(format(R"(kernel bias(x: f32[420], b: f32[70]) -> (z: f32[420]) {{
      axes {0}
      v0 = load x[{1}*p0 + {2}*p1 + p2] : f32
      v1 = load b[p2] : f32
      v2 = add v0, v1 : f32
      store z[{1}*p0 + {2}*p1 + p2] = v2
    }})",
                                        axes, batch, row));
    for (const cpu::CodeTarget& target : native_targets()) {
      KernelRequest request{&kernel, KernelForm::tile};
      auto native = cpu::compile_kernels({&request, 1}, target)[0];
      REQUIRE(native);
      RandomBuffers got(kernel, 1), expected(kernel, 1);
      auto* x = static_cast<float*>(expected.pointers[0]);
      auto* bias = static_cast<float*>(expected.pointers[1]);
      auto* z = static_cast<float*>(expected.pointers[2]);
      for (int r = 1; r < 3; ++r)
        for (int c = 5; c < 66; ++c) z[210 + 70 * r + c] = x[210 + 70 * r + c] + bias[c];
      run_tile(cpu::native_of(*native->bind(sizes)), got.pointers.data(), nullptr, {1, 1, 3, 5, 66});
      CHECK(first_difference(kernel, expected, got) == "");
    }
  }
}

TEST_CASE("native: equal kernels are compiled once, whatever their names") {
  auto text = [](const char* name) {
    return format(
        "kernel {}(x: f32[12345]) -> (z: f32[12345]) {{\n axes p0:12345 par\n "
        "v0 = load x[p0] : f32\n v1 = neg v0 : f32\n store z[p0] = v1\n}}",
        name);
  };
  Kernel a = parse_kernel(text("first")), b = parse_kernel(text("second"));
  KernelCacheStats before = cpu::kernel_cache_stats();
  KernelRequest requests[] = {{&a}, {&b}, {&a}};
  auto kernels = cpu::compile_kernels(requests);
  KernelCacheStats after = cpu::kernel_cache_stats();
  CHECK(kernels[0] == kernels[1]);
  CHECK(kernels[0] == kernels[2]);
  CHECK(after.compiled - before.compiled == 1);
  CHECK(after.hits - before.hits == 2);
  CHECK(contains(cpu::assembly_text(requests[0]), "body:"));
  CHECK(contains(cpu::ir_text(requests[0]), "define void @body"));
}

TEST_CASE("native: a kernel for the interpreter says why") {
  auto why = [](std::string_view step) {
    Kernel kernel = parse_kernel(
        format("kernel f(x: f32[N]) -> (z: f32[N]) {{\n axes p0:N par\n v0 = load x[p0] : f32\n "
               "v1 = {} : f32\n store z[p0] = v1\n}}",
               step));
    KernelRequest request{&kernel};
    std::string reason = cpu::why_interpreted(request);
    CHECK((cpu::compile_kernels({&request, 1})[0] == nullptr) == (reason != ""));
    return reason;
  };
  CHECK(why("neg v0") == "");
  CHECK(contains(why("sin v0"), "angles"));
  CHECK(contains(why("rem v0, v0"), "remainder of floats"));
}

TEST_CASE("native: without symbols every call runs the same object") {
  Kernel fixed = parse_kernel(
      "kernel f(x: f32[8]) -> (z: f32[8]) {\n axes p0:8 par\n v0 = load x[p0] : f32\n "
      "store z[p0] = v0\n}");
  KernelRequest request{&fixed};
  auto code = cpu::compile_kernels({&request, 1})[0];
  CHECK(code->bind() == code->bind());
}

TEST_CASE("native: axes side by side in one sweep, of any number") {
  check(R"(kernel norm(x: f32[147*N], w: f32[49]) -> (z: f32[147*N], s: f32[3]) {
    axes p0:3 par, r1:N red, r2:49 red
    v0 = load x[147*r1 + 49*p0 + r2] : f32
    v1 = load w[r2] : f32
    v2 = mul v0, v1 : f32
    v3 = reduce add v2 over r1 r2 : f32
    v4 = sub v0, v3 : f32
    store z[147*r1 + 49*p0 + r2] = v4
    store s[p0] = v3
  })",
        {1, 2, 7, 100, 1000});
  check(R"(kernel digits(x: f32[7*N], w: f32[5]) -> (z: f32[7*N]) {
    axes p0:7*N par
    v0 = load x[p0] : f32
    v1 = load w[((p0 + 3)//7)%5] : f32
    v2 = mul v0, v1 : f32
    store z[p0] = v2
  })",
        kSizes);
}

TEST_CASE("native: transposes by tiles, and axes that are one") {
  check(R"(kernel t(x: f32[192*N], y: bf16[192*N], b: f32[N]) -> (z: f32[192*N], w: bf16[192*N]) {
    axes p0:3 par, p1:N par, p2:64 par
    v0 = load x[64*N*p0 + p1 + N*p2] : f32
    v1 = load b[p1] : f32
    v2 = add v0, v1 : f32
    v3 = load y[64*N*p0 + p1 + N*p2] : bf16
    store z[64*N*p0 + 64*p1 + p2] = v2
    store w[64*N*p0 + 64*p1 + p2] = v3
  })",
        {1, 15, 16, 33, 64, 128});
  check(R"(kernel back(x: f32[120*N], y: f32[120*N], b: f32[40]) -> (z: f32[120*N]) {
    axes p0:3 par, p1:40 par, p2:N par
    v0 = load x[40*N*p0 + p1 + 40*p2] : f32
    v1 = load b[p1] : f32
    v2 = add v0, v1 : f32
    v3 = load y[40*N*p0 + N*p1 + p2] : f32
    v4 = mul v2, v3 : f32
    store z[40*N*p0 + N*p1 + p2] = v4
  })",
        {1, 15, 16, 17, 33, 600});
  check(R"(kernel square(x: f64[2*N*N], y: f64[N]) -> (z: f64[2*N*N]) {
    axes p0:2 par, p1:N par, p2:N par
    v0 = load x[N*N*p0 + p1 + N*p2] : f64
    v1 = load y[p2] : f64
    v2 = add v0, v1 : f64
    store z[N*N*p0 + N*p1 + p2] = v2
  })",
        {1, 2, 16, 17, 70});
  check(R"(kernel m(x: f32[35*N], b: f32[N]) -> (z: f32[35*N], s: f32[7]) {
    axes p0:7 par, r1:5 red, r2:N red
    v0 = load x[5*N*p0 + N*r1 + r2] : f32
    v1 = reduce add v0 over r1 r2 : f32
    v2 = sub v0, v1 : f32
    store z[5*N*p0 + N*r1 + r2] = v2
    store s[p0] = v1
  })",
        {1, 3, 64, 100, 4000});
  check(R"(kernel m(x: f32[35*N], b: f32[N]) -> (s: f32[7]) {
    axes p0:7 par, r1:5 red, r2:N red
    v0 = load x[5*N*p0 + N*r1 + r2] : f32
    v1 = load b[r2] : f32
    v2 = mul v0, v1 : f32
    v3 = reduce add v2 over r1 r2 : f32
    store s[p0] = v3
  })",
        {1, 3, 64, 100, 4032});
}

TEST_CASE("native: elements apart, and windows with edges") {
  for (int64_t step : {2, 3, 4, 5})
    check(format(R"(kernel f(x: f32[{0}*N], y: u8[{0}*N]) -> (z: f32[N], w: u8[N], v: f32[N]) {{
      axes p0:N par
      v0 = load x[{0}*p0] : f32
      v1 = load y[{0}*p0] : u8
      v2 = load x[N - 1 - p0] : f32
      store z[p0] = v0
      store w[p0] = v1
      store v[p0] = v2
    }})",
                 step),
          {1, 16, 33, 200});
  check(R"(kernel pool(x: f32[3*N*N]) -> (z: f32[3*N*N]) {
    axes p0:3 par, p1:N par, p2:N par, r3:3 red, r4:3 red
    v0 = load x[N*N*p0 + N*p1 + p2 + N*r3 + r4 - N - 1] if p1 + r3 - 1 >= 0 & N - p1 - r3 >= 0 & p2 + r4 - 1 >= 0 & N - p2 - r4 >= 0 : f32
    v1 = reduce max v0 over r3 r4 : f32
    store z[N*N*p0 + N*p1 + p2] = v1
  })",
        {3, 16, 40});
}
