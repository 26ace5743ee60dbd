"""The door of a process to those who watch it: a socket that only its user can reach.

A process opens one when it is started with TENON_WATCH=1. Requests are a line of JSON, and for a
trace the file to write it to; the answer is JSON up to the end.
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import _core
from .recording import MOST_EVENTS
from .self_recording import MOST_SECONDS


class DoorError(Exception):
    """A process cannot be asked."""


def folder() -> Path:
    """Return the private folder of sockets; create it if it is missing."""
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    path = Path(base) / f"tenon-{os.getuid()}"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise DoorError(f"{path}: {error.strerror}") from None
    found = path.lstat()
    private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    if not private or found.st_uid != os.getuid():
        raise DoorError(f"{path} must be accessible to this user only; remove it")
    return path


def running() -> list[int]:
    """The processes of this user that may be watched. Doors of those that are gone are removed."""
    pids = []
    for path in folder().glob("*.sock"):
        if _is_left_behind(path):
            path.unlink(missing_ok=True)
        elif path.stem.isdigit():
            pids.append(int(path.stem))
    return sorted(pids)


def _is_left_behind(path: Path) -> bool:
    """Whether no process listens now. Asked of the socket: in a container the process may be one
    whose number says nothing here."""
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(1)
        try:
            caller.connect(str(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            pass
    return False


class Door:
    """A connection to another process that can be watched."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def ask(self, request: dict[str, Any], seconds: float = 10.0,
            files: Sequence[int] = ()) -> dict[str, Any]:
        """The answer. It may write to `files`."""
        with socket.socket(socket.AF_UNIX) as caller:
            caller.settimeout(seconds)
            try:
                caller.connect(str(folder() / f"{self.pid}.sock"))
                socket.send_fds(caller, [json.dumps(request).encode() + b"\n"], files)
                answer = b"".join(iter(lambda: caller.recv(1 << 16), b""))
            except TimeoutError:
                raise DoorError(f"process {self.pid} does not answer") from None
            except OSError:
                raise DoorError(f"process {self.pid} cannot be watched: it is not there, or was "
                                "not started with TENON_WATCH=1") from None
        if not answer:
            raise DoorError(f"process {self.pid} exited or does not support the request")
        return dict(json.loads(answer))


def open_door() -> None:
    """Accept watchers until the process ends; warn if that fails."""
    listener = socket.socket(socket.AF_UNIX)
    try:
        path = folder() / f"{os.getpid()}.sock"
        if path.exists() and not _is_left_behind(path):
            raise DoorError(f"{path} belongs to a process of another container")
        new = path.with_suffix(".new")  # it has its name when a process listens
        new.unlink(missing_ok=True)
        listener.bind(str(new))
        listener.listen()
        new.replace(path)
    except (OSError, DoorError) as error:
        warnings.warn(f"TENON_WATCH: this process cannot be watched: {error}", stacklevel=2)
        return
    _core._worker_totals()  # from here on workers are counted
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
            threading.Thread(target=_answer, args=(caller,), daemon=True).start()
        except (OSError, RuntimeError):  # as when the program has too many files or threads
            time.sleep(0.1)


def _answer(caller: socket.socket) -> None:
    """One request. A malformed request gets no answer."""
    with caller, contextlib.suppress(OSError, ValueError, KeyError, TypeError,
                                             IndexError):
        if _user_of(caller) != os.getuid():
            return
        caller.settimeout(10)
        request, files = _request(caller)
        answers = {"trace": _trace, "top": _top}
        try:
            answer = answers[request["do"]](request, caller, files)
        finally:
            for file in files:
                os.close(file)
        caller.settimeout(10)
        caller.sendall(json.dumps(answer).encode())


def _request(caller: socket.socket) -> tuple[dict[str, Any], list[int]]:
    text, files = b"", []
    while not text.endswith(b"\n"):
        part, new, *_ = socket.recv_fds(caller, 4096, 1)
        files += new
        text += part
        if not part or len(text) > 4096:
            break
    return json.loads(text), files


def _user_of(caller: socket.socket) -> int:
    credentials = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


def _trace(request: dict[str, Any], caller: socket.socket, files: list[int]) -> dict[str, Any]:
    """Until the time is over, or the client is gone."""
    caller.settimeout(min(float(request["seconds"]), MOST_SECONDS))
    log = _core._EventLog(files.pop(), MOST_EVENTS)
    with contextlib.suppress(OSError):
        caller.recv(1)
    log.stop()
    return {"written": log.written, "missing": log.missing, "error": log.error}


def _top(request: dict[str, Any], caller: socket.socket, files: list[int]) -> dict[str, Any]:
    paths = [{"hash": path.hash, "sequence": path.sequence, "count": path.count,
              "status": path.status, "speedup": path.speedup} for path in _core._hot_paths()[:20]]
    return {"pid": os.getpid(), "time": time.monotonic(), **_core._totals(),
            "active": _core.active_memory(), "peak": _core.peak_memory(),
            "cached": _core.cache_memory(), "threads": _core.num_threads(), "paths": paths,
            "workers": _core._worker_totals()}
