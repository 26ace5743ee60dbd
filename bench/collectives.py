"""Sums over the processes of mpirun: Tenon's, in a fixed order, against MPI_Allreduce.

    python bench/collectives.py [--workers 2] [--turns 5]     --turns 1 tests the program

The two take turns, and a ratio is that of the medians. `machines` is the number of hosts that the
processes pretend to be on: on one, Tenon sums through shared memory; between several, through MPI.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict

PROGRAM = os.path.join(os.path.dirname(__file__), "..", "build", "release", "tenon_bench")
MPIRUNS = {"Open MPI": "mpirun.openmpi", "MPICH": "mpirun.mpich"}
WRAPPER = """
r=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
export TENON_HOST=host$((r * $1 / $2)); shift 2
[ "$r" = 0 ] || exec >/dev/null
exec "$@" 2>/dev/null
"""


def seconds(mpirun: str, by: str, workers: int, machines: int) -> dict[int, float]:
    """Of one sum, by bytes."""
    words = [mpirun, "-n", str(workers)]
    if mpirun.endswith("openmpi"):
        words += ["--oversubscribe", "--bind-to", "none"]
    words += ["sh", "-c", WRAPPER, "sh", str(machines), str(workers), PROGRAM]
    words += ["--benchmark_filter=sum_of_processes", "--benchmark_format=json"]
    env = os.environ | {"BENCH_SUM_BY": by, "OMPI_ALLOW_RUN_AS_ROOT": "1"}
    env |= {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TENON_NUM_THREADS": "1"}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    scale = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}
    found = {}
    for entry in json.loads(done.stdout)["benchmarks"]:
        size = int(entry["name"].split("bytes:")[1].split("/")[0])
        found[size] = entry["real_time"] * scale[entry["time_unit"]]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args()
    found = {name: shutil.which(program) for name, program in MPIRUNS.items()}
    if not any(found.values()):
        sys.exit("collectives: neither Open MPI nor MPICH is installed")
    for name, mpirun in found.items():
        if not mpirun:
            print(f"{name} is not installed")
            continue
        for machines in (1, 2):
            times: dict[str, dict[int, list[float]]] = {}
            for _ in range(given.turns):
                for by in ("tenon", "library"):
                    rows = times.setdefault(by, defaultdict(list))
                    for size, time in seconds(mpirun, by, given.workers, machines).items():
                        rows[size].append(time)
            print(f"{name}, {given.workers} processes, machines: {machines}")
            for size in times["tenon"]:
                own, peer = (statistics.median(times[by][size]) for by in ("tenon", "library"))
                print(
                    f"  {size >> 10:6} KB  {own * 1e6:9.1f} us  MPI_Allreduce {peer * 1e6:9.1f} us"
                    f"  {own / peer:5.2f} x"
                )


if __name__ == "__main__":
    main()
