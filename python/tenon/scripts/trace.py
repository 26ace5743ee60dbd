"""python -m tenon.trace: records a program or running processes to trace files."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from ..watching.door import Door, DoorError, running
from ..watching.recording_file import create, outcome
from ..watching.self_recording import MOST_SECONDS, VARIABLE, say


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status."""
    given = _parser().parse_args(arguments)
    command = ["-m", *given.module] if given.module else given.script
    if command[:1] == ["--"]:
        command = command[1:]
    if not 0 < given.seconds <= MOST_SECONDS:
        return _refuse(f"-s is a number of seconds above 0, at most {MOST_SECONDS:.0f} (a day), "
                       f"not {given.seconds:g}")
    if command and given.pid:
        return _refuse("--pid and a program: one of them is recorded")
    try:
        if command:
            return _run(command, given.seconds, given.dir)
        return _attach([given.pid] if given.pid else running(), given.seconds, given.dir)
    except KeyboardInterrupt:  # the processes notice the end of the requests
        return 130
    except DoorError as error:
        return _refuse(str(error))
    except OSError as error:  # of --dir
        return _refuse(f"{error.filename}: {error.strerror}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tenon.trace", description=__doc__,
        usage="%(prog)s [-s SECONDS] [--dir DIR] [--pid PID | script.py ... | -m module ...]")
    parser.add_argument("-s", "--seconds", type=float, default=5.0, help="how long to record (5)")
    parser.add_argument("--dir", type=Path, default=Path("."), help="for trace_<pid>.log (.)")
    parser.add_argument("--pid", type=int, help="a process that was started with TENON_WATCH=1; "
                        "without it and without a program, all of them")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="module ...",
                        help="a module that is run as a program, and its arguments")
    parser.add_argument("script", nargs=argparse.REMAINDER, metavar="script.py ...",
                        help="a program and its arguments")
    return parser


def _refuse(text: str) -> int:
    say(text)
    return 2


def _run(command: list[str], seconds: float, folder: Path) -> int:
    """Runs `python script.py`, which records itself from its import of the library on."""
    if command[0] != "-m" and not Path(command[0]).exists():
        return _refuse(f"no such script: {command[0]}")
    folder.mkdir(parents=True, exist_ok=True)
    before = set(folder.glob("trace_*.log"))
    environment = {**os.environ, VARIABLE: f"{seconds}:{folder.resolve()}"}
    environment.pop("TENON_WORKER_PROCESS", None)  # of several workers, the script is one
    process = subprocess.Popen([sys.executable, *command], env=environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to both
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda got, _: process.send_signal(got))
    status = process.wait()
    if set(folder.glob("trace_*.log")) == before:
        say(f"nothing was recorded: {' '.join(command)} did not import tenon")
    return status if status >= 0 else 128 - status  # as shells say it


def _attach(pids: list[int], seconds: float, folder: Path) -> int:
    if not pids:
        raise DoorError("no process to record: give a script, or start a program with "
                        "TENON_WATCH=1")
    folder.mkdir(parents=True, exist_ok=True)
    failures: dict[int, str] = {}

    def record(pid: int) -> None:
        path = folder / f"trace_{pid}.log"
        file = create(path)
        try:
            said = Door(pid).ask({"do": "trace", "seconds": seconds}, seconds + 60, [file])
            say(outcome(path, **said))
        except DoorError as error:
            failures[pid] = str(error)
            if not path.stat().st_size:
                path.unlink()
        finally:
            os.close(file)

    threads = [threading.Thread(target=record, args=(pid,), daemon=True) for pid in pids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for text in failures.values():
        _refuse(text)
    return 2 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
