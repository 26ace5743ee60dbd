"""The figures of bench/run.py beside those of an earlier build, in turns, as ratios.

    make bench BEFORE=../old/build/release/python ONLY="gelu calls"

Every workload and section runs in processes of its own, which take turns with the two packages, so
that both meet the same machine. Rivals are left out. A ratio above 1 is slower than before.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import sections
from workloads import WORKLOADS

HERE = pathlib.Path(__file__).resolve().parent
NOT_PACKAGES = {"cpp"}  # measures the program tenon_bench, which belongs to one build


def figures_of(name: str, package: str, quick: bool) -> dict[str, float]:
    """Seconds, or whatever a figure counts, by row."""
    with tempfile.TemporaryDirectory() as results:
        command = [sys.executable, str(HERE / "run.py"), name, "--warm", "--results", results]
        command += ["--rivals"] + ["--quick"] * quick
        env = os.environ | {"PYTHONPATH": package}
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        latest = pathlib.Path(results) / "latest.json"
        if not latest.exists():
            raise SystemExit(f"bench: {name} with {package}:\n{done.stdout}{done.stderr}")
        found = json.loads(latest.read_text())
    rows = {row["name"]: row["tenon_ms"] / 1e3 for row in found["rows"]}
    return rows | {row["name"]: row["ours"] for row in found["figures"] if row["ours"]}


def compare(name: str, packages: list[str], turns: int, quick: bool) -> dict[str, tuple]:
    """By row: the medians before and now."""
    taken: dict[str, tuple[list[float], list[float]]] = {}
    for turn in range(turns):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            for row, value in figures_of(name, packages[which], quick).items():
                taken.setdefault(row, ([], []))[which].append(value)
    return {row: tuple(map(statistics.median, both)) for row, both in taken.items() if all(both)}


def main() -> None:
    known = [*WORKLOADS, *(name for name in sections.SECTIONS if name not in NOT_PACKAGES)]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", help="the folder that holds the package of the earlier build")
    parser.add_argument("names", nargs="*", metavar="NAME", help=" ".join(known))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to test the program")
    given = parser.parse_args()
    if unknown := set(given.names) - set(known):
        parser.error(f"unknown names: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    packages = [given.before, os.environ["PYTHONPATH"]]
    ratios: dict[str, float] = {}
    for name in given.names or known:
        for row, (before, now) in compare(name, packages, given.turns, given.quick).items():
            ratios[row] = now / before
            print(f"{ratios[row]:6.3f}  {row}", flush=True)
    slower = [row for row, ratio in ratios.items() if ratio > 1.03]
    middle = statistics.median(ratios.values())
    print(f"{len(ratios)} figures, median {middle:.3f}, {len(slower)} more than 3 % slower")


if __name__ == "__main__":
    main()
