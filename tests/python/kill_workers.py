"""Kills workers of a training run at random moments; the run must end with the bits of a calm one.

    python tests/python/kill_workers.py --kills 200

The program saves after every few steps. `tenon launch -n 2:4 --restarts` goes on after each kill
from the last commit, with fewer workers. When it has no restarts left it is started again. Nothing
may hang, no commit may be lost, and no process may be left behind.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = """
import os, sys
import tenon as tn
folder, total, pids = sys.argv[1], int(sys.argv[2]), sys.argv[3]
world = tn.distributed.init()
rank, size = world.rank(), world.size()
os.write(os.open(pids, os.O_WRONLY | os.O_APPEND | os.O_CREAT), b"%d\\n" % os.getpid())
tn.random.seed(0)
model, optimizer = tn.nn.Linear(16, 12), tn.optim.Adam(1e-2)
run = tn.Checkpoints(folder, keep=2, every=5, model=model, optimizer=optimizer)
committed = max(run.steps(), default=0)
PARTS = 12  # of every step, which any number of workers up to 4 divides
def gradient(weight, bias, step, part):
    x = tn.random.normal((4, 16), key=tn.random.key(1000 * step + part))
    loss = lambda w, b: ((x @ w.T + b) ** 2).mean()
    return tn.concat([g.reshape(-1) for g in tn.grad(loss, argnums=(0, 1))(weight, bias)])
for step in run.steps(total):
    assert step >= committed, (step, committed)
    mine = range(PARTS * rank // size, PARTS * (rank + 1) // size)
    rows = tn.stack([gradient(model.weight, model.bias, step, part) for part in mine])
    g = tn.distributed.all_gather(rows).sum(axis=0)
    n = model.weight.size
    optimizer.update(model, {"weight": g[:n].reshape(model.weight.shape), "bias": g[n:]})
    tn.eval(model.weight, model.bias)
if rank == 0:
    text = model.weight.numpy().tobytes().hex()
    os.write(1, f"{committed} {text}\\n".encode())
"""


class Run:
    def __init__(self, folder: pathlib.Path, total: int) -> None:
        self.program = folder / "program.py"
        self.program.write_text(PROGRAM)
        self.folder, self.total, self.pids = folder / "run", total, folder / "pids"

    def command(self, workers: str, restarts: int) -> list[str]:
        words = [sys.executable, "-m", "tenon", "launch", "-n", workers, "--threads", "1"]
        words += ["--restarts", str(restarts), str(self.program), str(self.folder)]
        return [*words, str(self.total), str(self.pids)]

    def calm(self) -> str:
        done = subprocess.run(self.command("2", 0), capture_output=True, text=True, check=True)
        return done.stdout.split()[1]

    def living(self) -> list[int]:
        if not self.pids.exists():
            return []
        started = [int(p) for p in self.pids.read_text().split()]
        return [p for p in started if self._is_running(p)]

    def _is_running(self, process: int) -> bool:
        try:
            words = pathlib.Path(f"/proc/{process}/cmdline").read_bytes()
            state = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return False
        return str(self.program).encode() in words and state != "Z"


def killed_run(run: Run, kills: int, seed: int, most: float) -> tuple[str, int, int]:
    """The result of a run with up to `kills` kills, the kills there were, and the launches."""
    draw, done, launches = random.Random(seed), 0, 0
    while True:
        launches += 1
        with subprocess.Popen(
            run.command("2:4", 5), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as job:
            while job.poll() is None and done < kills:
                wait_until = time.monotonic() + draw.uniform(0, most)
                while job.poll() is None and time.monotonic() < wait_until:
                    time.sleep(0.01)
                if living := run.living():
                    try:
                        os.kill(draw.choice(living), signal.SIGKILL)
                        done += 1
                    except ProcessLookupError:
                        pass
            out, errors = job.communicate(timeout=600)
        assert not run.living(), "a process is left behind"
        if job.returncode == 0:
            return out.split()[1], done, launches
        assert "was killed by signal 9" in errors, errors


def check(kills: int, seed: int, total: int, most: float) -> tuple[int, int]:
    with tempfile.TemporaryDirectory() as folder:
        calm, stormy = pathlib.Path(folder, "calm"), pathlib.Path(folder, "stormy")
        calm.mkdir(), stormy.mkdir()
        want = Run(calm, total).calm()
        got, done, launches = killed_run(Run(stormy, total), kills, seed, most)
        assert got == want, "the run with kills has other bits"
        return done, launches


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    left, seed = given.kills, given.seed
    while left > 0:
        done, launches = check(min(left, 20), seed, 60, 3.0)
        left, seed = left - done, seed + 1
        print(f"{done} kills, {launches} launches: the same bits; {left} to go", flush=True)
