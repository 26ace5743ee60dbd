"""One library with one workload in a process of its own, driven by lines on its standard input.

    worker.py RIVAL WORKLOAD THREADS [--quick]

It runs the workload for the first time and writes what it took and some of the values; then, for
each line "turn SECONDS", it runs it for about so long and writes the times; each answer is a line
of JSON. Whatever the library prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import time

import numpy as np

import libraries
from workloads import WORKLOADS

SAMPLES = 512  # values sent to be compared
CHECKED_STEPS = 3


def sample(values: np.ndarray) -> list[float]:
    flat = values.reshape(-1)
    return flat[:: max(1, flat.size // SAMPLES)][:SAMPLES].astype(float).tolist()


def turn(run, seconds: float, calls: int) -> list[float]:
    """Seconds of one call, again and again; the first, in which threads wake up, does not count."""
    run()
    taken, end = [], time.perf_counter() + seconds
    while not taken or time.perf_counter() < end:
        began = time.perf_counter()
        for _ in range(calls):
            run()
        taken.append((time.perf_counter() - began) / calls)
    return taken


def calls_of(run) -> int:
    """Calls that make a millisecond: the clock does not count then."""
    run()
    began = time.perf_counter()
    run()
    return max(1, int(1e-3 / (time.perf_counter() - began)))


def serve(rival: str, workload_name: str, threads: int, quick: bool, answer) -> None:
    workload = WORKLOADS[workload_name]
    library = libraries.load(rival, threads)
    run = library.prepare(workload, workload.inputs(quick))
    began = time.perf_counter()
    result = run()
    first = time.perf_counter() - began
    values = sample(library.values(result))
    del result
    if workload.kind == "step":
        values += [sample(library.values(run()))[0] for _ in range(CHECKED_STEPS - 1)]
    peak = getattr(library, "peak_bytes", lambda: None)()
    answer({"first_call": first, "values": values, "peak_bytes": peak})
    calls = None
    for line in sys.stdin:
        calls = calls or calls_of(run)
        answer({"times": turn(run, float(line.split()[1]), calls)})


def main() -> None:
    rival, workload, threads = sys.argv[1:4]
    if hasattr(os, "sched_setaffinity"):  # as many processors as threads, for every rival alike
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(threads)])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(value) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    try:
        serve(rival, workload, int(threads), "--quick" in sys.argv, answer)
    except Exception as error:  # the other rivals go on
        answer({"error": f"{type(error).__name__}: {error}".splitlines()[0]})


if __name__ == "__main__":
    main()
