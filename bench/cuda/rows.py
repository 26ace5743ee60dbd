"""The workloads of bench/cuda: shapes, and how they are timed."""

import time

GELU = (8, 1000, 4096)
SQUARE = (8192, 8192)
LONG = (64 << 20,)
MLP = (128, 784, 256, 10)


def best_of(run, wait, rounds=5, least=0.2):
    """Seconds of one call of `run`, the best of some rounds."""
    run(), wait()
    began = time.perf_counter()
    run(), wait()
    calls = max(1, int(least / max(time.perf_counter() - began, 1e-6)))
    best = float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(calls):
            run()
        wait()
        best = min(best, (time.perf_counter() - began) / calls)
    return best


def show(name, seconds, nbytes=0):
    rate = f"{nbytes / seconds / 1e12:8.2f} TB/s" if nbytes else ""
    print(f"{name:<34}{seconds * 1e6:12.2f} us{rate}", flush=True)
