"""Processes that record themselves from the start, as `python -m tenon.trace script.py` asks."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from pathlib import Path

from . import trace_log
from .recording import Recorder

VARIABLE = "TENON_TRACE"  # "5:/folder": so many seconds, written there


def start() -> None:
    """Records until the time is over or the process ends. The program goes on afterwards."""
    seconds, _, folder = os.environ[VARIABLE].partition(":")
    recorder, owner = Recorder(), os.getpid()
    lock, written = threading.Lock(), False

    def end() -> None:
        nonlocal written
        if os.getpid() != owner:  # a child of fork
            return
        with lock:  # the end of the process waits for the clock
            if not written:
                written = True
                write(Path(folder), owner, trace_log.text(recorder.stop()))

    clock = threading.Timer(float(seconds), end)
    clock.daemon = True
    clock.start()
    atexit.register(end)


def write(folder: Path, pid: int, text: str) -> None:
    """Writes trace_<pid>.log and says so."""
    path = folder / f"trace_{pid}.log"
    path.write_text(text, encoding="utf-8")
    print(f"tenon.trace: {path} ({text.count(chr(10)) - 1:,} events)", file=sys.stderr)
