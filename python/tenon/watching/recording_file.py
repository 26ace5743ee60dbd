"""Traces that are written while they are recorded, so that ending one takes no time."""

from __future__ import annotations

import os
from pathlib import Path

from .. import _core
from .recording import MOST_EVENTS


def create(path: Path) -> int:
    """A file of that name for a trace."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)


class RecordingFile:
    """Everything that happens on all threads, as lines of a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log = _core._EventLog(create(path), MOST_EVENTS)

    def stop(self) -> str:
        """Ends it. Returns what is to be said of it."""
        self._log.stop()
        return outcome(self.path, self._log.written, self._log.missing, self._log.error)


def outcome(path: Path, written: int, missing: int, error: str) -> str:
    """Describe in one line whether a trace was written."""
    if error:
        return f"{path}: {error}: the trace is not complete"
    if not path.exists():
        return f"{path} was removed while it was written: the trace is lost"
    if not written:
        return f"{path}: nothing was recorded, as nothing was computed meanwhile"
    later = f"; the {missing:,} after them are missing" if missing else ""
    return f"{path} ({written:,} events{later})"
