#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <ranges>

#include "backend/cpu/codegen/codegen.h"
#include "backend/launcher.h"
#include "base/error.h"
#include "base/function_ref.h"
#include "compiler/memory_report.h"
#include "compiler/placement.h"
#include "compiler/plan_memory.h"
#include "compiler/step_order.h"
#include "compiler/storage.h"
#include "loop/builder.h"
#include "loop/interpreter.h"
#include "loop/sharing.h"
#include "random_kernel.h"

using namespace tn;

namespace {

using Random = std::mt19937;
int32_t draw(Random& random, int32_t below) {
  return static_cast<int32_t>(random() % static_cast<uint32_t>(below));
}

std::vector<Interval> random_intervals(Random& random, int count, int32_t steps) {
  std::vector<Interval> intervals;
  for (int i = 0; i < count; ++i) {
    int32_t first = draw(random, steps);
    int32_t length = random() % 4 ? draw(random, 10) : draw(random, steps);
    intervals.push_back({first, std::min(first + length, steps), 64 * (1 + draw(random, 1000))});
  }
  return intervals;
}

bool meet(const Interval& a, const Interval& b) {
  return a.first <= b.last && b.first <= a.last && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes;
}

bool disjoint(const std::vector<Interval>& intervals) {
  for (size_t i = 0; i < intervals.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (meet(intervals[i], intervals[j])) return false;
  return true;
}

constexpr MemoryPlanning kPlannings[] = {MemoryPlanning::greedy, MemoryPlanning::best_fit,
                                         MemoryPlanning::optimal, MemoryPlanning::none};

int64_t place_again(std::vector<Interval> intervals) {
  return place(intervals, MemoryPlanning::best_fit).end;
}

/// The least end of all orders in which each is put at the lowest offset that is free: of few.
int64_t least_end(std::vector<Interval> intervals) {
  std::vector<size_t> order;
  int64_t least = INT64_MAX;
  for (size_t i = 0; i < intervals.size(); ++i)
    if (intervals[i].offset < 0) order.push_back(i);
  do {
    std::vector<Interval> placed;
    for (const Interval& fixed : intervals)
      if (fixed.offset >= 0) placed.push_back(fixed);
    for (size_t i : order) {
      Interval next = intervals[i];
      next.offset = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (const Interval& p : placed)
          if (meet(next, p)) next.offset = p.offset + p.bytes, moved = true;
      }
      placed.push_back(next);
    }
    int64_t end = 0;
    for (const Interval& p : placed) end = std::max(end, p.offset + p.bytes);
    least = std::min(least, end);
  } while (std::ranges::next_permutation(order).found);
  return least;
}

}  // namespace

TEST_CASE("placement: optimal finds the least, and knows it") {
  int better = 0;
  for (uint32_t seed = 0; seed < 120; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    std::vector<Interval> intervals;
    for (int i = 0; i < 6; ++i) {
      int32_t first = draw(random, 8);
      intervals.push_back({first, first + draw(random, 5), 64 * (1 + draw(random, 6))});
    }
    if (seed % 2) intervals.push_back({2, 5, 128, 0}), intervals.push_back({-1, 20, 64, 128});
    std::vector<Interval> placed = intervals;
    auto [end, is_least] = place(placed, MemoryPlanning::optimal);
    CHECK(disjoint(placed));
    CHECK(is_least);
    CHECK(end == least_end(intervals));
    better += end < place_again(intervals);
  }
  CHECK(better > 0);
}

TEST_CASE("placement: optimal is better where several tries are not enough") {
  int better = 0, proven = 0;
  for (uint32_t seed = 0; seed < 30; ++seed) {
    Random random(seed);
    std::vector<Interval> intervals = random_intervals(random, 24, 20);
    std::vector<Interval> placed = intervals;
    auto [end, is_least] = place(placed, MemoryPlanning::optimal);
    CHECK(disjoint(placed));
    int64_t several = place_again(intervals);
    CHECK(end <= several);
    better += end < several, proven += is_least;
  }
  MESSAGE(better << " of 30 better, " << proven << " known to be the least");
  CHECK(better > 0);
  CHECK(proven >= 10);
}

TEST_CASE("placement: no two intervals meet in time and space") {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    std::vector<Interval> intervals = random_intervals(random, 1 + draw(random, 150), 100);
    if (seed % 3 == 0)
      for (int32_t i = 0; i < 4; ++i) intervals.push_back({i * 10, 60, 640, i * 1280});
    for (MemoryPlanning how : kPlannings) {
      std::vector<Interval> placed = intervals;
      auto [end, is_least] = place(placed, how);
      if (is_least) CHECK(end <= place_again(intervals));
      CHECK(disjoint(placed));
      CHECK(end >= lower_bound(intervals));
      for (size_t i = 0; i < placed.size(); ++i) {
        CHECK(placed[i].offset % kAlignment == 0);
        CHECK(placed[i].offset + placed[i].bytes <= end);
        if (intervals[i].offset >= 0) CHECK(placed[i].offset == intervals[i].offset);
      }
    }
  }
}

TEST_CASE("placement: greedy takes the lowest offset that is free, beside results that stay") {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    constexpr int32_t kSteps = 200, kCount = 150;
    std::vector<Interval> intervals = random_intervals(random, kCount, kSteps);
    std::ranges::stable_sort(intervals, {}, &Interval::first);
    int64_t arena = 0;
    for (int32_t step = 0; step < kSteps; step += 1 + draw(random, 3)) {
      int64_t bytes = 64 * (1 + draw(random, 500));
      intervals.push_back({step, kSteps, bytes, arena});
      intervals.push_back({-1, kSteps, 64, arena + bytes});
      arena += bytes + 64;
    }
    std::vector<Interval> placed = intervals;
    place(placed, MemoryPlanning::greedy);
    for (size_t i = 0; i < size_t{kCount}; ++i) {
      auto is_free = [&](int64_t offset) {
        Interval here = placed[i];
        here.offset = offset;
        auto meets = [&](size_t k) { return (k < i || k >= kCount) && meet(here, placed[k]); };
        return std::ranges::none_of(std::views::iota(size_t{0}, placed.size()), meets);
      };
      std::vector<int64_t> ends{0};  // the lowest free offset is one of these
      for (size_t k = 0; k < placed.size(); ++k)
        if (k < i || k >= kCount) ends.push_back(placed[k].offset + placed[k].bytes);
      std::ranges::sort(ends);
      CHECK(placed[i].offset == *std::ranges::find_if(ends, is_free));
    }
  }
}

TEST_CASE("placement: the lower bound is the most that is alive") {
  CHECK(lower_bound({}) == 0);
  CHECK(lower_bound(std::vector<Interval>{{0, 1, 64}, {1, 2, 128}, {2, 3, 64}}) == 192);
  CHECK(lower_bound(std::vector<Interval>{{0, 0, 64}, {1, 1, 64}}) == 64);
}

namespace {

constexpr size_t kWords = 40;  // every buffer has these at least

/// A kernel of whole numbers: every result is a sum over the operands, salted, and depends on all
/// scribbles if one of them lies in the way.
KernelStep mix(size_t ins, size_t outs, uint64_t salt) {
  loop::Builder b("mix");
  auto words = static_cast<int64_t>(kWords);
  auto at = b.axis(b.add_axis(words));
  std::vector<loop::S> loaded;
  for (size_t i = 0; i < ins; ++i)
    loaded.push_back(b.load(b.add_buffer(format("x{}", i), DType::u64, words), at));
  for (size_t o = 0; o < outs; ++o) {
    loop::S sum = b.constant(static_cast<int64_t>(salt + o), DType::u64);
    for (const loop::S& x : loaded) sum = sum * b.constant(31, DType::u64) + x;
    b.store(b.add_buffer(format("y{}", o), DType::u64, words, true), at, sum);
  }
  auto kernel = std::make_shared<const loop::Kernel>(b.finish());
  return {kernel, nullptr, loop::prepare(*kernel)};
}

Plan random_plan(uint32_t seed, int steps) {
  Random random(seed);
  Plan plan;
  plan.inputs = 3;
  for (int i = 0; i < plan.inputs; ++i)
    plan.donated.push_back(random() % 2 ? int64_t{8 * kWords} : 0);
  auto buffers = [&] { return plan.inputs + static_cast<int32_t>(plan.bytes.size()); };
  for (int s = 0; s < steps; ++s) {
    size_t ins = 1 + random() % 3, outs = 1 + (random() % 4 == 0);
    Step step{mix(ins, outs, random())};
    for (size_t i = 0; i < ins; ++i) {
      int32_t back = random() % 4 ? std::min(6, buffers()) : buffers();
      step.buffers.push_back(buffers() - 1 - draw(random, back));
    }
    for (size_t o = 0; o < outs; ++o) {
      step.writes.push_back(static_cast<int32_t>(step.buffers.size()));
      for (size_t i = 0; outs == 1 && i < ins; ++i)
        step.in_place.push_back({static_cast<int32_t>(i), step.writes.back()});
      step.buffers.push_back(buffers());
      plan.bytes.push_back(static_cast<int64_t>(8 * kWords * (1 + random() % 3 / 2)));
    }
    step.effect = random() % 8 == 0;
    plan.steps.push_back(std::move(step));
  }
  for (int i = 0; i < 3; ++i) plan.outputs.push_back({draw(random, buffers()), 0});
  return plan;
}

using Words = std::vector<uint64_t>;

std::vector<Bound> random_values(uint32_t seed) {
  Random random(seed);
  std::vector<Bound> inputs;
  for (int i = 0; i < 3; ++i) {
    inputs.push_back({allocate(8 * kWords), 0});
    for (size_t w = 0; w < kWords; ++w) inputs.back().buffer.data<uint64_t>()[w] = random();
  }
  return inputs;
}

Words words_of(const std::vector<Bound>& values) {
  Words words;
  for (const Bound& value : values) {
    REQUIRE(value.buffer);
    const uint64_t* at = value.buffer.data<uint64_t>() + value.offset / 8;
    words.insert(words.end(), at, at + kWords);
  }
  return words;
}

/// In the order given, with memory of its own for every buffer.
Words run_plainly(const Plan& plan, const std::vector<Bound>& inputs) {
  std::vector<Bound> values = inputs;
  for (int64_t bytes : plan.bytes) values.push_back({allocate(static_cast<size_t>(bytes)), 0});
  for (const Step& step : plan.steps) {
    std::vector<void*> buffers;
    for (int32_t b : step.buffers) buffers.push_back(values[index(b)].buffer.data());
    run_step(step, buffers.data(), nullptr);
  }
  std::vector<Bound> outputs;
  for (const Plan::Output& out : plan.outputs) outputs.push_back(values[index(out.buffer)]);
  return words_of(outputs);
}

Words run_planned(const Plan& plan, std::vector<Bound> inputs) {
  std::vector<Bound> outputs(plan.outputs.size());
  run(plan, inputs, nullptr, outputs);
  return words_of(outputs);
}

}  // namespace

TEST_CASE("plans: planned memory, in place, donated and reordered, gives the same values") {
  int64_t in_place = 0, donated = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    Plan plan = random_plan(seed, 1 + static_cast<int>(seed) % 40);
    Words expected = run_plainly(plan, random_values(seed));
    for (MemoryPlanning how : kPlannings) {
      Plan planned = plan;
      plan_memory(planned, how);
      CHECK(run_planned(planned, random_values(seed)) == expected);
      std::vector<Bound> shared = random_values(seed), again = shared;  // nothing to take over
      CHECK(run_planned(planned, shared) == expected);
      CHECK(words_of(again) == words_of(random_values(seed)));
      MemoryReport report = memory_report(planned);
      CHECK(report.lower_bound <= report.peak);
      in_place += report.in_place, donated += report.donated;
    }
  }
  CHECK(in_place > 0);
  CHECK(donated > 0);
}

TEST_CASE("orders: every step once, after what it needs") {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Plan plan = random_plan(seed, 60);
    Words expected = run_plainly(plan, random_values(seed));
    for (auto make : {depth_first_order, least_growth_order}) {
      std::vector<int32_t> order = make(plan), sorted = order, effects;
      std::ranges::sort(sorted);
      CHECK(sorted == program_order(plan));
      for (int32_t s : order)
        if (plan.steps[index(s)].effect) effects.push_back(s);
      CHECK(std::ranges::is_sorted(effects));
      Plan other = plan;
      for (size_t i = 0; i < order.size(); ++i) other.steps[i] = plan.steps[index(order[i])];
      CHECK(run_plainly(other, random_values(seed)) == expected);
    }
  }
}

TEST_CASE("orders: branches are finished before the next one begins, when that saves memory") {
  // Eight large temporaries, each summed to a small one: as written all are made first.
  Plan plan;
  plan.inputs = 1;
  KernelStep one = mix(1, 1, 0);
  for (int32_t i = 0; i < 8; ++i) {
    plan.bytes.push_back(1 << 20);
    plan.steps.push_back({one, {0, 1 + i}, {}, {1}});
  }
  for (int32_t i = 0; i < 8; ++i) {
    plan.bytes.push_back(64);
    plan.outputs.push_back({9 + i, 0});
    plan.steps.push_back({one, {1 + i, 9 + i}, {}, {1}});
  }
  Plan quick = plan;
  plan_memory(plan, MemoryPlanning::best_fit), plan_memory(quick, MemoryPlanning::greedy);
  CHECK(memory_report(plan).arena == 1 << 20);
  CHECK(memory_report(quick).arena == 8 << 20);
}

namespace {

Plan chain_of(std::vector<std::pair<int32_t, int32_t>> moves, std::vector<int32_t> outputs,
              int64_t bytes = 4096) {
  Plan plan;
  plan.inputs = 1;
  KernelStep one = mix(1, 1, 1);
  for (auto [from, to] : moves) {
    plan.bytes.push_back(bytes);
    plan.steps.push_back({one, {from, to}, {}, {1}, {{0, 1}}});
  }
  for (int32_t out : outputs) plan.outputs.push_back({out, 0});
  return plan;
}

}  // namespace

TEST_CASE("in place: a chain needs one buffer, a later reader keeps its operand") {
  Plan chain = chain_of({{0, 1}, {1, 2}, {2, 3}, {3, 4}}, {4});
  plan_memory(chain, MemoryPlanning::greedy);
  CHECK(chain.blocks.size() == 1);
  CHECK(memory_report(chain).peak == 4096);
  CHECK(memory_report(chain).in_place == 3);

  Plan read_later = chain_of({{0, 1}, {1, 2}, {1, 3}}, {2, 3});
  plan_memory(read_later, MemoryPlanning::greedy);
  CHECK(memory_report(read_later).in_place == 1);  // by the last reader only

  Plan returned = chain_of({{0, 1}, {1, 2}}, {1, 2});
  plan_memory(returned, MemoryPlanning::greedy);
  CHECK(memory_report(returned).in_place == 0);
}

TEST_CASE("in place: an operand that is read twice by one step stays") {
  Plan plan = chain_of({{0, 1}, {1, 2}}, {2});
  plan.steps[1].buffers = {1, 1, 2};  // two views of one buffer
  plan.steps[1].writes = {2};
  plan.steps[1].in_place = {{0, 2}};
  plan_memory(plan, MemoryPlanning::greedy);
  CHECK(memory_report(plan).in_place == 0);
}

TEST_CASE("donated inputs become results") {
  for (bool in_place : {true, false}) {
    Plan plan = chain_of({{0, 1}, {1, 2}}, {2}, 8 * kWords);
    if (!in_place)
      for (Step& step : plan.steps) step.in_place.clear();
    plan.donated = {8 * kWords};
    plan_memory(plan, MemoryPlanning::greedy);
    CHECK(memory_report(plan).outputs == 0);
    BufferRef given = allocate(8 * kWords);
    std::memset(given.data(), 1, 8 * kWords);
    const void* at = given.data();
    std::vector<Bound> in{{std::move(given), 0}}, out(1);
    run(plan, in, nullptr, out);
    CHECK(out[0].buffer.data() == at);
    in = random_values(1), in.resize(1);
    BufferRef held = in[0].buffer;  // somebody still wants it
    run(plan, in, nullptr, out);
    CHECK(out[0].buffer.data() != held.data());
  }
}

TEST_CASE("donated inputs that are returned stay as they are") {
  Plan plan = chain_of({{0, 1}}, {0, 1}, 8 * kWords);
  plan.donated = {8 * kWords};
  plan_memory(plan, MemoryPlanning::greedy);
  CHECK(memory_report(plan).donated == 0);
}

TEST_CASE("large results are written past the caches unless they are read soon or lie in place") {
  auto streams = [](int64_t bytes, bool in_place) {
    Plan plan = chain_of({{0, 1}, {1, 2}}, {2}, bytes);
    if (!in_place)
      for (Step& step : plan.steps) step.in_place.clear();
    plan_memory(plan, MemoryPlanning::greedy);
    return std::pair{plan.steps[0].bypass_cache, plan.steps[1].bypass_cache};
  };
  CHECK(streams(1 << 20, false) == std::pair{false, false});
  CHECK(streams(8 << 20, false) == std::pair{false, true});
  CHECK(streams(64 << 20, false) == std::pair{true, true});
  CHECK(streams(64 << 20, true) == std::pair{true, false});
}

namespace {

/// Runs the kernel with output `out` apart from input `in` and in its place; says where results
/// differ.
std::string difference_in_place(const loop::Kernel& kernel, uint32_t seed, size_t in, size_t out,
                                FunctionRef<void(void* const*)> run) {
  loop::RandomBuffers apart(kernel, seed, 3), together(kernel, seed, 3);
  together.pointers[out] = together.pointers[in];
  run(apart.pointers.data());
  run(together.pointers.data());
  std::memcpy(together.data[out].data(), together.data[in].data(), together.data[out].size());
  together.data[in] = apart.data[in];
  together.pointers[out] = together.data[out].data();
  return first_difference(kernel, apart, together);
}

}  // namespace

TEST_CASE("in place: every pair that a kernel allows leaves the bits alone") {
  int shared = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    loop::Kernel kernel = loop::random_kernel(seed);
    loop::Sharing sharing(kernel);
    std::shared_ptr<const loop::BlockProgram> program;
    std::shared_ptr<const KernelCode> native;
    for (size_t out = 0; out < kernel.buffers.size(); ++out)
      for (size_t in = 0; in < kernel.buffers.size(); ++in) {
        const loop::BufferParam &from = kernel.buffers[in], &to = kernel.buffers[out];
        if (!sharing.allows(static_cast<int>(in), static_cast<int>(out)) ||
            from.size.value() * size_of(from.type) < to.size.value() * size_of(to.type))
          continue;
        if (!program) {
          program = loop::prepare(kernel);
          native = cpu::compile_kernels(std::vector<KernelRequest>{{&kernel}})[0];
        }
        CAPTURE(to_text(kernel));
        CHECK(difference_in_place(kernel, seed, in, out, [&](void* const* buffers) {
                loop::run(*program, buffers);
              }) == "");
        if (native)
          CHECK(difference_in_place(kernel, seed, in, out, [&](void* const* buffers) {
                  run(cpu::native_of(*native->bind()), buffers, nullptr, false);
                }) == "");
        ++shared;
      }
  }
  CHECK(shared > 100);
}

namespace {

bool shares(std::string_view body) {
  std::string text = format("kernel k(x: f32[24]) -> (y: f32[24], z: f32[24]) {{\n{}}}", body);
  loop::Kernel kernel = loop::parse_kernel(text);
  return loop::may_share(kernel, 0, 1);
}

}  // namespace

TEST_CASE("in place: what a kernel allows") {
  std::string points = "  axes p0:24 par\n  v0 = load x[p0] : f32\n  v1 = exp v0 : f32\n";
  CHECK(shares(points + "  v2 = neg v0 : f32\n  store y[p0] = v1\n  store z[p0] = v2\n"));
  CHECK(!shares(points + "  store y[p0] = v1\n  store z[p0] = v0\n"));
  // The same through a bitcast, and through a selection that is decided for a part of the points.
  CHECK(!shares(points + "  v2 = bitcast v0 : i32\n  v3 = bitcast v2 : f32\n"
                         "  store y[p0] = v1\n  store z[p0] = v3\n"));
  std::string chosen =
      "  v2 = index p0 : i64\n  v3 = constant 5 : i64\n  v4 = lt v2, v3 : bool\n"
      "  v5 = select v4, v0, v1 : f32\n";
  CHECK(!shares(points + chosen + "  store y[p0] = v1\n  store z[p0] = v5\n"));
  CHECK(shares(points + chosen + "  store y[p0] = v5\n  store z[p0] = v1\n"));
  CHECK(!shares(points + chosen +
                "  v6 = select v4, v1, v0 : f32\n"
                "  store y[p0] = v6\n  store z[p0] = v5\n"));
  CHECK(
      !shares("  axes p0:4 par, p1:6 par\n  v0 = load x[6*p0 + p1] : f32\n"
              "  store y[4*p1 + p0] = v0\n  store z[6*p0 + p1] = v0\n"));
  // A value of a row that is used along the row is loaded again after it was stored.
  CHECK(
      !shares("  axes p0:4 par, p1:6 par\n  v0 = load x[p0] : f32\n  v1 = exp v0 : f32\n"
              "  store y[p0] = v1\n  store z[6*p0 + p1] = v1\n"));
  // A row is read once more after its maximum: fine for the last sweep, not for an earlier one.
  std::string rows =
      "  axes p0:4 par, r1:6 red\n  v0 = load x[6*p0 + r1] : f32\n"
      "  v1 = reduce max v0 over r1 : f32\n  v2 = sub v0, v1 : f32\n  v3 = neg v0 : f32\n";
  CHECK(shares(rows + "  store y[6*p0 + r1] = v2\n  store z[6*p0 + r1] = v3\n"));
  CHECK(!shares(rows + "  store y[6*p0 + r1] = v3\n  store z[6*p0 + r1] = v2\n"));
}
