"""python -m tenon.trace: records a program, or a process that runs, and writes what happened."""

from __future__ import annotations

import argparse
import math
import os
import sys
import threading
from pathlib import Path

from .door import Door, DoorError, running
from .self_recording import VARIABLE, write


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status."""
    given = _parser().parse_args(arguments)
    if not 0 < given.seconds < math.inf:
        return _refuse(f"-s is a number of seconds above 0, not {given.seconds:g}")
    if given.script and given.pid:
        return _refuse("--pid and a script: one of them is recorded")
    try:
        if given.script:
            return _run(given.script, given.seconds, given.dir)
        return _attach([given.pid] if given.pid else running(), given.seconds, given.dir)
    except DoorError as error:
        return _refuse(str(error))
    except OSError as error:  # of --dir
        return _refuse(f"{error.filename}: {error.strerror}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tenon.trace", description=__doc__)
    parser.add_argument("-s", "--seconds", type=float, default=5.0, help="how long to record (5)")
    parser.add_argument("--dir", type=Path, default=Path("."), help="for trace_<pid>.log (.)")
    parser.add_argument("--pid", type=int, help="a process that was started with TENON_WATCH=1; "
                        "without it and without a script, all of them")
    parser.add_argument("script", nargs=argparse.REMAINDER, help="a program and its arguments")
    return parser


def _refuse(text: str) -> int:
    print(f"tenon.trace: {text}", file=sys.stderr)
    return 2


def _run(command: list[str], seconds: float, folder: Path) -> int:
    """Becomes `python script.py`, which records itself from its import of the library on."""
    if not Path(command[0]).is_file():
        return _refuse(f"no such script: {command[0]}")
    folder.mkdir(parents=True, exist_ok=True)
    os.environ[VARIABLE] = f"{seconds}:{folder.resolve()}"
    os.execv(sys.executable, [sys.executable, *command])


def _attach(pids: list[int], seconds: float, folder: Path) -> int:
    if not pids:
        raise DoorError("no process to record: give a script, or start a program with "
                        "TENON_WATCH=1")
    answers: dict[int, str] = {}
    failures: dict[int, str] = {}

    def record(pid: int) -> None:
        try:
            answers[pid] = Door(pid).ask({"do": "trace", "seconds": seconds}, seconds + 60)
        except DoorError as error:
            failures[pid] = str(error)

    threads = [threading.Thread(target=record, args=(pid,)) for pid in pids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if answers:
        folder.mkdir(parents=True, exist_ok=True)
    for pid, text in answers.items():
        write(folder, pid, text)
    for text in failures.values():
        _refuse(text)
    return 2 if failures else 0
