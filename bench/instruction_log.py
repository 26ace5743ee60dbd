"""What the instruction log costs: eager programs with and without it, in turns.

    python bench/instruction_log.py
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
import sys, time
import tenon as tn
size, rounds = int(sys.argv[1]), int(sys.argv[2])
x = tn.ones((size, size))
def step():
    y = x
    for _ in range(8):
        y = tn.tanh(y * 0.5 + 0.25)
    return tn.sum(y).item()
for _ in range(rounds // 10 + 1): step()
began = time.perf_counter()
for _ in range(rounds): step()
print(time.perf_counter() - began)
"""


def seconds(size: int, rounds: int, log: str | None) -> float:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TENON_INSTRUCTION")}
    if log:
        environment["TENON_INSTRUCTION_LOG"] = log
    command = [sys.executable, "-c", PROGRAM, str(size), str(rounds)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    return float(done.stdout)


TRACED = """
import sys, time
from pathlib import Path
import tenon as tn
from tenon.watching.recording_file import RecordingFile
x = tn.ones(4)
tn.eval(x)
trace = RecordingFile(Path(sys.argv[1]))
for _ in range(int(sys.argv[2])):
    tn.eval(x * 2)
began = time.perf_counter()
said = trace.stop()
print(time.perf_counter() - began)
print(said.partition("(")[2].partition(" ")[0].replace(",", ""))
"""


def end_of_a_trace(rounds: int) -> tuple[int, float]:
    """The events of a trace, and the seconds that ending it takes."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", TRACED, str(Path(folder) / "trace.log"), str(rounds)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    stall, events = done.stdout.splitlines()
    return int(events), float(stall)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = str(Path(folder) / "log")
        for size, rounds in [(8, 20000), (256, 400)]:
            pairs = [(seconds(size, rounds, None), seconds(size, rounds, log)) for _ in range(7)]
            off, on = (statistics.median(side) for side in zip(*pairs))
            best = min(on for _, on in pairs) / min(off for off, _ in pairs)
            print(f"{size:4} x {size:<4} {1e6 * off / rounds:8.1f} us a step without, "
                  f"{1e6 * on / rounds:8.1f} us with: {100 * (on / off - 1):+.1f} % "
                  f"({100 * (best - 1):+.1f} % of the best runs)")


if __name__ == "__main__":
    main()
