"""The figures of a recording."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..explanation.units import bytes_text, time_text
from .recording import Event, Recording
from .worker_lanes import workers_of


class Summary(NamedTuple):
    """The figures of a recording; None: unknown, or not applicable."""

    seconds: float
    ops: int
    compiled: float | None  # share of the ops
    runs: int | None
    running: float | None  # seconds in which some plan ran
    compilations: int
    compiling: float | None  # seconds
    peak: int | None  # bytes
    workers: int = 0  # of a mesh, or processes
    communicating: float = 0.0  # seconds of all workers in collectives
    waiting: float = 0.0  # and in those for others

    @property
    def rate(self) -> float:
        return self.ops / self.seconds if self.seconds else 0.0

    def rows(self) -> dict[str, str]:
        """Names and texts, "-" for what is not known."""
        rows = {"time": time_text(self.seconds), "ops": f"{self.ops:,}",
                "ops/s": f"{self.rate:,.0f}", "compiled": None, "runs": None, "running": None,
                "compilations": str(self.compilations), "compiling": None, "peak memory": None}
        if self.compiled is not None:
            rows["compiled"] = f"{100 * self.compiled:.0f} %"
        if self.runs is not None and self.running is not None:
            rows["runs"], rows["running"] = f"{self.runs:,}", time_text(self.running)
        if self.compiling is not None:
            rows["compiling"] = time_text(self.compiling)
        if self.peak is not None:
            rows["peak memory"] = bytes_text(self.peak)
        if self.workers:
            rows["workers"] = str(self.workers)
            rows["communicating"] = time_text(self.communicating / self.workers)
            rows["waiting"] = time_text(self.waiting / self.workers)
        return {name: text or "-" for name, text in rows.items()}


def figures(recording: Recording) -> dict[str, str]:
    """Return the known figures of a recording."""
    if not recording.events:
        return {"time": time_text(recording.seconds)}
    return {name: text for name, text in summary_of(recording).rows().items() if text != "-"}


def gain(before: Recording, after: Recording) -> str:
    """Return the speedup of the second recording as text, or "" if it is unknown."""
    first, second = summary_of(before).rate, summary_of(after).rate
    return f"{second / first:.2f}x the ops a second of before" if first and second else ""


def summary_of(recording: Recording) -> Summary:
    # An instruction log has a line for each op; a recording knows how many a flush had.
    told = recording.of("ops") or recording.of("record")
    ops = sum(event.value for event in told)
    compiled = sum(event.value for event in told if event.compiled)
    runs = recording.of("run")
    compiles = recording.of("compile_complete", "compile_failed")
    known = not recording.plain
    return Summary(recording.seconds, ops, compiled / ops if ops else None,
                   len(runs) if known else None, covered(runs) if known else None,
                   len(compiles), covered(compiles) if compiles else None,
                   max((event.value for event in recording.of("memory")), default=None),
                   *_of_workers(recording))


def _of_workers(recording: Recording) -> tuple[int, float, float]:
    """Return the number of workers, and their total seconds of communicating and waiting."""
    calls = recording.of("collective")
    return (len(workers_of(recording)), sum(event.seconds for event in calls),
            sum(event.waited for event in calls))


def covered(events: Iterable[Event]) -> float:
    """Seconds in which at least one of them was under way."""
    total, end = 0.0, 0.0
    for event in sorted(events, key=lambda event: event.began):
        total += max(0.0, event.end - max(event.began, end))
        end = max(end, event.end)
    return total
