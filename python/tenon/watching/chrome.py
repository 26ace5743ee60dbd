"""Recordings as JSON for chrome://tracing and ui.perfetto.dev."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .recording import SLICE, Event, Recording

LANES = {"record": "record", "compile_complete": "compile", "compile_failed": "compile",
         "run": "run", "step": "run", "share": "threads", "worker_run": "workers",
         "collective": "workers"}
FIRST = {"record": 1000, "compile": 2000, "run": 3000, "threads": 4000,  # thread ids of lanes
         "workers": 5000}


def pieces(recording: Recording) -> Iterator[bytes]:
    """A timeline with lanes for record, compile, run, threads, and a counter of memory. It comes in
    pieces, as the whole would take much memory."""
    yield b'{"traceEvents": [' + json.dumps(_names(recording))[1:-1].encode()
    shown = [event for event in recording.events if event.kind in LANES or event.kind == "memory"]
    for first in range(0, len(shown), SLICE):
        rows = [_row(event) for event in shown[first:first + SLICE]]
        yield b",\n" + json.dumps(rows)[1:-1].encode()
    yield (f'], "displayTimeUnit": "ms", "otherData": {{"missing events": {recording.missing}}}}}'
           .encode())


def _row(event: Event) -> dict[str, Any]:
    if event.kind == "memory":
        return {"name": "memory", "ph": "C", "pid": 1, "ts": _us(event.began),
                "args": {"bytes": event.value}}
    return _span(event, _lane_of(event))


def _lane_of(event: Event) -> str:
    return "workers" if event.worker >= 0 and event.kind == "step" else LANES[event.kind]


def _number_of(event: Event, lane: str) -> int:
    return FIRST[lane] + (event.worker if lane == "workers" else event.thread)


def _us(seconds: float) -> float:
    return round(1e6 * seconds, 3)


def _span(event: Event, lane: str) -> dict[str, Any]:
    args: dict[str, Any] = {"place": event.place} if event.place else {}
    if lane == "compile":
        args["sequence"] = f"{event.value >> 16:012x}"
    elif event.kind in ("run", "share"):
        args["steps" if event.kind == "run" else "chunks"] = event.value
    elif event.kind in ("worker_run", "collective"):
        args["bytes"] = event.value
    if event.kind == "collective":
        args["waited us"] = _us(event.waited)
    if event.compiled:
        args["compiled"] = True
    row = {"name": event.name or event.kind, "cat": lane, "ph": "X", "pid": 1,
           "tid": _number_of(event, lane), "ts": _us(event.began), "dur": _us(event.seconds),
           "args": args}
    if event.kind == "record":  # a moment
        row |= {"ph": "i", "s": "t"}
        del row["dur"]
    return row


def _names(recording: Recording) -> list[dict[str, Any]]:
    lanes = {}
    names = {"threads": "thread", "workers": "worker"}
    for event in recording.events:
        if event.kind in LANES:
            lane = _lane_of(event)
            number = _number_of(event, lane)
            lanes[number] = f"{names[lane]} {number - FIRST[lane]}" if lane in names else lane
    process = {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "tenon"}}
    threads = [{"name": "thread_name", "ph": "M", "pid": 1, "tid": number, "args": {"name": name}}
               for number, name in sorted(lanes.items())]
    return [process, *threads]
