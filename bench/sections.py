"""Parts of the library beside their rivals, uncompiled: one figure a row, as a ratio."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

import callers
import compiling
import conv
import executables as saved
import files as weight_files
import gradients
import instruction_log
import measure
import model_backends
import model_calls
import model_memory
import recompute
import rivals
import tenon
import training as steps

HERE = pathlib.Path(__file__).resolve()
CORE_TYPES = ("", "Haswell", "Zen", "SkylakeX", "Cooperlake", "Sapphirerapids")


@dataclass
class Row:
    """One figure. The goal is a least ratio to the rival, or a most of its unit. Where it holds on
    every machine, missing it makes the program fail."""

    name: str
    ours: float
    theirs: float | None = None
    rival: str = ""
    least_ratio: float | None = None
    most: float | None = None
    unit: str = "s"
    must_be_met: bool = False

    @property
    def ratio(self) -> float | None:
        return self.theirs / self.ours if self.theirs and self.ours else None

    @property
    def met(self) -> bool | None:
        if self.least_ratio is not None:
            return self.ratio is not None and self.ratio >= self.least_ratio
        if self.most is not None:
            return self.ours <= self.most
        return None

    @property
    def goal(self) -> str:
        if self.least_ratio is not None:
            return f">= {self.least_ratio:g}x"
        return f"<= {self.text(self.most)}" if self.most is not None else ""

    def facts(self) -> dict:
        return asdict(self) | {"ratio": self.ratio, "goal": self.goal, "met": self.met}

    def text(self, value: float | None) -> str:
        if value is None:
            return ""
        return measure.time_text(value) if self.unit == "s" else f"{value:.0f} {self.unit}".rstrip()


def pairs(made: list[rivals.Pair], quick: bool) -> list[Row]:
    rows = []
    for pair in made:
        rivals.check(pair)
        functions = [pair.ours, pair.theirs] if pair.theirs else [pair.ours]
        times = measure.in_turn(functions, 0.05 if quick else 2.0)
        ours, *theirs = [seconds / pair.per for seconds in times]
        rival, goal = (pair.rival, pair.goal) if theirs else ("", None)
        rows.append(Row(pair.name, ours, *theirs, rival=rival, least_ratio=goal))
    return rows


def elementwise(quick: bool) -> list[Row]:
    return pairs(rivals.elementwise(64 if quick else 1), quick)


def reductions(quick: bool) -> list[Row]:
    return pairs(rivals.reductions(64 if quick else 1), quick)


def random(quick: bool) -> list[Row]:
    return pairs(rivals.random(64 if quick else 1), quick)


def fft(quick: bool) -> list[Row]:
    return pairs(rivals.fft(64 if quick else 1), quick)


def linalg(quick: bool) -> list[Row]:
    return pairs(rivals.linalg(16 if quick else 1), quick)


def matmul_here(quick: bool) -> list[Row]:
    return pairs(rivals.matmul(4 if quick else 1), quick)


def matmul(quick: bool) -> list[Row]:
    """NumPy's library picks its kernels at start by OPENBLAS_CORETYPE; the best rival is wanted."""
    best: tuple[float, str, list[dict[str, object]]] | None = None
    for core in CORE_TYPES:
        command = [sys.executable, str(HERE), *["--quick"] * quick]
        env = os.environ | ({"OPENBLAS_CORETYPE": core} if core else {})
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        if done.returncode:  # the machine lacks the instructions
            continue
        rows = json.loads(done.stdout.strip().splitlines()[-1])
        if best is None or rows[0]["theirs"] < best[0]:
            best = (rows[0]["theirs"], core, rows)
    if best is None:
        raise SystemExit("bench: matmul could not be measured")
    made = [Row(**row) for row in best[2]]
    for row in made:
        row.rival = f"NumPy, {best[1] or 'its own choice'}"
    return made


def convolutions(quick: bool) -> list[Row]:
    """The rival is our own matmul, in the time it would take for as many multiply-adds."""
    scale = 4 if quick else 1
    square, rows = conv.product(scale), []
    for layer in conv.layers(scale):
        ours, theirs = measure.interleave(layer.run, square.run, 0.05 if quick else 2.0)
        rows.append(Row(f"{layer.name}, {2e-9 * layer.work / ours:.0f} GFLOP/s", ours,
                        theirs * layer.work / square.work, "our matmul"))
    return rows


def calls(quick: bool) -> list[Row]:
    seconds = 0.02 if quick else 1.0
    beside, alone = callers.beside_a_long_one(quick)
    return [
        *(Row(call.name, measure.per_call(call.ours, seconds),
              measure.per_call(call.theirs, seconds), "NumPy", most=call.most_seconds)
          for call in rivals.calls()),
        Row("small evaluation beside one of 100 ms", beside, alone, "alone",
            most=None if quick else 50e-6),
    ]


def transforms(quick: bool) -> list[Row]:
    """Gradients and batches, against PyTorch and JAX where they are installed."""
    rows = pairs(gradients.transforms(quick), quick)
    length = 1000 if quick else 200_000
    code = f"import gradients; print(gradients.memory_per_op({length}))"
    paths = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": paths},
                          capture_output=True, text=True, check=True)
    name = f"memory of grad of {length:,} small ops, per op"
    few, many = gradients.numbers_in_checkpoints(quick)
    return [*rows, Row(name, float(done.stdout), unit="B"),
            Row("checkpoint of 8 times as many numbers, times the time", many / few, most=24,
                unit="")]


def training(quick: bool) -> list[Row]:
    """Training steps through modules and optimizers, against those written by hand."""
    return pairs(steps.training(quick), quick)


def memory(quick: bool) -> list[Row]:
    """Training steps that may need a part of their memory: what they compute again takes time."""
    rows = []
    for one in recompute.cases(quick):
        rows += [
            Row(f"{one.name}, {one.part:.0%} of its memory", one.seconds, one.plain_seconds,
                "no limit", None if quick else 1 / 1.4),
            Row("its memory", one.peak / 1e6, one.plain_peak / 1e6, "no limit", 1 / one.part,
                unit="MB"),
            Row("its first call", one.first, one.plain_first, "no limit"),
        ]
    return rows


def plans(quick: bool) -> list[Row]:
    """Options of plans: checkpoints in segments, and calls that stay on their thread."""
    plain, *cases = model_memory.cases(quick)
    rows = []
    for one in cases:
        goal = 1 / 0.6 if one.segments == 4 else None
        rows += [
            Row(f"MLP 24 layers, segments: {one.segments}, planned", one.planned / 1e6,
                plain.planned / 1e6, "none", goal, unit="MB"),
            Row("its measured peak", one.measured / 1e6, plain.measured / 1e6, "none", goal,
                unit="MB"),
            Row("its step", one.seconds, plain.seconds, "none"),
        ]
    for name, (count, throughput, latency) in callers.cases(quick).items():
        rows.append(Row(f"{name}, for throughput", 1 / throughput, 1 / latency, "for latency",
                        None if quick or count == 1 else 1.0))
    return rows


def compile(quick: bool) -> list[Row]:
    """Compiled functions whose arguments vary, and the first call in a process."""
    sizes, by_jax = compiling.size_sweep()
    numbers = compiling.number_sweep()
    cold, warm = compiling.warm_start(quick)
    rival = "JAX" if by_jax else ""
    return [
        Row("a new batch size, network of 3 layers", sizes.seconds,
            by_jax.seconds if by_jax else None, rival, most=200e-6),
        Row(f"{compiling.TIMES} batch sizes: traces", sizes.traces,
            by_jax.traces if by_jax else None, rival, most=2, unit=""),
        Row("kernels compiled after the second size", sizes.kernels, most=0, unit=""),
        Row("a new number", numbers.seconds),
        Row(f"{compiling.TIMES} numbers: traces", numbers.traces, most=2, unit=""),
        Row("kernels compiled after the second number", numbers.kernels, most=0, unit=""),
        Row("GPT step, first call beyond tracing and running", warm.compile, cold.compile,
            "nothing on disk", most=None if quick else 150e-3),
        Row("kernels compiled then", warm.kernels, cold.kernels, "nothing on disk", most=0,
            unit=""),
        Row("GPT step: tracing", warm.trace),
    ]


def executables(quick: bool) -> list[Row]:
    """Saved executables: loading GPT-2 small, running, the file of a small one, ranges of sizes."""
    big, small = saved.saved_gpt(quick), saved.small_file()
    one = min(big.processes, key=lambda p: p.load)
    goal = (lambda value: None) if quick else (lambda value: value)
    title = f"GPT-2 small, {big.weights / 1e6:.0f} MB"
    rows = [
        Row(f"{title}: load to the first call's start", one.load, most=goal(30e-3)),
        *(Row(f"{title}: load", one.load, seconds, f"{name}, as many weights")
          for name, seconds in big.peers.items()),
        Row("kernels compiled then", max(p.kernels for p in big.processes), most=0, unit=""),
        Row(f"{title}: save", big.save),
        Row("first call, and a later one", one.first, one.later, "later"),
        Row("a call, saved and jitted", big.loaded, big.jitted, "jitted", goal(0.95)),
        Row("two processes: memory of each", max(p.share for p in big.processes) / 1e6,
            min(p.resident for p in big.processes) / 1e6, "unshared", goal(1.5), unit="MB"),
        Row("GEGLU: save", small.save, most=goal(5e-3)),
        Row("GEGLU: load", small.load, most=goal(5e-3)),
        Row("GEGLU: bytes beyond weights and code", small.overhead, most=65536, unit="B"),
    ]
    return rows + [Row(f"{at.name} {at.size}, made for 1 to {saved.SIZES[-1]}", at.dynamic,
                       at.fixed, "made for it", goal(0.9)) for at in saved.dynamic_range(quick)]


def files(quick: bool) -> list[Row]:
    """Weights in safetensors files: written, mapped, read."""
    size = 500_000 if quick else 500_000_000
    goals = {} if quick else {"load": 10e-3}
    return [Row(f"{size / 1e6:g} MB of weights: {case.name}", case.ours, case.theirs, case.rival,
                most=goals.get(case.name)) for case in weight_files.cases(size)]


def imports(quick: bool) -> list[Row]:
    """Seconds of a process that imports, beyond one that does not."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def runs(code: str):
        return lambda: subprocess.run([sys.executable, "-c", code], check=True, env=env,
                                      stderr=subprocess.DEVNULL)

    least, seconds = (2, 0.0) if quick else (15, 3.0)
    ours, bare = measure.interleave(runs("import tenon"), runs("pass"), seconds, least)
    theirs, bare_again = measure.interleave(runs("import numpy"), runs("pass"), seconds, least)
    return [Row("import, beyond bare Python", ours - bare, theirs - bare_again, "import numpy",
                most=20e-3, must_be_met=not quick)]


def watching(quick: bool) -> list[Row]:
    """How long a program stands still when a trace of it ends."""
    events, seconds = instruction_log.end_of_a_trace(2_000 if quick else 60_000)
    return [Row(f"ending a trace of {events:,} events", seconds, most=None if quick else 0.1)]


def cpp(quick: bool) -> list[Row]:
    """Figures of the C++ program that have a goal, when it is built."""
    program = pathlib.Path(tenon.__file__).absolute().parents[2] / "tenon_bench"
    if not program.exists():
        print("bench: no tenon_bench beside the module; `make bench` builds it", file=sys.stderr)
        return []
    # The library's flag wants a bare number in old versions and a unit in new ones.
    shorter = ["--benchmark_min_time=0.01"] if quick else ["--benchmark_repetitions=5"]
    command = [str(program), "--benchmark_filter=goal", "--benchmark_format=json", *shorter]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows: dict[str, list[dict[str, Any]]] = {}
    for found in json.loads(done.stdout)["benchmarks"]:
        if found["run_type"] == "iteration":
            rows.setdefault(found["name"], []).append(found)
    made = []
    in_ns = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
    for name, group in rows.items():
        # Of the one thread that works, or the worst of several things measured.
        times = sorted(one.get("worst_ns", one["cpu_time"] * in_ns[one["time_unit"]])
                       for one in group)
        made.append(Row("C++: " + name.partition("/goal")[0].replace("_", " "),
                        times[len(times) // 2] * 1e-9, most=group[0]["goal_ns"] * 1e-9))
    return made


def models(quick: bool) -> list[Row]:
    """Evaluations beside the same functions compiled here; and models as C files, on one thread."""
    calls = [Row(f"evaluate: {row.name}", row.model, row.function, "compile", least_ratio=0.98)
             for row in model_calls.rows(quick)]
    threads = tenon.num_threads()
    tenon.set_num_threads(1)
    try:
        return calls + [Row(f"as C: {row.name}", row.c, row.cpu, "compile",
                            least_ratio=1 / 1.3 if row.name == "cnn" else None)
                        for row in model_backends.rows(quick)]
    finally:
        tenon.set_num_threads(threads)


SECTIONS = {
    "elementwise": elementwise,
    "reductions": reductions,
    "random": random,
    "fft": fft,
    "linalg": linalg,
    "products": matmul,
    "conv": convolutions,
    "calls": calls,
    "transforms": transforms,
    "training": training,
    "memory": memory,
    "plans": plans,
    "compile": compile,
    "executables": executables,
    "files": files,
    "models": models,
    "import": imports,
    "watching": watching,
    "cpp": cpp,
}


def table(rows: list[Row]) -> str:
    lines = [f"{'':50}{'Tenon':>10}{'rival':>10}{'ratio':>9}  {'goal':<11}{'met':<5}rival"]
    for row in rows:
        ours, theirs = row.text(row.ours), row.text(row.theirs)
        ratio = f"{row.ratio:.2f}x" if row.ratio else ""
        met = {True: "yes", False: "NO", None: ""}[row.met]
        lines.append(f"{row.name:50}{ours:>10}{theirs:>10}{ratio:>9}  "
                     f"{row.goal:<11}{met:<5}{row.rival}".rstrip())
    return "\n".join(lines)


def run(names: list[str], quick: bool) -> list[Row]:
    """The rows of some sections."""
    rows = []
    for name in names:
        print(f"bench: {name} ...", file=sys.stderr)
        rows += SECTIONS[name](quick)
    return rows


if __name__ == "__main__":  # this process is the rival of `matmul`
    print(json.dumps([asdict(row) for row in matmul_here("--quick" in sys.argv)]))
