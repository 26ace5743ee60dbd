"""The memory of a worker whose parameters are stored in parts (FSDP): state / workers + 2 layers.

    .venv/bin/python bench/stored_memory.py             16 layers of width 1024 on 1, 2, 4 workers
    .venv/bin/python bench/stored_memory.py --quick     tiny layers: tests the program

Every worker is a process of `tenon launch`. The state is the parameters and both moments of AdamW.
`beyond` is what a training step needs at its peak beyond the state that a worker holds, in weights
of one layer; a batch of few rows has small activations. Weights are gathered again for the backward
pass.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = """
import json, os, sys
import tenon as tn
from tenon import nn, optim
layers, width, limit = map(int, sys.argv[1:])
world = tn.distributed.init()
tn.random.seed(0)
with tn.Mesh(data=world.size()):
    model = nn.Sequential(*[nn.Linear(width, width, bias=False) for _ in range(layers)])
    nn.shard(model, {"*": tn.stored("data")})
    optimizer = optim.AdamW(learning_rate=1e-3)
    optimizer.init(model.parameters())
    state = [model.state, optimizer.state]

    @tn.compile(inputs=state, outputs=state, memory_limit=limit or None)
    def step(x):
        loss, gradients = nn.value_and_grad(model, lambda m, x: (m(x) ** 2).mean())(model, x)
        optimizer.update(model, gradients)
        return loss

    x = tn.shard(tn.random.normal((world.size(), width), key=tn.random.key(1)), "data")
    for _ in range(3):
        step(x).item()
    tn.memory.reset_peak_memory()
    held = tn.memory.active_memory()
    step(x).item()
    if world.rank() == 0:
        os.write(1, json.dumps([held, tn.memory.peak_memory()]).encode())
"""


def measure(workers: int, layers: int, width: int, limit: int) -> tuple[int, int]:
    """The bytes that a worker holds between steps, and the most during one."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "program.py"
        program.write_text(PROGRAM)
        words = [sys.executable, "-m", "tenon", "launch", "-n", str(workers), "--threads", "1"]
        words += [str(program), str(layers), str(width), str(limit)]
        done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    held, peak = json.loads(done.stdout)
    return held, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--quick", action="store_true", help="tiny layers, to test the program")
    given = parser.parse_args()
    layers, width = (3, 64) if given.quick else (given.layers, given.width)
    layer = 4 * width * width
    for workers in [2] if given.quick else given.workers:
        state = 3 * layers * layer / workers
        for title, limit in [("as it is", 0), ("memory limit", 2 * layer)]:
            try:
                held, peak = measure(workers, layers, width, limit)
            except SystemExit as error:  # no plan fits
                print(f"{workers} workers, {title}: {str(error).strip().splitlines()[-1]}")
                continue
            beyond = (peak - state) / layer
            print(f"{workers} workers, {title}: state {state / 1e6:.1f} MB, "
                  f"held {held / 1e6:.1f} MB, peak {peak / 1e6:.1f} MB, "
                  f"beyond {beyond:.1f} layers; goal 2 {'met' if beyond <= 2 else 'missed'}")


if __name__ == "__main__":
    main()
