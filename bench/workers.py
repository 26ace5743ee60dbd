"""Training an MLP on several workers: 2 workers of 1 thread against 1 worker of 2 threads.

    .venv/bin/python bench/workers.py             the MLP 784-1024-1024-10 on 1,024 rows
    .venv/bin/python bench/workers.py --quick     tiny sizes: tests the program, not the library

Each configuration runs in a process of its own, in turns; the table has the best time of a step.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time


def measure(workers: int, width: int, rows: int, seconds: float) -> float:
    """The best time of a training step, in milliseconds."""
    import numpy as np

    import tenon as tn
    from tenon import nn, optim

    random = np.random.default_rng(0)
    tn.random.seed(0)
    with tn.Mesh(data=workers):
        layers = [nn.Linear(784, width), nn.relu, nn.Linear(width, width), nn.relu]
        model, optimizer = nn.Sequential(*layers, nn.Linear(width, 10)), optim.SGD(0.01)
        state = [model.state, optimizer.state]

        def loss_of(m: nn.Module, x: tn.Tensor, y: tn.Tensor) -> tn.Tensor:
            return nn.losses.cross_entropy(m(x), y, reduction="mean")

        @tn.compile(inputs=state, outputs=state)
        def step(x: tn.Tensor, y: tn.Tensor) -> tn.Tensor:
            loss, gradients = nn.value_and_grad(model, loss_of)(model, x, y)
            optimizer.update(model, gradients)
            return loss

        x = random.normal(size=(rows, 784)).astype(np.float32)
        batch = tn.shard((x, random.integers(0, 10, rows)), "data")
        for _ in range(3):
            step(*batch).item()
        best, end = float("inf"), time.perf_counter() + seconds
        while time.perf_counter() < end:
            began = time.perf_counter()
            step(*batch).item()
            best = min(best, time.perf_counter() - began)
    return best * 1e3


def in_process(workers: int, threads: int, given: argparse.Namespace) -> float:
    command = [sys.executable, __file__, "--workers", str(workers)]
    if given.quick:
        command.append("--quick")
    env = os.environ | {"TENON_NUM_THREADS": str(threads)}
    done = subprocess.run(command, env=env, capture_output=True, check=True)
    return float(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, help="measure one configuration, in this process")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to test the program")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    width, rows, seconds = (32, 64, 0.1) if given.quick else (1024, 1024, 3.0)
    if given.workers:
        print(json.dumps(measure(given.workers, width, rows, seconds)))
        return
    best = {(1, 2): float("inf"), (2, 1): float("inf")}
    for _ in range(1 if given.quick else given.rounds):
        for workers, threads in best:
            figure = in_process(workers, threads, given)
            best[workers, threads] = min(best[workers, threads], figure)
    for (workers, threads), figure in best.items():
        print(f"{workers} workers x {threads} threads: {figure:.2f} ms a step")
    ratio = best[2, 1] / best[1, 2]
    print(f"ratio {ratio:.2f}; goal 1.05 {'met' if ratio <= 1.05 else 'missed'}")


if __name__ == "__main__":
    main()
