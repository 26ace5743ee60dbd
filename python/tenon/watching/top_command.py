"""python -m tenon.top: what running processes do. They were started with TENON_WATCH=1."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from typing import Any

from ..explanation.units import bytes_text
from .door import Door, DoorError, running

CLEAR = "\x1b[H\x1b[J"


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tenon.top", description=__doc__)
    parser.add_argument("pid", nargs="?", type=int, help="of one process; else all are shown")
    parser.add_argument("-d", "--delay", type=float, default=1.0, help="seconds between looks (1)")
    parser.add_argument("-n", type=int, default=0, metavar="LOOKS", help="how many (until Ctrl-C)")
    given = parser.parse_args(arguments)
    try:
        return _follow(given.pid, max(given.delay, 0.05), given.n)
    except KeyboardInterrupt:
        return 0
    except DoorError as error:
        print(f"tenon.top: {error}", file=sys.stderr)
        return 2


def _follow(pid: int | None, delay: float, looks: int) -> int:
    before: dict[int, dict[str, Any]] = {}
    look = 0
    while not looks or look <= looks:
        now = _asked(pid)
        if not now:
            raise DoorError("no process to watch: start a program with TENON_WATCH=1")
        if look:  # rates need two
            shown = "\n\n".join(table(before.get(p), now[p]) for p in now)
            print(f"{CLEAR if sys.stdout.isatty() else ''}{shown}", flush=True)
        before, look = now, look + 1
        if not looks or look <= looks:
            time.sleep(delay)
    return 0


def _asked(pid: int | None) -> dict[int, dict[str, Any]]:
    if pid is not None:
        return {pid: json.loads(Door(pid).ask({"do": "top"}))}
    found = {}
    for one in running():
        try:
            found[one] = json.loads(Door(one).ask({"do": "top"}))
        except (DoorError, ValueError):
            continue  # it ended meanwhile
    return found


def table(before: dict[str, Any] | None, now: dict[str, Any]) -> str:
    """What a process did between two looks."""
    earlier = before or {**now, "time": now["time"] - 1}
    seconds = max(now["time"] - earlier["time"], 1e-9)
    ops, compiled, runs = (now[k] - earlier[k] for k in ("ops", "compiled_ops", "runs"))
    share = f"{100 * compiled / ops:.0f} %" if ops else "-"
    head = (f"process {now['pid']}   {ops / seconds:,.0f} ops/s   {share} compiled   "
            f"{runs / seconds:,.0f} runs/s   memory {bytes_text(now['active'])} "
            f"(peak {bytes_text(now['peak'])}, kept {bytes_text(now['cached'])})   "
            f"{now['threads']} threads")
    if not now["paths"]:
        return f"{head}\nno hot sequences: TENON_AUTO_COMPILE=1 looks for them"
    room = max(20, shutil.get_terminal_size().columns - 52)
    rows = [f"{'hash':<12}  {'runs':>10}  {'status':<9}  {'speed-up':>8}  sequence"]
    for path in now["paths"]:
        faster = f"{path['speedup']:.1f}x" if path["speedup"] else "-"
        ops = path["sequence"]
        ops = ops if len(ops) <= room else f"{ops[:room - 3]}..."
        rows.append(f"{path['hash']:<12}  {path['count']:>10,}  {path['status']:<9}  {faster:>8}  "
                    f"{ops}")
    return "\n".join([head, *rows])
