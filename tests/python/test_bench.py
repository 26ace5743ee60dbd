"""The benchmarks run: every workload agrees with its rivals, and the results have their form."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
KEYS = {"name", "tenon_ms", "peers", "limit_ms", "best_peer", "speedup_over_best_peer",
        "share_of_limit", "first_call_ms", "peers_first_call_ms", "goal", "met"}


def run(*arguments):
    paths = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)
    return subprocess.run([sys.executable, BENCH / "run.py", *arguments], text=True,
                          capture_output=True, env=os.environ | {"PYTHONPATH": paths})


def test_workloads_run_on_tiny_sizes_and_agree(tmp_path):
    done = run("--quick", "--results", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "latest.json").read_text())["rows"]
    assert len(rows) == 18
    for row in rows:
        assert KEYS <= set(row)
        assert row["tenon_ms"] > 0
    softmax = next(row for row in rows if row["name"] == "softmax")
    assert softmax["speedup_over_best_peer"] == pytest.approx(
        min(softmax["peers"].values()) / softmax["tenon_ms"])
    assert (tmp_path / "latest.svg").read_text().startswith("<svg")


def test_an_unknown_name_lists_the_known_ones():
    done = run("gelo")
    assert done.returncode == 2
    assert "unknown names: gelo; known: gelu, gelu_ops, gelu_bf16, gelu_f16, chain" in done.stderr


def test_sections_run_on_tiny_sizes(tmp_path):
    """Those that no workload stands for: the C++ program, what importing costs, traces."""
    names = ["calls", "import", "watching", "cpp"]
    done = run("--quick", "--results", tmp_path, *names)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads((tmp_path / "latest.json").read_text())["figures"]
    shown = " ".join(row["name"] for row in figures)
    assert "import, beyond bare Python" in shown and "ending a trace of" in shown
    assert "C++: compile a math function" in shown


@pytest.mark.parametrize("program, text", [
    ("workers.py", "2x1 to 1x2: ratio"),
    ("stored_memory.py", "2 workers, as it is: state 0.1 MB"),
    ("failures.py", "4 workers, machines: 1, 1 kills: median"),
])
def test_programs_of_workers_run_on_tiny_sizes(program, text):
    paths = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)
    done = subprocess.run([sys.executable, BENCH / program, "--quick"], text=True,
                          capture_output=True, env=os.environ | {"PYTHONPATH": paths}, timeout=120)
    assert done.returncode == 0, done.stderr
    assert text in done.stdout
