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
    ("COMPILE", "Failed"): "compile_failed", ("WORKER_SEND", "Ops"): "worker_ops",
    ("WORKER_RECV", "Run"): "worker_run", ("COLLECTIVE", "Call"): "collective",
}
TIME = r"(\d{1,7}(?:\.\d{1,9})?)"  # seconds
COUNT = r"(\d{1,20})"
END = re.compile(rf"# tenon trace: {TIME} s, {COUNT} events missing")
LAUNCHED = re.compile(rf"# worker (\d{{1,6}}): {TIME} s after the launch")
PLACE = re.compile(r"# (@\d+) (.*)")
LINE = re.compile(rf" *{TIME}s \| #(\d+) \| (\w+) *\| (\w+)(?: worker_(\d{{1,6}}))? *\| "
                  r"(\w+) *\| (.*)")
DETAILS = re.compile(rf"value={COUNT} t={TIME} took={TIME} thread={COUNT}( \(COMPILED\))?"
                     rf"(?: waited={TIME} peers=(-?\d{{1,6}}),(-?\d{{1,6}}),(\d{{1,6}}))?"
                     r" name=(.*?)(?: at=(@\d+))?$")
PEERS = r"peers=(-?\d{1,6}),(-?\d{1,6}),(\d{1,6})"
MILLISECONDS = r"(\d{1,9}\.\d{3})ms"
BYTES = r"(\d{1,7}(?:\.\d)?)(B|KB|MB|GB|TB)"
UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
PLAIN = {"RECV": re.compile("op="), "COMPILE": re.compile("sequence=[0-9a-f]{12}"),
         "WORKER_SEND": re.compile(f"op=.* {BYTES}"),
         "WORKER_RECV": re.compile(rf"{BYTES} ops=(\d+) took={MILLISECONDS}"),
         "COLLECTIVE": re.compile(rf"{BYTES} \| group=(\S+) took={MILLISECONDS} "
                                  rf"waited={MILLISECONDS}(?: {PEERS})?")}


def read(path: Path) -> Recording:
    """A recording from its lines, or from those of an instruction log."""
    *lines, rest = path.read_text(encoding="utf-8", errors="replace").split("\n")
    if rest and not lines:  # else a process was killed while it wrote its last line
        lines.append(rest)
    places = {place[1]: place[2] for place in map(PLACE.fullmatch, lines) if place}
    events: list[Event] = []
    starting: dict[str, float] = {}
    seconds, missing, plain, worker, launched = 0.0, 0, True, -1, 0.0
    for number, line in enumerate(lines, 1):
        if end := END.fullmatch(line):
            seconds, missing, plain = float(end[1]), int(end[2]), False
        elif start := LAUNCHED.fullmatch(line):
            worker, launched = int(start[1]), float(start[2])
        elif not PLACE.fullmatch(line):
            match = LINE.fullmatch(line)
            if not match or not _is_known(match):
                _core._fail("value", f"{path}:{number}: not a line of a trace: {line[:60]!r}")
            if event := _event(match, starting, places):
                events.append(event)
            plain = plain and " thread=" not in line
            if plain and match[4] == "CLIENT" and match[5]:
                worker = int(match[5])
    if not events and not seconds:
        _core._fail("value", f"{path}: an empty trace")
    seconds = max([seconds, *(event.end for event in events)])
    return Recording(events, seconds, missing, path.stem, plain, worker, launched)


def joined(recordings: list[Recording]) -> list[Recording]:
    """Merge the recordings of one launch's processes, with times since the launch."""
    given = recordings
    recordings = [recording for recording in given if recording.events]  # not that of the launcher
    workers = {recording.worker for recording in recordings}
    if len(recordings) < 2 or min(workers) < 0 or len(workers) < len(recordings):
        return given
    first = min(recording.launched for recording in recordings)
    events: list[Event] = []
    for recording in recordings:
        later = recording.launched - first
        for event in recording.events:
            worker = event.worker if event.worker >= 0 else recording.worker
            if event.kind not in ("share", "memory"):  # whose lanes are of one process
                events.append(event._replace(began=event.began + later, worker=worker))
    events.sort(key=lambda event: event.end)
    seconds = max(recording.seconds + recording.launched - first for recording in recordings)
    title = f"{len(recordings)} workers"
    return [Recording(events, seconds, sum(r.missing for r in recordings), title,
                      recordings[0].plain)]


def _is_known(match: re.Match[str]) -> bool:
    what, command, said = match[3], match[6], match[7]
    if DETAILS.search(said):
        return what == "RECV" or (what, command) in KINDS
    if what == "COMPILE" and (what, command) not in KINDS:
        return False
    return what in PLAIN and bool(PLAIN[what].match(said))


def _event(match: re.Match[str], starting: dict[str, float],
           places: dict[str, str]) -> Event | None:
    what, worker, command, said = match[3], match[5], match[6], match[7]
    number = int(worker) if worker else -1
    if details := DETAILS.search(said):
        value, began, took, thread, mark, waited, first, step, count, name, place = (
            details.groups())
        kind = KINDS.get((what, command), "record")
        peers = (int(first), int(step), int(count)) if count else (-1, 1, 0)
        return Event(kind, int(thread), float(began), float(took), int(value), bool(mark), name,
                     places.get(place, ""), number, float(waited or 0), peers)
    if what.startswith("WORKER_") or what == "COLLECTIVE":
        return _plain_worker_event(what, command, said, float(match[1]), number)
    return _plain_event(what, command, said, float(match[1]), starting)


def _plain_worker_event(what: str, command: str, said: str, end: float,
                        worker: int) -> Event | None:
    """Parse a worker's line. What a worker is sent is known from the lines of the process."""
    match = PLAIN[what].match(said)
    if what == "WORKER_SEND" or not match:
        return None
    amount, unit, name, took, *waited = match.groups()
    peers = (int(waited[1]), int(waited[2]), int(waited[3])) if waited and waited[1] else (-1, 1, 0)
    seconds = 1e-3 * float(took)
    kind, text = ("collective", f"{command} {name}") if waited else ("worker_run", f"{name} ops")
    return Event(kind, 0, max(0.0, end - seconds), seconds, round(float(amount) * UNITS[unit]),
                 said.endswith(" (COMPILED)"), text, "", worker,
                 1e-3 * float(waited[0]) if waited else 0.0, peers)


def _plain_event(what: str, command: str, said: str, time: float,
                 starting: dict[str, float]) -> Event | None:
    """Parse a line of an instruction log, which has milliseconds and no durations."""
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
