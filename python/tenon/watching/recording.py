"""Recordings of what happens in the library, and the files they are kept in."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from .. import _core
from ..files import path_of

MOST_EVENTS = 1_000_000
SLICE = 10_000


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
    worker: int = -1  # that it is of; -1: of none
    waited: float = 0.0  # in a collective: seconds in which the worker waited for others
    peers: tuple[int, int, int] = (-1, 1, 0)  # of a collective: the first, the step, how many

    @property
    def end(self) -> float:
        return self.began + self.seconds


class Recording(NamedTuple):
    """The events of a process, in the order of their report."""

    events: list[Event]
    seconds: float
    missing: int = 0  # events after the most that a recording holds
    title: str = ""
    plain: bool = False  # of an instruction log: nothing is known of runs and memory
    worker: int = -1  # of a process of a launcher: its rank
    launched: float = 0.0  # and the seconds from the launch to the beginning

    def of(self, *kinds: str) -> list[Event]:
        return [event for event in self.events if event.kind in kinds]


Writer = Callable[[Recording], Iterable[bytes]]


class Recorder:
    """Records everything that happens on all threads, from construction to `stop`."""

    def __init__(self) -> None:
        self._recorder = _core._EventRecorder(MOST_EVENTS)

    def stop(self) -> Recording:
        recorder = self._recorder
        recorder.stop()
        events: list[Event] = []
        for first in range(0, len(recorder), SLICE):  # other threads go on between them
            events.extend(map(Event._make, recorder.rows(first, SLICE)))
        return Recording(events, recorder.seconds, recorder.missing)


def recorded(path: str | os.PathLike[str]) -> contextlib.AbstractContextManager[None]:
    """Writes what happens inside to a file, also when an error ends it."""
    target = Path(path_of("profile", path))
    write = _writer(target)  # not when everything is done, and named by the line of the caller
    _check_writable(target)
    return _recorded(target, write) if write else _logged(target)


@contextlib.contextmanager
def _recorded(target: Path, write: Writer) -> Iterator[None]:
    recorder = Recorder()
    try:
        yield
    finally:
        recording = recorder.stop()._replace(title=target.stem)
        with target.open("wb") as file:
            file.writelines(write(recording))


@contextlib.contextmanager
def _logged(target: Path) -> Iterator[None]:
    from .recording_file import RecordingFile

    trace = RecordingFile(target)
    try:
        yield
    finally:
        trace.stop()


def _writer(path: Path) -> Writer | None:
    """None for logs, which are written as they are recorded."""
    from . import chrome, timeline_drawing, timeline_page

    writers: dict[str, Writer | None] = {
        ".html": lambda recording: [timeline_page.page([recording]).encode()],
        ".json": chrome.pieces, ".log": None,
        ".png": lambda recording: [timeline_drawing.png(recording)],
        ".svg": lambda recording: [timeline_drawing.svg(recording).encode()],
    }
    if path.suffix.lower() not in writers:
        _core._fail("value", f"profile: a recording is written to a name that ends in "
                             f"{', '.join(writers)}, not to {path.name}")
    return writers[path.suffix.lower()]


def _check_writable(path: Path) -> None:
    existed = path.exists()
    try:
        path.open("ab").close()
    except OSError as error:
        _core._fail("value", f"profile: {path} cannot be written: {error.strerror}")
    if not existed:
        path.unlink()
