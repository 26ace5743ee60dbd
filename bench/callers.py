"""Several threads at once: calls of one compiled function, and evaluations beside a long one.

`optimize_for="throughput"` leaves the pool alone: threads that call at once do not wait for each
other, and none does a part of another's work.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from typing import Any

import numpy as np

import tenon as tn


def calls_per_second(f: Any, args: tuple, callers: int, seconds: float) -> float:
    """Of all callers together, until the last has ended."""
    f(*args)
    end, done = time.perf_counter() + seconds, [0] * callers

    def call(caller: int) -> None:
        while time.perf_counter() < end:
            tn.eval(f(*args))
            done[caller] += 1

    threads = [threading.Thread(target=call, args=(i,)) for i in range(callers)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.perf_counter() - began)


def cases(quick: bool) -> dict[str, tuple[int, float, float]]:
    """By name: callers, and calls a second for throughput and for latency."""
    rows, width, layers, rounds = (64, 64, 2, 1) if quick else (128, 64, 4, 9)
    rng = np.random.default_rng(0)
    normal = lambda *shape: tn.array(rng.standard_normal(shape, dtype=np.float32))
    ws = [normal(width, width) / width**0.5 for _ in range(layers)]

    def network(x: tn.Tensor) -> tn.Tensor:
        for w in ws:
            x = tn.softmax(tn.nn.gelu(x @ w), -1)
        return x

    made = {}
    for callers in (1, min(2, os.cpu_count() or 1)):
        kinds = {kind: tn.compile(network, optimize_for=kind) for kind in ("throughput", "latency")}
        args = (normal(rows, width),)
        best = dict.fromkeys(kinds, 0.0)
        for _ in range(rounds):
            for kind, f in kinds.items():
                best[kind] = max(best[kind], calls_per_second(f, args, callers, 0.4))
        made[f"network of {layers} layers, {callers} calling"] = (callers, *best.values())
    return made


def beside_a_long_one(quick: bool) -> tuple[float, float]:
    """Median seconds of a small evaluation: while another thread is inside one of about 100 ms that
    keeps to one core, and alone."""
    threads = tn.num_threads()
    tn.set_num_threads(1)  # the other core is free
    long = tn.ones((64, 64) if quick else (1600, 1600))
    small, running, stop = tn.ones(16), threading.Event(), threading.Event()

    def compute() -> None:
        while not stop.is_set():
            product = long @ long
            running.set()
            tn.eval(product)
            running.clear()

    def one() -> float:
        began = time.perf_counter()
        (small + 1).sum().item()
        return time.perf_counter() - began

    alone = [one() for _ in range(2000)]
    other = threading.Thread(target=compute)
    other.start()
    beside = []
    end = time.perf_counter() + (0.05 if quick else 3.0)
    while time.perf_counter() < end:
        running.wait()
        time.sleep(1e-3)  # well inside
        beside.append(one())
    stop.set()
    other.join()
    tn.set_num_threads(threads)
    return statistics.median(beside), statistics.median(alone)
