"""Timing two ways of computing the same thing side by side, so that both meet the same machine."""

from __future__ import annotations

import gc
import os
import platform
import statistics
import time
from collections.abc import Callable


def interleave(first: Callable[[], object], second: Callable[[], object], seconds: float = 1.0,
               least: int = 5) -> tuple[float, float]:
    """Median seconds of each, called in turn: at least `least` times, for about `seconds`."""
    ours, theirs = in_turn([first, second], seconds, least)
    return ours, theirs


def in_turn(functions: list[Callable[[], object]], seconds: float = 1.0,
            least: int = 5) -> list[float]:
    """The same for any number of functions."""
    for f in functions:
        f()
        f()
    taken: list[list[float]] = [[] for _ in functions]
    end = time.perf_counter() + seconds
    while len(taken[0]) < least or time.perf_counter() < end:
        for times, f in zip(taken, functions):
            began = time.perf_counter()
            f()
            times.append(time.perf_counter() - began)
    return [statistics.median(times) for times in taken]


def per_call(repeat: Callable[[int], object], seconds: float = 0.5) -> float:
    """Median seconds of one call; `repeat(n)` makes n of them."""
    calls = 1000
    repeat(calls)
    taken = []
    gc.collect()
    gc.disable()
    try:
        end = time.perf_counter() + seconds
        while len(taken) < 5 or time.perf_counter() < end:
            began = time.perf_counter()
            repeat(calls)
            taken.append((time.perf_counter() - began) / calls)
    finally:
        gc.enable()
    return statistics.median(taken)


def time_text(seconds: float) -> str:
    """`1.23 ms`, with the unit that fits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def cpu_model() -> str:
    """The processor's name."""
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    import numpy

    import tenon as tn

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cpu": cpu_model(),
        "cores": usable,
        "threads": tn.num_threads(),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "tenon": tn.__version__,
    }
