"""GT's document on compilation: its commands and programs, names apart.

The training loop itself is in test_gt_training.py.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap

import pytest
from processes import environment

import tenon as tn
from tenon.nn import SGD, Linear, Module

TRAIN = """
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

    tn.random.seed(0)
    X, y = tn.randn(16, 784), tn.randn(16, 10)
    model = MLP()
    optimizer = SGD(model.parameters(), lr=0.01)

    # Warmup
    for _ in range(20):
        pred = model(X)
        loss = ((pred - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    # Benchmark
    import time
    start = time.time()
    for _ in range(100):
        pred = model(X)
        loss = ((pred - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    end = time.time()

    print(f"Average iteration: {(end - start) / 100 * 1000:.1f}ms")
    print(loss.item())
"""

SEQUENCE = """
    import time
    import tenon as tn
    w = tn.randn(100, 100)
    x = tn.randn(100, 100)
    tn.eval(x, w)
    for _ in range(15):
        y = x @ w
        z = y.relu()
        loss = z.sum()
        y = z = None
        loss.item()
        time.sleep(0.02)
    time.sleep(0.5)
    for _ in range(40):
        loss = (x @ w).relu().sum()
        loss.item()
    print(tn.hot_paths())
    print(tn.hot_paths()[0])
"""


def run(program: str, **variables: str) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=environment(**variables), capture_output=True, text=True, timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("switch", ["TENON_AUTO_COMPILE", "TENON_COMPILE"])
def test_training_with_the_environment_variable_alone(switch: str) -> None:
    plain, compiled = run(TRAIN).stdout.splitlines(), run(TRAIN, **{switch: "1"}).stdout
    assert re.match(r"Average iteration: \d+\.\dms", compiled)
    assert compiled.splitlines()[1] == plain[1]


def test_the_output_for_debugging() -> None:
    done = run(SEQUENCE, TENON_AUTO_COMPILE="1", TENON_DEBUG_COMPILE="1")
    wanted = [
        r"\[COMPILE\] Detected hot sequence: matmul -> relu -> sum \(executed 10 times\)",
        r"\[COMPILE\] Compiling sequence\.\.\.",
        r"\[COMPILE\] Compilation complete \(\d+\.\dm?s\)",
        r"\[COMPILE\] (Speedup: \d+\.\d+x on subsequent executions|Dropped )",
    ]
    lines = iter(done.stderr.splitlines())
    for pattern in wanted:  # in this order
        assert any(re.match(pattern, line) for line in lines), (pattern, done.stderr)


def test_a_sequence_and_its_status_on_demand() -> None:
    table, *_, status = run(SEQUENCE, TENON_AUTO_COMPILE="1").stdout.partition("Sequence hash: ")
    assert re.search(r"[0-9a-f]{12}  matmul -> relu -> sum +\d+  (kept|dropped)", table)
    assert re.match(r"[0-9a-f]{12}\nExecution count: 55\nStatus: (HOT PATH ✓|dropped)", status)


def test_shapes_that_vary_are_told_as_recompiling() -> None:
    done = run("""
        import time, tenon as tn
        w = tn.randn(784, 10)
        for batch_size in [64, 128, 256]:
            x = tn.randn(batch_size, 784)
            tn.eval(x, w)
            for _ in range(12):
                (x @ w).sum().item()
    """, TENON_AUTO_COMPILE="1", TENON_DEBUG_COMPILE="1")
    said = [line for line in done.stderr.splitlines() if "Recompiling matmul -> sum" in line]
    assert len(said) == 2 and "operands were f32[64,784], f32[784,10], now f32[128,784]" in said[0]


@pytest.mark.parametrize("mode", [None, "reduce-overhead", "max-autotune"])
def test_modes_of_a_compiled_model(mode: str | None) -> None:
    model = Linear(8, 4)
    x = tn.randn(2, 8)
    compiled = tn.compile(model) if mode is None else tn.compile(model, mode=mode)
    assert tn.allclose(compiled(x), model(x), rtol=1e-5, atol=1e-6)


def test_selective_compilation() -> None:
    class Model(Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = tn.compile(Linear(8, 4))  # Compiled
            self.decoder = Linear(4, 8)  # Not compiled

        def forward(self, x: tn.Tensor) -> tn.Tensor:
            encoded = self.encoder(x)
            decoded = self.decoder(encoded)
            return decoded

    model = Model()
    optimizer = SGD(model.parameters(), lr=0.1)
    x, losses = tn.randn(2, 8), []
    for _ in range(5):
        loss = ((model(x) - 1) ** 2).mean()
        loss.backward()
        assert model.encoder.weight.grad is not None
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert len(model.state_dict()) == 4 and losses == sorted(losses, reverse=True)
