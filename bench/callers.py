"""Calls of one compiled function by several threads at once, each kept on its thread or shared.

`optimize_for="throughput"` leaves the pool alone: threads that call at once do not wait for each
other, and none does a part of another's work.
"""

from __future__ import annotations

import os
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
