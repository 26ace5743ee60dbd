"""Runs a workload on every rival in turn, each in a process of its own, and makes a row of it.

Processes keep thread pools and memory apart; only one of them computes at a time. They take turns
in rounds, so that all meet the same machine, and the machine's limits are measured in between.
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
import selectors
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import libraries
from workloads.workload import Goal, Workload

HERE = pathlib.Path(__file__).resolve().parent
REST = 0.005  # seconds in which the threads of the last rival stop spinning
MANY_THREADS = 16  # from here on the goals are those of large machines


@dataclass(frozen=True)
class Options:
    threads: int
    quick: bool = False
    rivals: tuple[str, ...] = tuple(libraries.RIVALS)
    python: str = sys.executable  # with Tenon
    peers_python: str = sys.executable  # with the others
    cold: bool = True  # first calls also with nothing compiled before
    rounds: int = 7
    turn: float = 0.3  # seconds
    timeout: float = 300.0  # for a rival to start and run for the first time
    cache: pathlib.Path = HERE.parent / "build" / "bench_cache"  # of what rivals compiled
    limits: pathlib.Path = HERE.parent / "build" / "release" / "tenon_limits"


@dataclass
class Figures:
    """What one rival did."""

    first_call: float
    values: np.ndarray
    peak_bytes: int | None = None
    times: list[float] = field(default_factory=list)

    @property
    def median_ms(self) -> float:
        return 1e3 * statistics.median(self.times)

    @property
    def quartiles_ms(self) -> list[float]:
        return [1e3 * float(q) for q in np.quantile(self.times, [0.25, 0.75])]


class RivalFailed(Exception):
    """A rival gave no answer in time, or an error instead of one."""


class Worker:
    def __init__(self, rival: str, workload: str, options: Options, cache: pathlib.Path) -> None:
        count = str(options.threads)
        env = os.environ | {
            **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), count),
            "TENON_CACHE_DIR": str(cache / "tenon"),
            "TORCHINDUCTOR_CACHE_DIR": str(cache / "torch"),
            "JAX_COMPILATION_CACHE_DIR": str(cache / "jax"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PLATFORMS": "cpu",
            "CUDA_VISIBLE_DEVICES": "",
        }
        quick = ["--quick"] * options.quick
        program = [python_of(rival, options), str(HERE / "worker.py")]
        command = [*program, rival, workload, count, *quick]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, env=env, text=True)

    def answer(self, seconds: float) -> dict:
        with selectors.DefaultSelector() as ready:
            ready.register(self.process.stdout, selectors.EVENT_READ)
            if not ready.select(seconds):
                raise RivalFailed(f"no answer in {seconds:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            raise RivalFailed(f"the process ended with status {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise RivalFailed(answer["error"])
        return answer

    def start(self, seconds: float) -> Figures:
        answer = self.answer(seconds)
        return Figures(answer["first_call"], np.array(answer["values"]), answer["peak_bytes"])

    def turn(self, seconds: float, timeout: float) -> list[float]:
        print(f"turn {seconds}", file=self.process.stdin, flush=True)
        return self.answer(timeout)["times"]

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def python_of(rival: str, options: Options) -> str:
    return options.python if libraries.family(rival) == "tenon" else options.peers_python


@functools.cache
def has(python: str, module: str) -> bool:
    """Whether an interpreter finds a module."""
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", code]).returncode == 0


def rivals_of(workload: Workload, options: Options) -> list[str]:
    """Those with a version whose library is installed."""
    wanted = [rival for rival in options.rivals if libraries.family(rival) in workload.versions
              and (rival not in libraries.BEYOND_VERSIONS or rival in workload.rivals)]
    return [r for r in wanted if has(python_of(r, options), libraries.family(r))]


def start(workload: Workload, options: Options, tell: Callable[[str], None]):
    """Workers that made their first call, one after the other, and what kept the others from it."""
    workers: dict[str, Worker] = {}
    figures: dict[str, Figures] = {}
    failed: dict[str, str] = {}
    for rival in rivals_of(workload, options):
        tell(f"{workload.name}: first call of {rival}")
        workers[rival] = Worker(rival, workload.name, options, options.cache)
        try:
            figures[rival] = workers[rival].start(options.timeout)
        except RivalFailed as error:
            failed[rival] = str(error)
            workers.pop(rival).close()
    return workers, figures, failed


def limits_of(options: Options) -> dict[str, float]:
    """Bytes and multiply-adds a second, when the program that measures them is built."""
    if not options.limits.exists():
        return {}
    command = [str(options.limits), str(options.threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def disagreeing(workload: Workload, figures: dict[str, Figures]) -> dict[str, str]:
    """Rivals whose values are not Tenon's."""
    found = {}
    ours = figures["tenon"].values
    for rival, its in figures.items():
        if its.values.shape != ours.shape:
            found[rival] = f"results of {its.values.size} sampled values, not {ours.size}"
        elif not np.allclose(its.values, ours, rtol=workload.tolerance, atol=workload.tolerance):
            found[rival] = f"results differ by {np.abs(its.values - ours).max():.3g}"
    return found


def first_call_ms(rival: str, workload: Workload, options: Options) -> float:
    """In a new process, with nothing compiled before."""
    with tempfile.TemporaryDirectory() as empty:
        worker = Worker(rival, workload.name, options, pathlib.Path(empty))
        try:
            return 1e3 * worker.start(options.timeout).first_call
        finally:
            worker.close()


def measure(workload: Workload, options: Options, tell: Callable[[str], None]) -> dict:
    """One row of the table: everything about one workload."""
    workers, figures, failed = start(workload, options, tell)
    limits: dict[str, float] = {}
    try:
        if "tenon" not in figures:
            raise RivalFailed(f"{workload.name}: tenon: {failed['tenon']}")
        failed |= disagreeing(workload, figures)
        for number in range(options.rounds):
            tell(f"{workload.name}: round {number + 1} of {options.rounds}")
            for rival, worker in workers.items():
                figures[rival].times += worker.turn(options.turn, options.timeout)
                time.sleep(REST)
            if not options.quick:
                limits = {kind: max(rate, limits.get(kind, 0))
                          for kind, rate in limits_of(options).items()}
    finally:
        for worker in workers.values():
            worker.close()
    cold = {}
    if workload.goal.has_first_call and options.cold:
        for rival in figures:
            tell(f"{workload.name}: first call of {rival}, nothing compiled before")
            runs = 3 if rival == "tenon" else 1
            times = [first_call_ms(rival, workload, options) for _ in range(runs)]
            cold[rival] = statistics.median(times)
    return row_of(workload, options, figures, failed, limits, cold)


def limit_ms(workload: Workload, limits: dict[str, float]) -> float | None:
    """The time the machine cannot go below: arithmetic, or moving the bytes past its caches."""
    work = workload.work
    if not limits or work == type(work)():
        return None
    kind = "stream" if work.written else "read"
    seconds = max((work.read + work.written) / limits[kind],
                  work.multiply_adds / limits["multiply_adds"])
    return 1e3 * seconds


def row_of(workload: Workload, options: Options, figures: dict[str, Figures],
           failed: dict[str, str], limits: dict[str, float], cold: dict) -> dict:
    ours = figures["tenon"]
    tenon_ms = ours.median_ms
    others = {rival: its for rival, its in figures.items() if rival != "tenon"}
    peers = {rival: its.median_ms for rival, its in others.items()}
    known = [rival for rival in peers if libraries.family(rival) != "tenon" and rival not in failed]
    best = min(known, key=peers.get, default=None)
    limit = limit_ms(workload, limits)
    copied = workload.work.read + workload.work.written
    row = {
        "name": workload.name,
        "title": workload.title,
        "tenon_ms": tenon_ms,
        "peers": peers,
        "limit_ms": limit,
        "best_peer": best,
        "speedup_over_best_peer": peers[best] / tenon_ms if best else None,
        "share_of_limit": limit / tenon_ms if limit else None,
        "first_call_ms": cold.get("tenon") or 1e3 * ours.first_call,
        "peers_first_call_ms": {r: cold[r] for r in peers if r in cold},
        "peers_warm_first_call_ms": {r: 1e3 * its.first_call for r, its in others.items()},
        "quartiles_ms": {rival: its.quartiles_ms for rival, its in figures.items()},
        "copy_ms": 1e3 * copied / limits["copy"] if limits and workload.work.written else None,
        "peak_bytes": ours.peak_bytes,
        "limits": limits,
        "notes": failed,
    }
    return row | judged(workload, options, row)


def judged(workload: Workload, options: Options, row: dict) -> dict:
    """The parts of the goal and whether each is met; without its rival a part is left out."""
    goal = Goal() if options.quick else workload.goal
    parts: dict[str, bool] = {}
    many = options.threads >= MANY_THREADS
    least = goal.least_ratio_many if many else goal.least_ratio
    rival = None if many else goal.rival
    theirs = row["peers"].get(rival or row["best_peer"])
    if least and theirs:
        parts[f">= {least:g}x {rival or 'best'}"] = theirs / row["tenon_ms"] >= least
    if goal.copy_times and row["copy_ms"] and not many:
        within = row["tenon_ms"] <= goal.copy_times * row["copy_ms"]
        parts[f"<= {goal.copy_times:g}x copy"] = within
    if goal.most_ms:
        parts[f"<= {goal.most_ms:g} ms"] = row["tenon_ms"] <= goal.most_ms
    if goal.first_call_ms:
        soon = row["first_call_ms"] <= goal.first_call_ms
        parts[f"first call <= {goal.first_call_ms:g} ms"] = soon
    first = row["peers_first_call_ms"].get(rival or row["best_peer"])
    if goal.first_call_ratio and first:
        soon = first / row["first_call_ms"] >= goal.first_call_ratio
        parts[f"first call >= {goal.first_call_ratio:g}x {rival or 'best'}"] = soon
    if row["notes"]:
        parts |= {f"{rival}: {note}": False for rival, note in row["notes"].items()
                  if note.startswith("results")}
    return {"goal": parts, "met": all(parts.values()) if parts else None}
