"""How long it takes until all workers of `tenon launch` name one that was killed (kill -9).

    .venv/bin/python bench/failures.py                  4 workers on this machine, 20 kills
    .venv/bin/python bench/failures.py --machines 2     2 pretended hosts, through mpirun
    .venv/bin/python bench/failures.py --quick          one kill: tests the program

The workers exchange sums without a pause. One of them is killed at a random moment; the time is
from the signal until the last of the others has raised WorkerFailed with its number.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = """
import os, pathlib, sys, time
import tenon as tn
folder = pathlib.Path(sys.argv[1])
world = tn.distributed.init()
rank = world.rank()
def tell(name, text):
    (folder / f".{name}").write_text(text)
    os.rename(folder / f".{name}", folder / name)
try:
    tn.distributed.all_sum(tn.ones(1000)).eval()
    tell(f"pid{rank}", str(os.getpid()))
    while True:
        tn.distributed.all_sum(tn.ones(1000)).eval()
except tn.WorkerFailed as error:
    tell(f"end{rank}", f"{time.monotonic()} {error}")
    sys.exit(1)
"""
# Pretends that ranks are on several hosts. It stays: mpirun would end the others too early.
HOSTS = """
r=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
export TENON_HOST=host$((r * $1 / $2)); folder=$3; shift 3
"$@"
while [ ! -e "$folder/done" ]; do sleep 0.05; done
"""


def command_for(folder: pathlib.Path, workers: int, machines: int) -> list[str]:
    program = folder / "program.py"
    program.write_text(PROGRAM)
    words = [sys.executable, str(program), str(folder)]
    if machines == 1:
        launch = [sys.executable, "-m", "tenon", "launch", "-n", str(workers), "--threads", "1"]
        return [*launch, *words[1:]]
    mpirun = shutil.which("mpirun.openmpi")
    if not mpirun:
        sys.exit("failures: mpirun.openmpi is not installed")
    start = [mpirun, "-n", str(workers), "--oversubscribe", "--bind-to", "none"]
    return [*start, "sh", "-c", HOSTS, "sh", str(machines), str(workers), str(folder), *words]


def texts(folder: pathlib.Path, name: str, ranks: list[int], seconds: float) -> list[str]:
    """What these workers have told."""
    end = time.monotonic() + seconds
    while not all((folder / f"{name}{r}").exists() for r in ranks):
        if time.monotonic() > end:
            sys.exit(f"failures: after {seconds} s not all workers have written {name}")
        time.sleep(0.01)
    return [(folder / f"{name}{r}").read_text() for r in ranks]


def kill_one(workers: int, machines: int, draw: random.Random) -> float:
    """Seconds until the last worker has named the one that was killed."""
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        env = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        quiet = subprocess.DEVNULL
        job = subprocess.Popen(command_for(folder, workers, machines), env=env | {
            "TENON_NUM_THREADS": "1"}, stdout=quiet, stderr=quiet)
        pids = [int(text) for text in texts(folder, "pid", list(range(workers)), 60)]
        time.sleep(draw.uniform(0.0, 0.3))
        victim = draw.randrange(workers)
        began = time.monotonic()
        os.kill(pids[victim], signal.SIGKILL)
        others = [r for r in range(workers) if r != victim]
        ends = texts(folder, "end", others, 60)
        (folder / "done").touch()
        job.wait(60)
        for text in ends:
            if f"worker {victim}" not in text:
                sys.exit(f"failures: worker {victim} was killed, and one says {text}")
        return max(float(text.split()[0]) for text in ends) - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--machines", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="one kill, to test the program")
    given = parser.parse_args()
    draw = random.Random(given.seed)
    rounds = 1 if given.quick else given.rounds
    times = sorted(kill_one(given.workers, given.machines, draw) for _ in range(rounds))
    goal = 0.1 if given.machines == 1 else 15.0
    print(f"{given.workers} workers, machines: {given.machines}, {rounds} kills: "
          f"median {times[rounds // 2] * 1e3:.0f} ms, longest {times[-1] * 1e3:.0f} ms")
    print(f"goal {goal:g} s {'met' if times[-1] <= goal else 'missed'}")


if __name__ == "__main__":
    main()
