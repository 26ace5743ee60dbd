"""Reads event logs, whose lines `src/observe/event_log.cpp` writes, and instruction logs.

      0.100s | #0010 | RUN        | WORKER | Plan     | value=2 t=0.100213 took=0.000045 ...
"""

from __future__ import annotations

import re
from pathlib import Path

from .. import _core
from .recording import Event, Recording

KINDS = {  # by event and command
    ("RECV", "Record"): "record", ("RECV", "Flush"): "ops", ("RUN", "Plan"): "run",
    ("RUN", "Step"): "step", ("RUN", "Share"): "share", ("MEMORY", "Active"): "memory",
    ("COMPILE", "Starting"): "compile_starting", ("COMPILE", "Complete"): "compile_complete",
    ("COMPILE", "Failed"): "compile_failed",
}
TIME = r"(\d{1,7}(?:\.\d{1,9})?)"  # seconds
COUNT = r"(\d{1,20})"
END = re.compile(rf"# tenon trace: {TIME} s, {COUNT} events missing")
PLACE = re.compile(r"# (@\d+) (.*)")
LINE = re.compile(rf" *{TIME}s \| #(\d+) \| (\w+) *\| (\w+) *\| (\w+) *\| (.*)")
DETAILS = re.compile(rf"value={COUNT} t={TIME} took={TIME} thread={COUNT}( \(COMPILED\))?"
                     r" name=(.*?)(?: at=(@\d+))?$")
PLAIN = {"RECV": re.compile("op="), "COMPILE": re.compile("sequence=[0-9a-f]{12}")}


def read(path: Path) -> Recording:
    """A recording from its lines, or from those of an instruction log."""
    *lines, rest = path.read_text(encoding="utf-8", errors="replace").split("\n")
    if rest and not lines:  # else a process was killed while it wrote its last line
        lines.append(rest)
    places = {place[1]: place[2] for place in map(PLACE.fullmatch, lines) if place}
    events: list[Event] = []
    starting: dict[str, float] = {}
    seconds, missing, plain = 0.0, 0, True
    for number, line in enumerate(lines, 1):
        if end := END.fullmatch(line):
            seconds, missing, plain = float(end[1]), int(end[2]), False
        elif not PLACE.fullmatch(line):
            match = LINE.fullmatch(line)
            if not match or not _is_known(match):
                _core._fail("value", f"{path}:{number}: not a line of a trace: {line[:60]!r}")
            if event := _event(match, starting, places):
                events.append(event)
            plain = plain and " took=" not in line
    if not events and not seconds:
        _core._fail("value", f"{path}: an empty trace")
    seconds = max([seconds, *(event.end for event in events)])
    return Recording(events, seconds, missing, path.stem, plain)


def _is_known(match: re.Match[str]) -> bool:
    what, command, said = match[3], match[5], match[6]
    if what != "RECV" and (what, command) not in KINDS:
        return False
    return bool(DETAILS.search(said) or what in PLAIN and PLAIN[what].match(said))


def _event(match: re.Match[str], starting: dict[str, float],
           places: dict[str, str]) -> Event | None:
    what, command, said = match[3], match[5], match[6]
    if details := DETAILS.search(said):
        value, began, took, thread, mark, name, place = details.groups()
        kind = KINDS.get((what, command), "record")
        return Event(kind, int(thread), float(began), float(took), int(value), bool(mark), name,
                     places.get(place, ""))
    return _plain_event(what, command, said, float(match[1]), starting)


def _plain_event(what: str, command: str, said: str, time: float,
                 starting: dict[str, float]) -> Event | None:
    """From an instruction log, whose lines have milliseconds and no durations."""
    if what == "RECV":
        name = said.removeprefix("op=").removesuffix(" (COMPILED)")
        return Event("record", 0, time, 0.0, 1, said.endswith(" (COMPILED)"), name, "")
    sequence = said.removeprefix("sequence=")[:12]
    if command == "Starting":
        starting[sequence] = time
        return None
    began = starting.pop(sequence, time)
    return Event(KINDS["COMPILE", command], 0, began, time - began, int(sequence, 16) << 16, False,
                 sequence, "")
