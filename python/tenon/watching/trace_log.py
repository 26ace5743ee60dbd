"""Recordings as lines like those of the instruction log, and back.

      0.100s | #0010 | RUN        | WORKER | Plan     | value=2 t=0.100213 took=0.000045 ...
"""

from __future__ import annotations

import re
from pathlib import Path

from .. import _core
from .recording import Event, Recording

WORDS = {  # event, source, command
    "record": ("RECV", "CLIENT", "Record"), "ops": ("RECV", "CLIENT", "Flush"),
    "run": ("RUN", "WORKER", "Plan"), "step": ("RUN", "WORKER", "Step"),
    "compile_starting": ("COMPILE", "WORKER", "Starting"),
    "compile_complete": ("COMPILE", "WORKER", "Complete"),
    "compile_failed": ("COMPILE", "WORKER", "Failed"),
    "share": ("RUN", "THREAD", "Share"), "memory": ("MEMORY", "WORKER", "Active"),
}
KINDS = {(event, command): kind for kind, (event, _, command) in WORDS.items()}
TIME = r"(\d{1,7}(?:\.\d{1,9})?)"  # seconds
COUNT = r"(\d{1,20})"
HEADER = re.compile(rf"# tenon trace: {TIME} s, {COUNT} events missing")
LINE = re.compile(rf" *{TIME}s \| #(\d+) \| (\w+) *\| (\w+) *\| (\w+) *\| (.*)")
DETAILS = re.compile(rf"value={COUNT} t={TIME} took={TIME} thread={COUNT}( \(COMPILED\))?"
                     r" name=(.*?)(?: at=(.*))?$")
PLAIN = {"RECV": re.compile("op="), "COMPILE": re.compile("sequence=[0-9a-f]{12}")}


def text(recording: Recording) -> str:
    """The lines of a recording."""
    lines = [f"# tenon trace: {recording.seconds:.6f} s, {recording.missing} events missing"]
    lines += [_line(number, event) for number, event in enumerate(recording.events, 1)]
    return "\n".join(lines) + "\n"


def _line(number: int, event: Event) -> str:
    what, source, command = WORDS[event.kind]
    mark = " (COMPILED)" * event.compiled
    place = f" at={event.place}" if event.place else ""
    shown = f"sequence={event.value >> 16:012x} " if what == "COMPILE" else ""
    return (f"{event.end:7.3f}s | #{number:04} | {what:<10} | {source:<6} | {command:<8} | {shown}"
            f"value={event.value} t={event.began:.9f} took={event.seconds:.9f} "
            f"thread={event.thread}{mark} name={' '.join(event.name.split())}{place}")


def read(path: Path) -> Recording:
    """A recording from its lines, or from those of an instruction log."""
    events: list[Event] = []
    starting: dict[str, float] = {}
    seconds, missing = 0.0, 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if header := HEADER.fullmatch(line):
            seconds, missing = float(header[1]), int(header[2])
            continue
        match = LINE.fullmatch(line)
        if not match or not _is_known(match):
            _core._fail("value", f"{path}:{number}: not a line of a trace: {line[:60]!r}")
        if event := _event(match, starting):
            events.append(event)
    if not events and not seconds:
        _core._fail("value", f"{path}: an empty trace")
    seconds = max([seconds, *(event.end for event in events)])
    return Recording(events, seconds, missing, path.stem)


def _is_known(match: re.Match[str]) -> bool:
    what, command, said = match[3], match[5], match[6]
    if what != "RECV" and (what, command) not in KINDS:
        return False
    return bool(DETAILS.search(said) or what in PLAIN and PLAIN[what].match(said))


def _event(match: re.Match[str], starting: dict[str, float]) -> Event | None:
    what, command, said = match[3], match[5], match[6]
    if details := DETAILS.search(said):
        value, began, took, thread, mark, name, place = details.groups()
        kind = KINDS.get((what, command), "record")
        return Event(kind, int(thread), float(began), float(took), int(value), bool(mark), name,
                     place or "")
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
