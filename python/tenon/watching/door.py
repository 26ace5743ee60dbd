"""The door of a process to those who watch it: a socket that only its user can reach.

A process opens one when it is started with TENON_WATCH=1. Requests are a line of JSON; the answer
is text up to the end.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import stat
import struct
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

from .. import _core
from . import trace_log
from .recording import Recorder

MOST_SECONDS = 600.0


class DoorError(Exception):
    """A process cannot be asked."""


def folder() -> Path:
    """Of this user alone; made where it is missing, refused where it is not that."""
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    path = Path(base) / f"tenon-{os.getuid()}"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise DoorError(f"{path}: {error.strerror}") from None
    found = path.lstat()
    private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    if not private or found.st_uid != os.getuid():
        raise DoorError(f"{path} is not a folder of this user alone: remove it")
    return path


def running() -> list[int]:
    """The processes of this user that may be watched. Doors of those that are gone are removed."""
    pids = []
    for path in folder().glob("*.sock"):
        try:
            os.kill(int(path.stem), 0)
            pids.append(int(path.stem))
        except (OSError, ValueError):
            path.unlink(missing_ok=True)
    return sorted(pids)


class Door:
    """That of another process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def ask(self, request: dict[str, Any], seconds: float = 10.0) -> str:
        with socket.socket(socket.AF_UNIX) as caller:
            caller.settimeout(seconds)
            try:
                caller.connect(str(folder() / f"{self.pid}.sock"))
                caller.sendall(json.dumps(request).encode() + b"\n")
                answer = b"".join(iter(lambda: caller.recv(1 << 16), b""))
            except TimeoutError:
                raise DoorError(f"process {self.pid} does not answer") from None
            except OSError:
                raise DoorError(f"process {self.pid} cannot be watched: it is not there, or was "
                                "not started with TENON_WATCH=1") from None
        return answer.decode()


def open_door() -> None:
    """Lets those who watch in, until the process ends. Where that cannot be, it is said."""
    listener = socket.socket(socket.AF_UNIX)
    try:
        path = folder() / f"{os.getpid()}.sock"
        path.unlink(missing_ok=True)
        listener.bind(str(path))
        listener.listen()
    except (OSError, DoorError) as error:
        warnings.warn(f"TENON_WATCH: this process cannot be watched: {error}", stacklevel=2)
        return
    threading.Thread(target=_serve, args=(listener,), daemon=True, name="tenon watch").start()
    owner = os.getpid()
    os.register_at_fork(after_in_child=listener.close)  # the parent's

    def close() -> None:
        if os.getpid() == owner:
            path.unlink(missing_ok=True)

    atexit.register(close)


def _serve(listener: socket.socket) -> None:
    while True:
        try:
            caller, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_answer, args=(caller,), daemon=True).start()


def _answer(caller: socket.socket) -> None:
    """One request. Whoever asks wrongly gets no answer."""
    with caller, contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        if _user_of(caller) != os.getuid():
            return
        caller.settimeout(10)
        request = json.loads(caller.makefile("rb").readline(4096))
        caller.settimeout(60)
        answers = {"trace": _trace, "top": _top}
        caller.sendall(answers[request["do"]](request).encode())


def _user_of(caller: socket.socket) -> int:
    credentials = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


def _trace(request: dict[str, Any]) -> str:
    recorder = Recorder()
    time.sleep(min(max(float(request["seconds"]), 0.0), MOST_SECONDS))
    return trace_log.text(recorder.stop())


def _top(request: dict[str, Any]) -> str:
    paths = [{"hash": path.hash, "sequence": path.sequence, "count": path.count,
              "status": path.status, "speedup": path.speedup} for path in _core._hot_paths()[:20]]
    return json.dumps({"pid": os.getpid(), "time": time.monotonic(), **_core._totals(),
                       "active": _core.active_memory(), "peak": _core.peak_memory(),
                       "cached": _core.cache_memory(), "threads": _core.num_threads(),
                       "paths": paths})
