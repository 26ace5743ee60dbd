"""GT's document: the instruction stream, timelines before and after, and what compilation did.

The commands are those of the document, with `tenon` and `TENON_` for its names.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import environment

from tenon.watching import colors
from tenon.watching.canvas import hex_of

COMPILED = hex_of(colors.COMPILED)
SCRIPT = """
import sys, time
import tenon as tn

w = tn.randn(100, 100)
x = tn.randn(100, 100)
tn.eval(w, x)
least = int(sys.argv[1]) if len(sys.argv) > 1 else 60
for i in range(least + 5000):
    y = x @ w
    z = y.relu()
    loss = z.sum()
    loss.item()
    time.sleep(0.002)
    if i > least and not any(p.status in ("queued", "compiling", "trial") for p in tn.hot_paths()):
        break
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "run").mkdir()
    return tmp_path


def shell(folder: Path, line: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a line of the document."""
    line = re.sub(r"\bpython\b", shlex.quote(sys.executable), line)
    done = subprocess.run(["bash", "-c", line], cwd=folder, text=True, capture_output=True,
                          env=environment(XDG_RUNTIME_DIR=str(folder / "run"), **variables),
                          timeout=120)
    assert done.returncode == 0, done.stderr
    return done


def test_the_instruction_stream(folder: Path) -> None:
    log = folder / "compile.log"
    shell(folder, f"TENON_INSTRUCTION_LOG={log} TENON_AUTO_COMPILE=1 python script.py")
    text = log.read_text()
    called = re.search(r"RECV       \| CLIENT \| BinaryOp \| op=matmul\n"
                       r".*RECV       \| CLIENT \| UnaryOp  \| op=relu\n"
                       r".*RECV       \| CLIENT \| UnaryOp  \| op=sum\n", text)
    started = re.search(r"COMPILE    \| WORKER \| Starting \| sequence=([0-9a-f]{12})\n", text)
    assert called and started and called.start() < started.start()
    done = f"COMPILE    | WORKER | Complete | sequence={started[1]}\n"
    assert "RECV       | CLIENT | BinaryOp | op=matmul (COMPILED)\n" in text.split(done)[1]
    shell(folder, "python -m tenon.scripts.visualize compile.log --output log.svg")
    picture = (folder / "log.svg").read_text()
    assert ">interpreted<" in picture and COMPILED in picture and "peak memory" not in picture


@pytest.mark.parametrize("package", ["tenon.scripts", "tenon"])
def test_timelines_before_and_after(folder: Path, package: str) -> None:
    shell(folder, f"python -m {package}.trace -s 5 --dir before/ script.py")
    shell(folder, f"TENON_AUTO_COMPILE=1 python -m {package}.trace -s 5 --dir after/ script.py")
    for side in ("before", "after"):
        [log] = (folder / side).glob("trace_*.log")
        assert ("COMPILE " in log.read_text()) == (side == "after")
        for kind, start in (("png", b"\x89PNG"), ("svg", b"<svg "), ("html", b"<!doctype html>")):
            shell(folder, f"python -m {package}.visualize {side}/trace_*.log "
                          f"--output {side}.{kind}")
            assert (folder / f"{side}.{kind}").read_bytes().startswith(start)
        picture = (folder / f"{side}.svg").read_text()
        assert (COMPILED in picture) == (side == "after") and ">matmul " in picture


@pytest.fixture
def running(folder: Path) -> Iterator[int]:
    """The number of a process that trains, and that may be watched."""
    variables = environment(TENON_WATCH="1", TENON_AUTO_COMPILE="1",
                            XDG_RUNTIME_DIR=str(folder / "run"))
    process = subprocess.Popen([sys.executable, "script.py", "100000"], cwd=folder, env=variables)
    try:
        for _ in range(500):
            if list((folder / "run").glob("tenon-*/*.sock")):
                break
            subprocess.run(["sleep", "0.02"])
        yield process.pid
    finally:
        process.kill()
        process.wait()


def test_the_commands_of_the_document_for_what_runs(folder: Path, running: int) -> None:
    """`trace` as the document writes it, without a script: it records all that may be watched."""
    shell(folder, "python -m tenon.scripts.trace -s 1 --dir after/")
    assert [log.name for log in (folder / "after").iterdir()] == [f"trace_{running}.log"]
    shell(folder, "python -m tenon.scripts.visualize after/trace_*.log --output after.png")
    shown = shell(folder, "python -m tenon.scripts.top -n 1 -d 0.2").stdout
    assert f"process {running} " in shown and "matmul -> relu -> sum" in shown


def test_two_timelines_are_compared(folder: Path) -> None:
    shell(folder, "python -m tenon.trace --dir before/ script.py 200")
    shell(folder, "TENON_AUTO_COMPILE=1 python -m tenon.trace --dir after/ script.py 200")
    said = shell(folder, "python -m tenon.visualize --compare before/trace_*.log "
                         "after/trace_*.log --output both.html").stdout
    assert re.search(r"compiled +0 % +[1-9]\d* %", said) and "the ops a second of before" in said
    page = (folder / "both.html").read_text()
    assert "class=legend" in page and "before/trace_" in page and "after/trace_" in page


def test_the_impact_of_compilation_is_measured_by_the_clock(folder: Path) -> None:
    for line in ("time python script.py", "TENON_AUTO_COMPILE=1 bash -c 'time python script.py'"):
        assert re.search(r"real\s+0m\d", shell(folder, line).stderr)
    done = shell(folder, "TENON_AUTO_COMPILE=1 TENON_DEBUG_COMPILE=1 python script.py")
    assert "[COMPILE] Detected hot sequence: matmul -> relu -> sum" in done.stderr


def test_recompilations_are_found(folder: Path) -> None:
    (folder / "shapes.py").write_text("""
import tenon as tn
w = tn.randn(784, 10)
for batch_size in [64, 128, 256]:
    x = tn.randn(batch_size, 784)
    tn.eval(x, w)
    for _ in range(12):
        (x @ w).sum().item()
""")
    done = shell(folder, 'TENON_AUTO_COMPILE=1 TENON_DEBUG_COMPILE=1 python shapes.py 2>&1 | '
                         'grep "Recompiling"')
    assert done.stdout.count("Recompiling matmul -> sum") == 2
