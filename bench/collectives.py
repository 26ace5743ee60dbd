"""Sums over the processes of mpirun: Tenon's, in a fixed order, against MPI_Allreduce.

    python bench/collectives.py [--workers 2] [--turns 5]     --turns 1 tests the program
    python bench/collectives.py --network                     MPI through TCP only

The two take turns, and a ratio is that of the medians. `machines` is the number of hosts that the
processes pretend to be on: on one, Tenon sums through shared memory; between several, through MPI.
MPI itself is not misled, and moves data through shared memory; that between machines is a network.
With --network both are restricted to TCP on the loopback device, as two machines.
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
# What leaves MPI only TCP: arguments of mpirun, variables.
NETWORK = {
    "Open MPI": ("--mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include lo".split(), {}),
    "MPICH": (
        [],
        {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH3_NOLOCAL": "1"}
        | {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"},
    ),
}
WRAPPER = """
r=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
export TENON_HOST=host$((r * $1 / $2)); shift 2
[ "$r" = 0 ] || exec >/dev/null
exec "$@" 2>/dev/null
"""


def seconds(
    name: str, by: str, workers: int, machines: int, network: bool
) -> dict[int, float]:
    """Of one sum, by bytes."""
    mpirun = MPIRUNS[name]
    extra, variables = NETWORK[name] if network else ([], {})
    words = [mpirun, "-n", str(workers), *extra]
    if mpirun.endswith("openmpi"):
        words += ["--oversubscribe", "--bind-to", "none"]
    words += ["sh", "-c", WRAPPER, "sh", str(machines), str(workers), PROGRAM]
    words += ["--benchmark_filter=sum_of_processes", "--benchmark_format=json"]
    env = os.environ | {"BENCH_SUM_BY": by, "OMPI_ALLOW_RUN_AS_ROOT": "1"}
    env |= {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TENON_NUM_THREADS": "1"}
    env |= variables
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
    parser.add_argument("--network", action="store_true", help="MPI through TCP only")
    given = parser.parse_args()
    found = [name for name, program in MPIRUNS.items() if shutil.which(program)]
    if not found:
        sys.exit("collectives: neither Open MPI nor MPICH is installed")
    for name in MPIRUNS:
        if name not in found:
            print(f"{name} is not installed")
            continue
        for machines in (2,) if given.network else (1, 2):
            times: dict[str, dict[int, list[float]]] = {}
            for _ in range(given.turns):
                for by in ("tenon", "library"):
                    rows = times.setdefault(by, defaultdict(list))
                    for size, time in seconds(
                        name, by, given.workers, machines, given.network
                    ).items():
                        rows[size].append(time)
            way = ", through TCP" if given.network else ""
            print(f"{name}, {given.workers} processes, machines: {machines}{way}")
            for size in times["tenon"]:
                own, peer = (statistics.median(times[by][size]) for by in ("tenon", "library"))
                print(
                    f"  {size >> 10:6} KB  {own * 1e6:9.1f} us  MPI_Allreduce {peer * 1e6:9.1f} us"
                    f"  {own / peer:5.2f} x"
                )


if __name__ == "__main__":
    main()
