"""Under a launcher all processes give a mesh the same tensors and numbers of the host."""

import os
import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import os
import numpy as np
import tenon as tn
from tenon import nn

rank = tn.distributed.init().rank()
mesh = tn.Mesh(data=-1)
with mesh:
    model = nn.Linear(4, 3)

def rows(seed=0, count=8):
    return np.random.default_rng(seed).normal(size=(count, 4)).astype(np.float32)

@tn.compile
def loss(x, factor=1.0):
    return (model(x) ** 2).mean() * factor

"""


def launched(tmp_path, program, workers=2):
    path = tmp_path / "program.py"
    inside = textwrap.indent(textwrap.dedent(program), "    ")
    path.write_text(f'{PRELUDE}with mesh:\n{inside}\nos.write(1, b"done\\n")\n')
    return path, subprocess.run(
        [sys.executable, "-m", "tenon", "launch", "-n", str(workers), str(path)],
        env=os.environ | {"TENON_COLLECTIVE_TIMEOUT": "60"},
        capture_output=True, text=True, timeout=120)


DIFFERENT = {
    "divided": 'loss(tn.shard(tn.array(rows(rank)), "data")).item()  # here',
    "evaluated": """
    x = tn.shard(tn.array(rows(rank)), "data")  # here
    tn.eval(x)
    loss(x).item()
    """,
    "large": """
    x = tn.shard(tn.array(rows(rank, 4000)), "data")  # here
    tn.eval(x)
    loss(x * 2).item()
    """,
    "on every worker": """
    x = tn.shard(tn.array(rows()), "data")
    bias = tn.array(rows(rank, 1), device="cpu")
    (x + bias).sum().item()  # here
    """,
    "number": """
    x = tn.shard(tn.array(rows()), "data")
    loss(x, 2.0 + rank).item()
    """,
    "keys": """
    tn.random.seed(rank)
    x = tn.shard(tn.random.normal((8, 4)), "data")  # here
    tn.eval(x)
    loss(x).item()
    """,
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_processes_with_different_values_are_told(tmp_path, name):
    path, done = launched(tmp_path, DIFFERENT[name])
    assert done.returncode != 0 and "done" not in done.stdout
    text = "worker 0 and worker 1 were given different values"
    assert text in done.stderr and "from all processes" in done.stderr
    lines = [i for i, line in enumerate(path.read_text().splitlines(), 1) if "# here" in line]
    for line in lines:
        assert f"program.py:{line}" in done.stderr.split(text)[1].split(", but")[0], done.stderr


def test_what_one_process_does_alone_is_no_matter(tmp_path):
    path, done = launched(tmp_path, """
    x = tn.shard(tn.array(rows()), "data")
    for _ in range(2):
        value = loss(x)
        tn.eval(value)
        if rank == 0:
            (value / tn.array(7.0)).item()  # of the first process
            (value * rows(rank)).sum().item()
        tn.distributed.all_sum(tn.array(1.0 * rank, device="cpu")).item()
        mine = tn.place(tn.array(rows(rank)), mesh)
        loss(x, 0.5).item()
    """)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n" * 2


def test_stages_of_a_pipeline_use_the_values_of_their_own_processes(tmp_path):
    path, done = launched(tmp_path, """
    mesh = tn.Mesh(stage=2, data=2)
    first, last = mesh.at(stage=0), mesh.at(stage=1)
    x, y = rows(rank // 2), rows(3 - rank // 2)
    with mesh:
        x, y = tn.shard((x, y), "data")
    b = tn.place(tn.place(x, first) * 2, last) + tn.place(y, last)
    b.sum().to(mesh).item()
    """, 4)
    assert done.returncode == 0, done.stderr


def test_runs_may_be_cut_differently(tmp_path):
    path, done = launched(tmp_path, """
    x = tn.shard(tn.array(rows()), "data") * 3
    bias = tn.array([1.0, 2.0, 3.0, 4.0]) + 5
    if rank == 0:
        bias.tolist()  # evaluated before its reader, by one process
    (x + bias).sum().item()
    """)
    assert done.returncode == 0, done.stderr
