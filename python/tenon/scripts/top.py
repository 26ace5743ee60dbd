"""python -m tenon.top: shows the activity of processes that were started with TENON_WATCH=1."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from typing import Any

from ..explanation.units import bytes_text
from ..watching.door import Door, DoorError, running

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
        return {pid: Door(pid).ask({"do": "top"})}
    found = {}
    for one in running():
        try:
            found[one] = Door(one).ask({"do": "top"})
        except (DoorError, ValueError):
            continue  # it ended meanwhile
    return found


def table(before: dict[str, Any] | None, now: dict[str, Any]) -> str:
    """Return a table of what a process did between two samples, as wide as the terminal."""
    earlier = before or {**now, "time": now["time"] - 1}
    seconds = max(now["time"] - earlier["time"], 1e-9)
    ops, compiled, runs = (now[k] - earlier[k] for k in ("ops", "compiled_ops", "runs"))
    share = f"{100 * compiled / ops:.0f} %" if ops else "-"
    lines = [f"process {now['pid']}   {ops / seconds:,.0f} ops/s   {share} compiled   "
             f"{runs / seconds:,.0f} runs/s",
             f"memory {bytes_text(now['active'])}   peak {bytes_text(now['peak'])}   "
             f"kept for later {bytes_text(now['cached'])}   {now['threads']} threads"]
    lines += _workers(earlier.get("workers", []), now.get("workers", []), seconds)
    if not now["paths"]:
        return "\n".join([*lines, "no hot sequences: TENON_AUTO_COMPILE=1 looks for them"])
    room = max(20, shutil.get_terminal_size().columns - 47)
    lines.append(f"\n{'hash':<12} {'runs':>11}  {'status':<9}  {'speed-up':>8}  sequence")
    for path in now["paths"]:
        faster = f"{path['speedup']:.2f}x" if path["speedup"] else "-"
        lines.append(f"{path['hash']:<12} {path['count']:>11,}  {path['status']:<9}  {faster:>8}  "
                     f"{shortened(path['sequence'], room)}")
    return "\n".join(lines)


BAR = 30
SIGNS = {"computing": "█", "communicating": "▒", "waiting": "░"}


def _workers(before: list[dict[str, Any]], now: list[dict[str, Any]], seconds: float) -> list[str]:
    """A bar for each worker of a mesh: what it did with its time."""
    earlier = {worker["worker"]: worker for worker in before}
    lines = []
    for worker in now:
        old = earlier.get(worker["worker"], dict.fromkeys(worker, 0))
        spent = {key: worker[key] - old[key] for key in worker}
        inside = min(spent["communicating"], max(spent["running"], 0)) if spent["running"] else (
            spent["communicating"])  # collectives by hand are outside of runs of meshes
        shares = {"computing": max(0.0, spent["running"] - inside),
                  "communicating": max(0.0, spent["communicating"] - spent["waiting"]),
                  "waiting": spent["waiting"]}
        bar = "".join(sign * round(BAR * min(1.0, shares[name] / seconds))
                      for name, sign in SIGNS.items())[:BAR]
        said = "  ".join(f"{name} {100 * share / seconds:.0f} %" for name, share in shares.items())
        lines.append(f"worker {worker['worker']:<3} {bar:<{BAR}}  {said}  "
                     f"{spent['collectives'] / seconds:,.0f} collectives/s  "
                     f"{bytes_text(spent['bytes'] / seconds)}/s")
    return lines


def shortened(sequence: str, room: int) -> str:
    """Return as many whole names of a sequence as fit."""
    if len(sequence) <= room:
        return sequence
    names = sequence.split(" -> ")
    while len(names) > 1 and len(" -> ".join(names)) > room - 4:
        names.pop()
    return f"{' -> '.join(names)[:room - 4]} ..."


if __name__ == "__main__":
    raise SystemExit(main())
