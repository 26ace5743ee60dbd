"""Processes that wait for each other in calls of different groups: an error, at once."""

import re
import textwrap

import pytest

from test_distributed import launch

MESH = """
from tenon import nn
with tn.Mesh(data=size):
    model = nn.Linear(4, 2 * size)
    nn.shard(model, {"*": "data"})
    x = tn.shard(tn.arange(8.0 * size).reshape(2 * size, 4), "data")
    tn.eval(x, model.parameters())
def checked(f):
    try:
        f()
    except tn.WorkerFailed as error:
        say(str(error).split("\\n")[0])
        raise SystemExit(1)
"""

CASES = {
    "read": (
        "checked(lambda: x.sum().item() if rank == 0 else dist.barrier())",
        r"worker 0 waits in all_reduce .*\(program.py:\d+.*\) for worker 1; "
        r"worker 1 waits in barrier #\d+ \(\S*program.py:\d+.*\) for worker 0\.",
    ),
    "saved": (
        "checked(lambda: model.save_weights(PATH) if rank == 0 else dist.barrier())",
        r"worker 0 waits in .*\(program.py:\d+.*\) for worker 1; worker 1 waits in barrier",
    ),
    "received": (
        "checked(lambda: dist.recv((2,), tn.float32, 1 - rank))",
        r"worker 0 waits in recv #1 from worker 1 of float32\[2\] \(program.py:\d+.*\) for "
        r"worker 1; worker 1 waits in recv",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_workers_that_wait_for_each_other(tmp_path, case):
    program, text = CASES[case]
    path = repr(str(tmp_path / "weights.safetensors"))
    _, out, errors = launch(tmp_path, MESH + program.replace("PATH", path), 2)
    assert len(out) == 2, errors
    for line in out:
        assert re.search("workers wait for each other, and none can go on: " + text, line), line


def test_a_third_worker_fails_with_them(tmp_path):
    program = MESH + textwrap.dedent("""
    half = world.split(min(rank, 1))
    def wait():
        if rank == 0:
            dist.barrier()
        elif rank == 1:
            dist.recv((2,), tn.float32, 0)
        else:
            dist.barrier(half)
    checked(wait)
    """)
    _, out, errors = launch(tmp_path, program, 3)
    assert len(out) == 3, errors
    assert all("worker 0 waits in barrier" in line and "worker 2" not in line for line in out)
