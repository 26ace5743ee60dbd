"""python -m tenon.trace: records a program, or a process that runs, and writes what happened."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import threading
from pathlib import Path

from . import trace_log
from .door import Door, DoorError, running
from .recording import Recorder, Recording


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status."""
    given = _parser().parse_args(arguments)
    if given.seconds <= 0:
        return _refuse(f"-s is a number of seconds above 0, not {given.seconds:g}")
    given.dir.mkdir(parents=True, exist_ok=True)
    if given.script:
        return _run(given.script, given.seconds, given.dir)
    try:
        return _attach([given.pid] if given.pid else running(), given.seconds, given.dir)
    except DoorError as error:
        return _refuse(str(error))


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
    """Runs a script here, as `python script.py` would. It goes on when the recording has ended."""
    recorder = Recorder()
    lock, written = threading.Lock(), False

    def write() -> None:
        nonlocal written
        with lock:  # the end waits for the clock
            if not written:
                written = True
                _write(recorder.stop(), folder, os.getpid())

    clock = threading.Timer(seconds, write)
    clock.daemon = True
    clock.start()
    sys.argv = command
    sys.path[0] = str(Path(command[0]).resolve().parent)
    try:
        runpy.run_path(command[0], run_name="__main__")
    finally:
        clock.cancel()
        write()
    return 0


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
    for pid, text in answers.items():
        _say(folder / f"trace_{pid}.log", text)
    for text in failures.values():
        _refuse(text)
    return 2 if failures else 0


def _write(recording: Recording, folder: Path, pid: int) -> None:
    _say(folder / f"trace_{pid}.log", trace_log.text(recording))


def _say(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    print(f"tenon.trace: {path} ({text.count(chr(10)) - 1:,} events)", file=sys.stderr)
