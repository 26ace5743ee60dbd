"""Training an MLP on several workers: 2 workers of 1 thread against 1 worker of 2 threads.

    .venv/bin/python bench/workers.py             the MLP 784-1024-1024-10 on 1,024 rows
    .venv/bin/python bench/workers.py --quick     tiny sizes: tests the program, not the library

Each configuration runs in a process of its own, in turns; the table has the best time of a step.
`--grid 1x16 2x8 4x4 8x2` measures other numbers of workers and threads. PyTorch's DDP over gloo
does the same where `TORCH_PYTHON`, by default this Python, has PyTorch.
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


TORCH = """
import json, os, sys, time
import torch, torch.distributed as dist, torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
workers, threads, width, rows, seconds = (float(v) for v in sys.argv[1:])
workers, threads, width, rows = int(workers), int(threads), int(width), int(rows)
def run(rank, file):
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    model = torch.nn.Sequential(torch.nn.Linear(784, width), torch.nn.ReLU(),
        torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 10))
    if workers > 1:
        dist.init_process_group("gloo", init_method="file://" + file, rank=rank, world_size=workers)
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(rows // workers, 784), torch.randint(0, 10, (rows // workers,))
    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()
    for _ in range(3):
        step()
    best, goes_on = float("inf"), torch.ones(1)
    end = time.perf_counter() + seconds
    while goes_on.item():
        began = time.perf_counter()
        step()
        best = min(best, time.perf_counter() - began)
        goes_on[0] = time.perf_counter() < end
        if workers > 1:  # all end together
            dist.broadcast(goes_on, 0)
    if rank == 0:
        print(json.dumps(best * 1e3), flush=True)
import tempfile
file = os.path.join(tempfile.mkdtemp(), "meet")
children = []
for rank in range(1, workers):
    if not (child := os.fork()):
        run(rank, file)
        os._exit(0)
    children.append(child)
run(0, file)
for child in children:
    os.waitpid(child, 0)
"""


def by_torch(workers: int, threads: int, width: int, rows: int, seconds: float) -> float | None:
    """The same of PyTorch, in milliseconds; None where it is not installed."""
    python, env = os.environ.get("TORCH_PYTHON", sys.executable), dict(os.environ)
    if "TORCH_PYTHON" in env:  # another Python, which must not see the packages of this one
        for name in ("PYTHONHOME", "PYTHONPATH", "LD_LIBRARY_PATH"):
            env.pop(name, None)
    if subprocess.run([python, "-c", "import torch"], capture_output=True, env=env).returncode:
        return None
    words = [python, "-c", TORCH, *map(str, (workers, threads, width, rows, seconds))]
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    return float(json.loads(done.stdout)) if done.returncode == 0 else None


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
    parser.add_argument("--grid", nargs="*", default=["1x2", "2x1"], help="workers x threads")
    given = parser.parse_args()
    width, rows, seconds = (32, 64, 0.1) if given.quick else (1024, 1024, 3.0)
    if given.workers:
        print(json.dumps(measure(given.workers, width, rows, seconds)))
        return
    grid = [tuple(map(int, one.split("x"))) for one in given.grid]
    best, peers = dict.fromkeys(grid, float("inf")), dict.fromkeys(grid, float("inf"))
    for _ in range(1 if given.quick else given.rounds):
        for workers, threads in grid:
            best[workers, threads] = min(best[workers, threads],
                                         in_process(workers, threads, given))
            theirs = by_torch(workers, threads, width, rows, seconds)
            peers[workers, threads] = min(peers[workers, threads], theirs or float("inf"))
    for (workers, threads), figure in best.items():
        theirs = peers[workers, threads]
        beside = f", PyTorch {theirs:.2f} ms" if theirs < float("inf") else ""
        print(f"{workers} workers x {threads} threads: {figure:.2f} ms a step{beside}")
    for one in grid[1:]:
        ratio = best[one] / best[grid[0]]
        beside = f", PyTorch {peers[one] / peers[grid[0]]:.2f}" if peers[one] < float("inf") else ""
        print(f"{one[0]}x{one[1]} to {grid[0][0]}x{grid[0][1]}: ratio {ratio:.2f}{beside}; "
              f"goal 1.05 {'met' if ratio <= 1.05 else 'missed'}")


if __name__ == "__main__":
    main()
