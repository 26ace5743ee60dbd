"""What compiled functions cost when their arguments vary, and when a process starts.

    compiling.py      the first call of a training step in this process, as JSON: the worker of
                      `warm_start`
"""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import gradients
import tenon as tn
from tenon import _core
from workloads import WORKLOADS
from workloads.workload import map_tree

TIMES = 50  # sizes, or numbers, a function is called with


@dataclass(eq=False)
class Counted:
    """A function that counts how often it is traced."""

    f: Callable[..., Any]
    calls: int = 0

    def __call__(self, *args: Any) -> Any:
        self.calls += 1
        return self.f(*args)


@dataclass
class Varied:
    """What it took to call a compiled function with arguments that vary."""

    traces: int
    kernels: int  # compiled after the second call
    seconds: float  # median of a call from the third on


def varied(counted: Counted, compiled: Callable[..., Any], calls: list[tuple]) -> Varied:
    taken, kernels = [], 0
    for i, arguments in enumerate(calls):
        if i == 2:
            kernels = _core._kernels_compiled()
        began = time.perf_counter()
        compiled(*arguments)
        taken.append(time.perf_counter() - began)
    return Varied(counted.calls, _core._kernels_compiled() - kernels, statistics.median(taken[2:]))


def network(relu: Callable[[Any], Any], array: Callable[[np.ndarray], Any]) -> Counted:
    """Three layers, 64-128-128-10."""
    rng = np.random.default_rng(0)
    sizes = (64, 128, 128, 10)
    weights = [array(rng.standard_normal((n, m), dtype=np.float32) / np.float32(n**0.5))
               for n, m in zip(sizes, sizes[1:])]

    def forward(x):
        for w in weights[:-1]:
            x = relu(x @ w)
        return x @ weights[-1]

    return Counted(forward)


def batches(array: Callable[[np.ndarray], Any]) -> list[tuple]:
    rng = np.random.default_rng(1)
    return [(array(rng.standard_normal((2 + 3 * i, 64), dtype=np.float32)),) for i in range(TIMES)]


def size_sweep() -> tuple[Varied, Varied | None]:
    """Many batch sizes through one network: ours, and JAX's where it is installed."""
    ours = network(tn.relu, tn.array)
    found = varied(ours, tn.compile(ours), batches(tn.array))
    jax = gradients.peer("jax")
    if not jax:
        return found, None
    theirs = network(jax.nn.relu, jax.numpy.asarray)
    jitted = jax.jit(theirs)
    return found, varied(theirs, lambda x: jax.block_until_ready(jitted(x)),
                         batches(jax.numpy.asarray))


def number_sweep() -> Varied:
    """A Python number that is another at every call."""
    x = tn.ones(16)
    counted = Counted(lambda x, rate: x * rate + 1)
    return varied(counted, tn.compile(counted), [(x, 0.1 + i) for i in range(TIMES)])


@dataclass
class Start:
    """The first call of a training step, in seconds."""

    trace: float
    first: float  # beyond tracing
    run: float  # of a later call
    kernels: int

    @property
    def compile(self) -> float:
        return self.first - self.run


def start_here(quick: bool) -> Start:
    workload = WORKLOADS["gpt_train"]
    state, *batch = map_tree(lambda a: tn.array(np.asarray(a)), workload.inputs(quick))
    step = tn.compile(lambda *inputs: workload.versions["tenon"](tn, *inputs))
    tn.eval(tn.ones(2) + 1)
    marks = [time.perf_counter()]
    step.show("graph", state, *batch)
    for _ in range(5):
        marks.append(time.perf_counter())
        loss, state = step(state, *batch)
        tn.eval(loss, state)
    marks.append(time.perf_counter())
    trace, first, *later = np.diff(marks)
    return Start(trace, first, statistics.median(later), _core._kernels_compiled())


def warm_start(quick: bool) -> tuple[Start, Start]:
    """A process that finds no cache on disk, and the next ones, that find it."""
    with tempfile.TemporaryDirectory() as cache:
        paths = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)
        env = os.environ | {"PYTHONPATH": paths, "TENON_CACHE_DIR": cache}
        command = [sys.executable, str(pathlib.Path(__file__).resolve()), *["--quick"] * quick]

        def start() -> Start:
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
            return Start(**json.loads(done.stdout.splitlines()[-1]))

        cold = start()
        return cold, min((start() for _ in range(1 if quick else 3)), key=lambda s: s.compile)


if __name__ == "__main__":
    print(json.dumps(vars(start_here("--quick" in sys.argv))))
