#!/usr/bin/env python3
"""What the C++ API costs: seconds to compile programs, and nanoseconds of a typed call.

    bench/cpp_api.py            with the compilers that are installed
    bench/cpp_api.py --json     the figures as one JSON object

Seconds are those of the compiler's own processor time, the least of five runs: load does not count.
"""

from __future__ import annotations

import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUNS = 5

INCLUDE = "#include <tenon/tenon.h>\nint main() {}\n"
PROGRAM = """\
#include <tenon/tenon.h>

#include <cstdio>

using tn::Tensor;

struct Params {
  Tensor w, b;
  static void fields(auto& p, auto&& f) { f("w", p.w), f("b", p.b); }
};

static Tensor predict(const Params& p, const Tensor& x) {
  return tn::tanh(tn::matmul(x, p.w) + p.b);
}

static Tensor loss(const Params& p, const Tensor& x, const Tensor& y) {
  return tn::mean(tn::square(predict(p, x) - y));
}

static Params descend(const Params& p, const Params& g, double rate) {
  return {p.w - rate * g.w, p.b - rate * g.b};
}

int main() {
  tn::random::seed(0);
  Tensor x = tn::random::normal({256, 3});
  Tensor y = tn::tanh(tn::matmul(x, tn::array({{1.f}, {-2.f}, {0.5f}})) + 0.25);
  Params params{tn::zeros({3, 1}), tn::zeros({1})};

  auto step = tn::compile([](Params p, Tensor x, Tensor y) {
    auto [value, g] = tn::value_and_grad(loss)(p, x, y);
    return std::tuple{value, descend(p, g, 0.1)};
  });

  for (int i = 0; i < 200; ++i) {
    auto [value, next] = step(params, x, y);
    params = next;
    if (i % 50 == 0) std::printf("%d %.4f\\n", i, value.item<double>());
  }

  Tensor row = params.w[{tn::all, 0}], first = x[tn::slice(0, 5)];
  for (Tensor weight : row) std::printf("%.3f ", weight.item<double>());
  std::printf("%.3f\\n", params.b.item<double>());

  auto slope = tn::grad([](Tensor t) { return tn::sum(tn::sin(t) * t); });
  std::puts(slope(tn::linspace(0.0, 1.0, 5)).to_string().c_str());
  std::puts(predict(params, first).to_string().c_str());
}
"""


def compile_seconds(compiler: str, source: str) -> float:
    """Processor time of a compiler, as users call it for a program under development."""
    command = [compiler, "-std=c++20", "-O0", f"-I{ROOT}/include", "-c", "-x", "c++", "-"]
    best = float("inf")
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*command, "-o", os.devnull], input=source, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        best = min(best, spent)
    return best


def typed_call_nanoseconds() -> float | None:
    """What a call of two tensors takes beyond one of a list of two."""
    program = ROOT / "build/release/tenon_bench"
    if not program.exists():
        return None
    names = ["compiled_exp(-x)+y_on_16_elements/goal", "compiled_exp(-x)+y_of_two_tensors/goal"]
    options = ["--benchmark_filter=compiled_exp", "--benchmark_format=json",
               f"--benchmark_repetitions={RUNS}"]
    run = subprocess.run([program, *options], capture_output=True, text=True, check=True)
    best: dict[str, float] = {}
    for row in json.loads(run.stdout)["benchmarks"]:
        name = row.get("run_name", row["name"])
        if row.get("run_type") != "aggregate":
            best[name] = min(best.get(name, float("inf")), row["cpu_time"])
    return best[names[1]] - best[names[0]]


def main() -> None:
    rows: list[tuple[str, float, str, float]] = []
    lines = PROGRAM.count("\n")
    for compiler in filter(shutil.which, ("g++", "clang++-19")):
        rows.append((f"{compiler}: tenon.h alone", compile_seconds(compiler, INCLUDE), "s", 1.0))
        seconds = compile_seconds(compiler, PROGRAM)
        rows.append((f"{compiler}: a program of {lines} lines", seconds, "s", 1.0))
    typed = typed_call_nanoseconds()
    if typed is not None:
        rows.append(("a typed call beyond an untyped one", typed, "ns", 20.0))
    if "--json" in sys.argv:
        keys = ("name", "value", "unit", "goal")
        print(json.dumps([dict(zip(keys, row)) for row in rows]))
        return
    for name, value, unit, goal in rows:
        met = "yes" if value <= goal else "NO"
        print(f"{name:44}{value:8.2f} {unit:2}   <= {goal:g} {unit}   {met}")


if __name__ == "__main__":
    main()
