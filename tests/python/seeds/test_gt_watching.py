"""GT's document: the instruction stream with compilation, and timelines before and after."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import time
import tenon as tn

w = tn.randn(100, 100)
x = tn.randn(100, 100)
tn.eval(w, x)
for _ in range(60):
    y = x @ w
    z = y.relu()
    loss = z.sum()
    loss.item()
    time.sleep(0.002)
"""


def python(folder: Path, *arguments: str, **environment: str) -> None:
    (folder / "script.py").write_text(SCRIPT)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TENON_")}
    subprocess.run([sys.executable, *arguments], cwd=folder, env={**kept, **environment},
                   check=True, capture_output=True, timeout=120)


def test_the_instruction_stream(tmp_path: Path) -> None:
    log = tmp_path / "compile.log"
    python(tmp_path, "script.py", TENON_INSTRUCTION_LOG=str(log), TENON_AUTO_COMPILE="1")
    text = log.read_text()
    called = re.search(r"RECV       \| CLIENT \| BinaryOp \| op=matmul\n"
                       r".*RECV       \| CLIENT \| UnaryOp  \| op=relu\n"
                       r".*RECV       \| CLIENT \| UnaryOp  \| op=sum\n", text)
    started = re.search(r"COMPILE    \| WORKER \| Starting \| sequence=([0-9a-f]{12})\n", text)
    assert called and started and called.start() < started.start()
    done = f"COMPILE    | WORKER | Complete | sequence={started[1]}\n"
    assert "RECV       | CLIENT | BinaryOp | op=matmul (COMPILED)\n" in text.split(done)[1]


def test_timelines_before_and_after(tmp_path: Path) -> None:
    python(tmp_path, "-m", "tenon.trace", "-s", "5", "--dir", "before/", "script.py")
    python(tmp_path, "-m", "tenon.trace", "-s", "5", "--dir", "after/", "script.py",
           TENON_AUTO_COMPILE="1")
    for side in ("before", "after"):
        [log] = (tmp_path / side).glob("trace_*.log")
        assert ("COMPILE " in log.read_text()) == (side == "after")
        python(tmp_path, "-m", "tenon.visualize", str(log), "--output", f"{side}.png")
        assert (tmp_path / f"{side}.png").read_bytes().startswith(b"\x89PNG")
