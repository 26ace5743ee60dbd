"""TENON_INSTRUCTION_LOG: what a program ran and compiled, a line each."""

import re
import subprocess
import sys

import pytest

from processes import environment

LINE = re.compile(r" *(\d+\.\d{3})s \| #(\d{4,}) \| (RECV|COMPILE) +\| (CLIENT|WORKER) \| "
                  r"(CreateOp|UnaryOp|BinaryOp|TernaryOp|NaryOp|Starting|Complete|Failed) +\| (.+)")

SEQUENCE = """
import tenon as tn
x, w = tn.ones((8, 8)), tn.ones((8, 8))
tn.eval(x, w)
for _ in range({rounds}):
    loss = (x @ w).relu().sum()
    loss.item()
"""


def run(program, tmp_path, **variables):
    """The lines of the log of `program`, taken apart, and what it wrote."""
    log = tmp_path / "log.txt"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env=environment(**{"TENON_INSTRUCTION_LOG": str(log), **variables}))
    assert done.returncode == 0, done.stderr
    lines = log.read_text().splitlines() if log.exists() else []
    matches = [LINE.fullmatch(line) for line in lines]
    assert all(matches), lines
    return [m.groups() for m in matches], done.stdout + done.stderr


def test_ops_are_named_as_users_call_them(tmp_path):
    lines, _ = run(SEQUENCE.format(rounds=2), tmp_path)
    said = [(command, details) for *_, event, source, command, details in lines
            if event == "RECV" and source == "CLIENT"]
    once = [("BinaryOp", "op=matmul"), ("UnaryOp", "op=relu"), ("UnaryOp", "op=sum")]
    assert said[-6:] == once * 2


def test_numbers_and_times_grow(tmp_path):
    lines, _ = run(SEQUENCE.format(rounds=5), tmp_path)
    assert [int(line[1]) for line in lines] == list(range(1, len(lines) + 1))
    times = [float(line[0]) for line in lines]
    assert times == sorted(times)


def test_ops_of_compiled_functions_are_marked(tmp_path):
    lines, _ = run("""
import tenon as tn
f = tn.compile(lambda x: tn.exp(x) * 2)
f(f(tn.ones(3))).tolist()
""", tmp_path)
    assert [details for *_, details in lines].count("op=exp (COMPILED)") == 2
    stages = [line[4] for line in lines if line[2] == "COMPILE"]
    assert stages == ["Starting", "Complete"]


def test_hot_paths_are_told(tmp_path):
    lines, _ = run(SEQUENCE.format(rounds=12), tmp_path, TENON_COMPILE="1")
    compiles = [line for line in lines if line[2] == "COMPILE"]
    assert {line[3] for line in compiles} == {"WORKER"}
    assert [line[4] for line in compiles[-2:]] == ["Starting", "Complete"]
    sequences = [re.fullmatch("sequence=([0-9a-f]{12})", line[5]) for line in compiles]
    assert sequences[-2][1] == sequences[-1][1]
    after = lines[lines.index(compiles[-1]) + 1:]
    assert [line[5] for line in after][:3] == [
        "op=matmul (COMPILED)", "op=relu (COMPILED)", "op=sum (COMPILED)"]


def test_threads_lose_nothing(tmp_path):
    lines, _ = run("""
import threading
import tenon as tn
def work():
    for _ in range(500):
        tn.sum(tn.exp(tn.ones(3))).item()
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
""", tmp_path)
    assert [line[5] for line in lines].count("op=exp") == 2000


def test_more_than_a_ring_between_two_collections(tmp_path):
    lines, _ = run("""
import tenon as tn
x = tn.ones(3)
for _ in range(30000): x = x * 0.5
x.tolist()
""", tmp_path)
    assert [line[5] for line in lines].count("op=multiply") == 30000


def test_a_full_file_is_moved_aside(tmp_path):
    program = """
import tenon as tn
for _ in range(25):
    x = tn.ones(3)
    for _ in range(2000): x = x * 0.5
    x.tolist()
"""
    lines, _ = run(program, tmp_path, TENON_INSTRUCTION_LOG_MB="1")
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["log.txt", "log.txt.1"]
    assert all(path.stat().st_size <= 1 << 20 for path in tmp_path.iterdir())
    before = (tmp_path / "log.txt.1").read_text().splitlines()
    numbers = [int(LINE.fullmatch(line)[2]) for line in before] + [int(line[1]) for line in lines]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert numbers[-1] >= 50000


@pytest.mark.parametrize("end", ["raise SystemExit(0)", "import sys; sys.exit()"])
def test_it_is_complete_when_the_program_ends(tmp_path, end):
    lines, _ = run(f"import tenon as tn\ntn.exp(tn.ones(3)).tolist()\n{end}", tmp_path)
    assert lines[-1][5] == "op=exp"


def test_a_path_that_cannot_be_written_is_said_once(tmp_path):
    target = tmp_path / "none" / "log"
    lines, said = run("import tenon as tn\nprint(tn.exp(tn.zeros(1)).item())", tmp_path,
                      TENON_INSTRUCTION_LOG=str(target))
    assert not lines
    assert said.count("TENON_INSTRUCTION_LOG: cannot write") == 1 and "1.0" in said


def test_a_child_of_fork_goes_on(tmp_path):
    lines, said = run("""
import os
import tenon as tn
tn.exp(tn.ones(3)).tolist()
if child := os.fork():
    os.waitpid(child, 0)
    tn.log(tn.ones(3)).tolist()
else:
    print(tn.sin(tn.zeros(1)).item())
""", tmp_path)
    ops = [line[5] for line in lines]
    assert "op=log" in ops and "op=sin" not in ops and "0.0" in said


def test_a_program_that_it_starts_leaves_the_log_alone(tmp_path):
    lines, said = run("""
import subprocess, sys
import tenon as tn
tn.exp(tn.ones(3)).tolist()
subprocess.run([sys.executable, "-c", "import tenon as tn; tn.sin(tn.ones(3)).tolist()"])
tn.log(tn.ones(3)).tolist()
""", tmp_path)
    ops = [line[5] for line in lines]
    assert "op=exp" in ops and "op=log" in ops and "op=sin" not in ops
    assert said.count("it is the log of another process") == 1


@pytest.mark.parametrize("megabytes", ["abc", "0.01", "0", "-3"])
def test_sizes_that_are_none_are_told(tmp_path, megabytes):
    lines, said = run(SEQUENCE.format(rounds=1), tmp_path, TENON_INSTRUCTION_LOG_MB=megabytes)
    assert lines and said == (f"[COMPILE] TENON_INSTRUCTION_LOG_MB={megabytes} is ignored: "
                              "it needs a number, 1 or more\n")
