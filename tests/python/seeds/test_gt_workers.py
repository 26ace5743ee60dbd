"""GT's document with the workers of its configuration: logs, timelines and top, by worker."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import environment

from tenon.watching import colors, log_reader
from tenon.watching.canvas import hex_of
from tenon.watching.worker_lanes import meetings, workers_of

CONFIG = """
training_loop:
  shard:
    axis: 0
    workers: [0, 1, 2, 3]
  compile: true              # Enable compilation for this signal
"""
SCRIPT = """
import os, sys, time
os.environ['TENON_CONFIG'] = 'config.yaml'
import tenon as tn
from tenon.nn import Module, Linear, SGD

class MLP(Module):
    def __init__(self):
        super().__init__()
        self.fc1 = Linear(784, 256)
        self.fc2 = Linear(256, 10)

    def forward(self, x):
        x = self.fc1(x).relu()
        return self.fc2(x)

model = MLP()
optimizer = SGD(model.parameters(), lr=0.01)
input, target = tn.randn(128, 784), tn.randn(128, 10)
tn.eval(input, target)
until = time.monotonic() + float(sys.argv[1]) if len(sys.argv) > 1 else 0
count = 0
while count < 4 or time.monotonic() < until:
    with tn.signal.context('training_loop'):
        loss = ((model(input) - target) ** 2).mean()
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    loss.item()
    count += 1
"""
LINE = re.compile(
    r" *\d+\.\d{3}s \| #\d{4,} \| (?:"
    r"RECV       \| CLIENT(?: worker_\d)? \| \w+ *\| op=\w+(?: \(COMPILED\))?|"
    r"COMPILE    \| WORKER \| \w+ *\| sequence=[0-9a-f]{12}|"
    r"WORKER_SEND \| WORKER worker_\d \| Worker(?:Create|Unary|Binary|Ternary|Nary)Op *\| "
    r"op=\w+ [\d.]+[KMG]?B(?: \(COMPILED\))?|"
    r"WORKER_RECV \| WORKER worker_\d \| WorkerRun \| [\d.]+[KMG]?B ops=\d+ took=[\d.]+ms"
    r"(?: \(COMPILED\))?|"
    r"COLLECTIVE \| WORKER worker_\d \| \w+ \| [\d.]+[KMG]?B \| group=\S+ took=[\d.]+ms "
    r"waited=[\d.]+ms(?: peers=\d+,\d+,\d+)?)")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "run").mkdir()
    return tmp_path


def shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    line = re.sub(r"\bpython\b", shlex.quote(sys.executable), line)
    done = subprocess.run(["bash", "-c", line], cwd=folder, text=True, capture_output=True,
                          env=environment(XDG_RUNTIME_DIR=str(folder / "run")), timeout=120)
    assert done.returncode == 0, done.stderr
    return done


def lines_of(path: Path) -> list[str]:
    lines = path.read_text().splitlines()
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    return lines


def test_the_instruction_stream_has_a_worker_column(folder: Path) -> None:
    shell(folder, "TENON_NUM_WORKERS=4 TENON_INSTRUCTION_LOG=compile.log python script.py")
    lines = lines_of(folder / "compile.log")
    assert any("RECV       | CLIENT | BinaryOp | op=matmul" in line for line in lines)
    for worker in range(4):
        own = [line for line in lines if f"WORKER worker_{worker} |" in line]
        sent = [line for line in own if "WORKER_SEND" in line]
        assert any("| WorkerBinaryOp | op=matmul " in line for line in sent)
        assert any("(COMPILED)" in line for line in sent)
        summed = [line for line in own if "COLLECTIVE" in line and "| AllReduce |" in line]
        # The gradient of the first weight, 784 * 256 floats or 803 kB, joined with the others.
        assert sum("| 814KB |" in line for line in summed) >= 4, own
        assert all("group=workers" in line for line in summed)
        runs = [line for line in own if "WORKER_RECV" in line]
        assert len(runs) >= 4
    numbers = [int(line.split("#")[1].split()[0]) for line in lines]
    assert numbers == list(range(1, len(lines) + 1))


def test_with_one_worker_the_log_is_that_of_the_page(folder: Path) -> None:
    shell(folder, "TENON_INSTRUCTION_LOG=compile.log python script.py")
    assert not re.search("worker_|COLLECTIVE", (folder / "compile.log").read_text())


def test_a_lane_for_each_worker(folder: Path) -> None:
    shell(folder, "TENON_NUM_WORKERS=4 python -m tenon.scripts.trace -s 5 --dir after/ script.py")
    shell(folder, "TENON_NUM_WORKERS=4 TENON_INSTRUCTION_LOG=compile.log python script.py")
    [trace] = (folder / "after").glob("trace_*.log")
    for path in (trace, folder / "compile.log"):
        recording = log_reader.read(path)
        assert workers_of(recording) == [0, 1, 2, 3]
        assert recording.plain == (path != trace)
        met = meetings(recording)
        assert len(met) >= 4 and all(m.workers == [0, 1, 2, 3] for m in met)
        for kind, start in (("png", b"\x89PNG"), ("html", b"<!doctype html>")):
            shell(folder, f"python -m tenon.scripts.visualize {path} --output t.{kind}")
            assert (folder / f"t.{kind}").read_bytes().startswith(start)
        shell(folder, f"python -m tenon.scripts.visualize {path} --output t.svg")
        picture = (folder / "t.svg").read_text()
        said = " ".join(ElementTree.fromstring(picture).itertext())
        assert all(f"worker {n}" in said for n in range(4)) and "waiting for others" in said
        assert hex_of(colors.COLLECTIVE) in picture and hex_of(colors.WAITING) in picture


def test_processes_of_a_launcher_have_a_log_each(folder: Path) -> None:
    (folder / "hand.py").write_text("""
import tenon as tn
world = tn.distributed.init()
x = tn.ones((1000, 100)) * (world.rank() + 1)
for _ in range(3):
    x = tn.distributed.all_sum(tn.tanh(x))
    x.numpy()
with tn.Mesh(data=-1):
    y = tn.shard(tn.ones((8, 64)), "data")
    print((y @ y.T).sum().item())
""")
    shell(folder, "TENON_INSTRUCTION_LOG=run.log python -m tenon launch -n 2 hand.py")
    shell(folder, "TENON_TRACE=20:traces python -m tenon launch -n 2 hand.py")
    logs = [folder / "run.log", folder / "run.log.worker_1"]
    for rank, path in enumerate(logs):
        lines = lines_of(path)
        assert any(f"RECV       | CLIENT worker_{rank} | " in line for line in lines)
        assert sum(f"COLLECTIVE | WORKER worker_{rank} | AllReduce | 400KB | group=world" in line
                   for line in lines) == 3
        assert any(f"WORKER_SEND | WORKER worker_{rank} | " in line for line in lines)
        assert any("group=data" in line for line in lines)
    traces = sorted((folder / "traces").glob("trace_*.log"))
    for paths in (logs, traces):
        [both] = log_reader.joined([log_reader.read(path) for path in paths])
        assert workers_of(both) == [0, 1] and both.title == "2 workers"
        assert [m.workers for m in meetings(both)][:3] == [[0, 1]] * 3
        names = " ".join(str(path) for path in paths)
        shell(folder, f"python -m tenon.visualize {names} --output both.svg")
        assert ">worker 1<" in (folder / "both.svg").read_text()


@pytest.fixture
def running(folder: Path) -> Iterator[int]:
    variables = environment(TENON_WATCH="1", TENON_NUM_WORKERS="2",
                            XDG_RUNTIME_DIR=str(folder / "run"))
    process = subprocess.Popen([sys.executable, "script.py", "60"], cwd=folder, env=variables)
    try:
        for _ in range(500):
            if list((folder / "run").glob("tenon-*/*.sock")):
                break
            time.sleep(0.02)
        yield process.pid
    finally:
        process.kill()
        process.wait()


def test_top_has_a_bar_for_each_worker(folder: Path, running: int) -> None:
    for _ in range(50):  # until it computes
        shown = shell(folder, "python -m tenon.scripts.top -n 1 -d 0.3").stdout
        if "worker 1" in shown:
            break
    assert f"process {running} " in shown
    for worker in range(2):
        row = re.search(rf"^worker {worker} +([█▒░]*) +computing (\d+) %  communicating \d+ %  "
                        r"waiting \d+ %  [\d,]+ collectives/s  ", shown, re.M)
        assert row, shown
