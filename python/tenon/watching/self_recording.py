"""Processes that record themselves from the start, as `python -m tenon.trace script.py` asks."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from pathlib import Path

from .recording_file import RecordingFile

VARIABLE = "TENON_TRACE"  # "5:/folder": so many seconds, written there
MOST_SECONDS = 86400.0


def start() -> None:
    """Records until the time is over or the process ends. The program goes on afterwards."""
    given = os.environ[VARIABLE]
    try:
        seconds, folder = parsed(given)
        folder.mkdir(parents=True, exist_ok=True)
        trace = RecordingFile(folder / f"trace_{os.getpid()}.log")
    except ValueError:
        return say(f"{VARIABLE} is SECONDS:FOLDER, as 5:/tmp, not {given!r}: nothing is recorded")
    except OSError as error:
        return say(f"{VARIABLE}: {error.filename}: {error.strerror}: nothing is recorded")
    owner, lock, ended = os.getpid(), threading.Lock(), False

    def end() -> None:
        nonlocal ended
        if os.getpid() != owner:  # a child of fork
            return
        with lock:  # the end of the process waits for the clock
            if not ended:
                ended = True
                say(trace.stop())

    clock = threading.Timer(seconds, end)
    clock.daemon = True
    clock.start()
    atexit.register(end)


def parsed(given: str) -> tuple[float, Path]:
    """The seconds and the folder of the variable."""
    seconds, _, folder = given.partition(":")
    if not folder or not 0 < float(seconds) <= MOST_SECONDS:
        raise ValueError(given)
    return float(seconds), Path(folder).absolute()


def say(text: str) -> None:
    print(f"tenon.trace: {text}", file=sys.stderr)
