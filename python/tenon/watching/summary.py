"""The figures of a recording."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..explanation.units import bytes_text, time_text
from .recording import Event, Recording


class Summary(NamedTuple):
    """What a recording says in numbers."""

    seconds: float
    ops: int
    compiled: float  # share of the ops
    runs: int
    running: float  # seconds in which some plan ran
    compilations: int
    compiling: float  # seconds
    peak: int  # bytes

    @property
    def rate(self) -> float:
        return self.ops / self.seconds if self.seconds else 0.0

    def rows(self) -> list[tuple[str, str]]:
        return [("time", time_text(self.seconds)), ("ops", f"{self.ops:,}"),
                ("ops/s", f"{self.rate:,.0f}"), ("compiled", f"{100 * self.compiled:.0f} %"),
                ("runs", f"{self.runs:,}"), ("running", time_text(self.running)),
                ("compilations", str(self.compilations)),
                ("compiling", time_text(self.compiling)), ("peak memory", bytes_text(self.peak))]


def summary_of(recording: Recording) -> Summary:
    # An instruction log has a line for each op; a recording knows how many a flush had.
    told = recording.of("ops") or recording.of("record")
    ops = sum(event.value for event in told)
    compiled = sum(event.value for event in told if event.compiled)
    runs = recording.of("run")
    compiles = recording.of("compile_complete", "compile_failed")
    return Summary(recording.seconds, ops, compiled / ops if ops else 0.0, len(runs), covered(runs),
                   len(compiles), covered(compiles),
                   max((event.value for event in recording.of("memory")), default=0))


def covered(events: Iterable[Event]) -> float:
    """Seconds in which at least one of them was under way."""
    total, end = 0.0, 0.0
    for event in sorted(events, key=lambda event: event.began):
        total += max(0.0, event.end - max(event.began, end))
        end = max(end, event.end)
    return total
