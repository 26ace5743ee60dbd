"""Recordings of what happens in the library, and the files they are kept in."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from .. import _core

MOST_EVENTS = 1_000_000


class Event(NamedTuple):
    """Something that happened. `src/base/events.h` says what the kinds and values are."""

    kind: str
    thread: int
    began: float  # seconds since the recording began
    seconds: float
    value: int
    compiled: bool
    name: str
    place: str

    @property
    def end(self) -> float:
        return self.began + self.seconds


class Recording(NamedTuple):
    """What happened, in the order in which it was told."""

    events: list[Event]
    seconds: float
    missing: int = 0  # events after the most that a recording holds
    title: str = ""

    def of(self, *kinds: str) -> list[Event]:
        return [event for event in self.events if event.kind in kinds]


class Recorder:
    """Records everything that happens on all threads, from construction to `stop`."""

    def __init__(self) -> None:
        self._began = _core._event_time()
        self._tape = _core._EventTape(MOST_EVENTS)

    def stop(self) -> Recording:
        seconds = _core._event_time() - self._began  # before the rows are made, which takes time
        rows = self._tape.stop()
        events = [Event(*row)._replace(began=max(0.0, row[2] - self._began)) for row in rows]
        return Recording(events, seconds, self._tape.missing)


def save(recording: Recording, path: str | os.PathLike[str]) -> Path:
    """Writes a recording: Chrome's JSON, a log, a picture (.png, .svg) or a page (.html)."""
    target = Path(path)
    content = _writer(target)(recording._replace(title=recording.title or target.stem))
    target.write_bytes(content if isinstance(content, bytes) else content.encode())
    return target


def recorded(path: str | os.PathLike[str]) -> contextlib.AbstractContextManager[None]:
    """Writes what happens inside to a file, also when an error ends it."""
    _writer(Path(path))  # not when everything is done, and named by the line of the caller
    return _recorded(path)


@contextlib.contextmanager
def _recorded(path: str | os.PathLike[str]) -> Iterator[None]:
    recorder = Recorder()
    try:
        yield
    finally:
        save(recorder.stop(), path)


def _writer(path: Path) -> Callable[[Recording], str | bytes]:
    from . import chrome, drawing, trace_log

    writers: dict[str, Callable[[Recording], str | bytes]] = {
        ".html": drawing.html, ".json": chrome.text, ".log": trace_log.text, ".png": drawing.png,
        ".svg": drawing.svg,
    }
    if path.suffix.lower() not in writers:
        _core._fail("value", f"profile: a recording is written to a name that ends in "
                             f"{', '.join(writers)}, not to {path.name}")
    return writers[path.suffix.lower()]
