"""Recordings as JSON for chrome://tracing and ui.perfetto.dev."""

from __future__ import annotations

import json
from typing import Any

from .recording import Event, Recording

LANES = {"record": "record", "compile_complete": "compile", "compile_failed": "compile",
         "run": "run", "step": "run", "share": "threads"}
FIRST = {"record": 1000, "compile": 2000, "run": 3000, "threads": 4000}  # thread ids of lanes


def text(recording: Recording) -> str:
    """A timeline with lanes for record, compile, run, threads, and a counter of memory."""
    rows: list[str] = []  # texts take less memory than what they are made of
    lanes: dict[int, str] = {}
    for event in recording.events:
        if event.kind == "memory":
            rows.append(json.dumps({"name": "memory", "ph": "C", "pid": 1, "ts": _us(event.began),
                                    "args": {"bytes": event.value}}))
        elif lane := LANES.get(event.kind):
            number = FIRST[lane] + event.thread
            lanes[number] = lane if lane != "threads" else f"thread {event.thread}"
            rows.append(json.dumps(_span(event, lane, number)))
    events = ",\n".join([*map(json.dumps, _names(lanes)), *rows])
    return (f'{{"traceEvents": [{events}], "displayTimeUnit": "ms", '
            f'"otherData": {{"missing events": {recording.missing}}}}}')


def _us(seconds: float) -> float:
    return round(1e6 * seconds, 3)


def _span(event: Event, lane: str, number: int) -> dict[str, Any]:
    args: dict[str, Any] = {"place": event.place} if event.place else {}
    if lane == "compile":
        args["sequence"] = f"{event.value >> 16:012x}"
    elif event.kind in ("run", "share"):
        args["steps" if event.kind == "run" else "chunks"] = event.value
    if event.compiled:
        args["compiled"] = True
    row = {"name": event.name or event.kind, "cat": lane, "ph": "X", "pid": 1, "tid": number,
           "ts": _us(event.began), "dur": _us(event.seconds), "args": args}
    if event.kind == "record":  # a moment
        row |= {"ph": "i", "s": "t"}
        del row["dur"]
    return row


def _names(lanes: dict[int, str]) -> list[dict[str, Any]]:
    process = {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "tenon"}}
    threads = [{"name": "thread_name", "ph": "M", "pid": 1, "tid": number, "args": {"name": name}}
               for number, name in sorted(lanes.items())]
    return [process, *threads]
