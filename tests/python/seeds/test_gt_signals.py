"""The GT document's signals: its configuration files and programs, names apart."""

from __future__ import annotations

import subprocess
import sys

import pytest
from processes import environment

MODEL = """
import tenon as tn
from tenon.nn import Module, Linear
from tenon.optim import SGD

class MLP(Module):
    def __init__(self):
        super().__init__()
        self.fc1 = Linear(784, 256)
        self.fc2 = Linear(256, 10)

    def forward(self, x):
        x = self.fc1(x).relu()
        return self.fc2(x)

tn.random.seed(7)
model = MLP()
optimizer = SGD(model.parameters(), lr=0.01)
input, target = tn.randn(16, 784), tn.randn(16, 10)
def loss_fn(pred, target):
    return ((pred - target) ** 2).mean()
"""
REPORT = """
print(loss.item().hex())
for path in tn.hot_paths():
    print(path.region, path.count, path.status)
"""
SHARD = "  shard:\n    axis: 0\n    workers: [0, 1, 2, 3]\n"


def run(folder, program: str, config: str | None, **variables: str) -> tuple[list[str], str]:
    (folder / "config.yaml").write_text(config or "")
    program = "import os\nos.environ['TENON_CONFIG'] = 'config.yaml'\n" + MODEL + program + REPORT
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n"), done.stderr


TRAINING_LOOP = """
for _ in range(8):
    with tn.signal.context('training_loop'):
        # Operations in this context will be compiled
        loss = loss_fn(model(input), target)
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
BOUNDARIES = """
for _ in range(8):
    # Forward compiled separately
    with tn.signal.context('forward'):
        pred = model(input)
        loss = loss_fn(pred, target)
    # Backward compiled separately
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_yaml_configuration(tmp_path):
    config = "# config.yaml\ntraining_loop:\n" + SHARD + "  compile: true\n"
    out, err = run(tmp_path, TRAINING_LOOP, config, TENON_DEBUG_COMPILE="1")
    without, _ = run(tmp_path, TRAINING_LOOP, None)
    assert out[0] == without[0]  # the bits of the loss
    assert "training_loop 7 kept" in out
    assert "[COMPILE] Compiling sequence..." in err and "of signal 'training_loop'" in err
    assert err.count("UserWarning: shard: has no effect without workers") == 1


def test_compilation_boundaries(tmp_path):
    config = "forward:\n  compile: true\n" + SHARD + "\nbackward:\n  compile: true\n" + SHARD
    out, _ = run(tmp_path, BOUNDARIES, config)
    without, _ = run(tmp_path, BOUNDARIES, None)
    assert out[0] == without[0]
    for region in ("forward", "backward"):
        assert any(line.startswith(f"{region} ") and line.endswith("kept") for line in out), out


@pytest.mark.parametrize("program", [TRAINING_LOOP, BOUNDARIES], ids=["loop", "boundaries"])
def test_compilation_can_be_switched_off_for_a_section(tmp_path, program):
    config = "".join(f"{n}: {{compile: false}}\n" for n in ("training_loop", "forward", "backward"))
    out, _ = run(tmp_path, program, config, TENON_AUTO_COMPILE="1", TENON_HOTPATH_THRESHOLD="1")
    without, _ = run(tmp_path, program, None)
    assert out[0] == without[0]
    assert not any(line.startswith(("training_loop", "forward", "backward")) for line in out)
