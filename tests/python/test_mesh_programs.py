"""Whole programs on several workers: signals, the environment, and processes of a launcher."""

import os
import subprocess
import sys
import textwrap

import pytest


def run(tmp_path, program, *command, **variables):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(program))
    done = subprocess.run(
        [sys.executable, *command, str(path)],
        cwd=tmp_path,
        env=os.environ | {"TENON_COLLECTIVE_TIMEOUT": "60"} | variables,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


def test_the_environment_makes_workers(tmp_path):
    program = """
    import tenon as tn
    a = tn.shard(tn.randn(1000, 100, key=tn.random.key(0)), "workers")
    b = tn.randn(100, 100, key=tn.random.key(1))
    print(tn.workers(), tn.layout(a @ b), (a @ b)[3, 4].item().hex())
    """
    two, _ = run(tmp_path, program, TENON_NUM_WORKERS="2")
    four, _ = run(tmp_path, program, TENON_NUM_WORKERS="4")
    assert four[0].startswith("4 f32[1000,100] @[workers,-] ")
    assert two[0].split()[-1] == four[0].split()[-1]


GT_CONFIG = """
forward:
  shard: {axis: 0, workers: [0, 1, 2, 3]}
  backward: grads
  compile: true
grads:
  shard: {axis: 0, workers: [0, 1, 2, 3]}
weights:
  shard: {axis: 0, workers: null, replicated: true}
"""
GT_PROGRAM = """
import sys
import tenon as tn
from tenon import nn
tn.workers(WORKERS, parts=4)
tn.signal.load("config.yaml")
tn.random.seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.relu, nn.Linear(16, 4))
optimizer = tn.nn.SGD(model.parameters(), lr=0.01)
X, Y = tn.randn(16, 8), tn.randn(16, 4)
for _ in range(6):
    with tn.signal.context("forward"):
        hidden = model(X)
        loss = ((hidden - Y) ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(loss.item().hex(), float(abs(model[0].weight).sum()).hex())
print(tn.layout(hidden), tn.layout(model[0].weight))
with tn.signal.context("forward"):
    made = tn.zeros((8, 3))
    odd = tn.zeros((3, 3))
print(tn.layout(made), tn.layout(odd), tn.layout(tn.signal.tensor(made, "weights")))
"""


def test_signals_divide_what_enters_a_region(tmp_path):
    (tmp_path / "config.yaml").write_text(GT_CONFIG)
    results = []
    for workers in (1, 2, 4):
        out, errors = run(tmp_path, GT_PROGRAM.replace("WORKERS", str(workers)))
        results.append(out[0])
        assert out[1] == "f32[16,4] @[workers,-] f32[16,8] @[-,-]"
        assert out[2] == "f32[8,3] @[workers,-] f32[3,3] @[-,-] f32[8,3] @[-,-]"
        note = "the workers of a signal are those of its mesh"
        assert (note in errors) == (workers != 4)
    assert results[0] == results[1] == results[2]


def test_new_tensors_are_divided_automatically(tmp_path):
    program = """
    import numpy as np
    import tenon as tn
    x, y = tn.randn(8, 4), tn.array(np.ones((8, 2), np.float32))
    print(tn.layout(x), tn.layout(y), tn.layout(tn.ones(3)), tn.layout(x.T @ y))
    """
    out, _ = run(tmp_path, program, TENON_NUM_WORKERS="2", TENON_AUTO_SHARD="1")
    assert out == [
        "f32[8,4] @[workers,-] f32[8,2] @[workers,-] f32[3] @[-] f32[4,2] @[-,-]"
    ]


LAUNCHED = """
import os
import numpy as np
import tenon as tn
from tenon import nn, optim

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def train(spec):
    tn.random.seed(3)
    with tn.Mesh(data=-1, parts=4) as mesh:
        model = nn.Sequential(nn.Linear(8, 16), nn.relu, nn.Linear(16, 4))
        optimizer = optim.AdamW(0.01)
        if spec:
            nn.shard(model, {"*": tn.stored("data")})
        state = [model.state, optimizer.state]
        def loss_of(m, x, y):
            return ((m(x) - y) ** 2).mean()
        def step(x, y):
            loss, g = nn.value_and_grad(model, loss_of)(model, x, y)
            optimizer.update(model, g)
            return loss
        step = tn.compile(step, inputs=state, outputs=state)
        x, y = tn.randn(16, 8), tn.randn(16, 4)
        for _ in range(4):
            loss = step(*tn.shard((x, y), "data"))
        return loss.item().hex(), model[0].weight, mesh

loss, weight, mesh = train(False)
say(loss, train(True)[0])
with mesh:
    x = tn.shard(np.arange(8.0, dtype=np.float32).reshape(4, 2), "data")
print_me = tn.distributed.gather(x).tolist()
assert print_me == [[0, 1], [2, 3], [4, 5], [6, 7]], print_me
rank = tn.distributed.init().rank()
if tn.distributed.init().size() > 1:
    rows = 4 // mesh.size
    assert x.local.tolist() == print_me[rank * rows:(rank + 1) * rows]
    assert x.sum().item() == 28
    try:
        x.numpy()
    except ValueError as error:
        assert "x.local" in str(error) and "tn.distributed.gather(x)" in str(error), error
    else:
        raise AssertionError
    try:
        tn.Mesh(data=mesh.size + 1)
    except ValueError as error:
        assert "and the launcher started" in str(error), error
    else:
        raise AssertionError
"""


def test_processes_compute_what_threads_do(tmp_path):
    alone, _ = run(tmp_path, LAUNCHED)
    threads, _ = run(tmp_path, LAUNCHED, TENON_NUM_WORKERS="2")
    launched, _ = run(tmp_path, LAUNCHED, "-m", "tenon", "launch", "-n", "2")
    assert alone == threads
    assert launched == alone * 2


@pytest.mark.parametrize("workers", ["0", "many"])
def test_numbers_of_workers_that_are_none(tmp_path, workers):
    _, errors = run(tmp_path, "import tenon as tn\ntn.ones(3).numpy()", TENON_NUM_WORKERS=workers)
    assert "TENON_NUM_WORKERS" in errors
