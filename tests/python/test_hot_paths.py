"""Hot paths: ordinary code that is compiled by itself."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import tenon as tn
from cpp_programs import run_cpp
from processes import environment

LOOP = """
    import time, tenon as tn
    x, w = tn.ones((16, 16)), tn.ones((16, 16))
    tn.eval(x, w)
    def step():
        return (x @ w).relu().sum().item()
    first = step()
    for _ in range(9):
        assert step() == first
    for _ in range(2000):
        if any(p.status == "trial" for p in tn.hot_paths()):
            break
        time.sleep(0.005)
    for _ in range(40):
        assert step() == first
"""


def run(program: str, **variables: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=environment(**variables), capture_output=True, text=True, timeout=120,
    )


def path_of(sequence: str) -> tn.HotPath | None:
    return next((p for p in tn.hot_paths() if p.sequence == sequence), None)


def wait(sequence: str) -> tn.HotPath:
    end = time.time() + 60
    while (path := path_of(sequence)) is None or path.status in ("queued", "compiling"):
        assert time.time() < end
        time.sleep(0.005)
    return path


def test_the_environment_turns_it_on_and_the_lines_of_the_document_come() -> None:
    done = run(LOOP, TENON_AUTO_COMPILE="1", TENON_DEBUG_COMPILE="1")
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert "[COMPILE] Detected hot sequence: matmul -> relu -> sum (executed 10 times)" in lines
    assert sum(line.startswith("[COMPILE] Compiling sequence...") for line in lines) == 1
    assert sum(line.startswith("[COMPILE] Compilation complete (") for line in lines) == 1
    verdicts = ("[COMPILE] Speedup: ", "[COMPILE] Dropped ")
    assert sum(line.startswith(verdicts) for line in lines) == 1


def test_nothing_is_said_or_watched_when_nobody_asks() -> None:
    done = run("""
        import tenon as tn
        for _ in range(30):
            tn.sum(tn.exp(tn.ones(4))).item()
        assert not tn.hot_paths() and str(tn.hot_paths()) == "no hot paths"
    """)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_the_threshold_of_the_environment() -> None:
    done = run(LOOP, TENON_AUTO_COMPILE="1", TENON_DEBUG_COMPILE="1", TENON_HOTPATH_THRESHOLD="4")
    assert "(executed 4 times)" in done.stderr


def test_everything_is_compiled_before_its_first_run_when_forced() -> None:
    done = run("""
        import tenon as tn
        tn.sum(tn.exp(tn.ones(4))).item()
        assert [p.status for p in tn.hot_paths()] == ["trial"]
    """, TENON_COMPILE="1")
    assert done.returncode == 0, done.stderr


def test_a_context_ends() -> None:
    before = tn._core._hot_path_policy()
    with tn.set_auto_compile(True, threshold=3):
        assert tn._core._hot_path_policy() == (1, 3)
    assert tn._core._hot_path_policy() == before


@pytest.mark.parametrize("threshold", [0, -1, 1.5, True, "10"])
def test_thresholds_are_numbers_of_runs(threshold: object) -> None:
    with pytest.raises((ValueError, TypeError), match="set_auto_compile: threshold"):
        tn.set_auto_compile(True, threshold=threshold)


def test_results_keep_their_bits_and_the_table_tells() -> None:
    x = tn.array(np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32))

    def step() -> bytes:
        return tn.softmax(tn.sin(x) * 2.0, axis=-1).numpy().tobytes()

    wanted = step()
    with tn.set_auto_compile(True, threshold=3):
        for _ in range(3):
            assert step() == wanted
        sequence = max(tn.hot_paths(), key=lambda p: "sin" in p.sequence).sequence
        assert wait(sequence).status == "trial"
        for _ in range(30):
            assert step() == wanted
    path = path_of(sequence)
    assert path.status in ("kept", "dropped") and path.count == 33
    assert path.interpreted_ms > 0 and path.compiled_ms > 0 and path.compile_ms > 0
    assert len(path.hash) == 12 and f"Sequence hash: {path.hash}" in str(path)
    assert repr(path) == f"<HotPath {path.hash} {sequence}: {path.status}, 33 runs>"
    table = str(tn.hot_paths())
    assert path.hash in table and table.splitlines()[0].split()[:4] == [
        "hash", "sequence", "runs", "status"]
    assert f"<td>{path.hash}</td>" in tn.hot_paths()._repr_html_()


def test_times_have_units_that_fit() -> None:
    with tn.set_auto_compile(True, threshold=1000):
        x = tn.ones(3)
        for _ in range(5):
            (x - 0.5).sum().item()
        table = str(tn.hot_paths())
    assert "e-0" not in table and ("ns" in table or "µs" in table)


@pytest.mark.parametrize("name, value, needs", [
    ("TENON_AUTO_COMPILE", "true", "1, or 0"), ("TENON_COMPILE", "on", "1, or 0"),
    ("TENON_HOTPATH_THRESHOLD", "0", "a number, 1 or more"),
    ("TENON_HOTPATH_THRESHOLD", "1e3", "a number, 1 or more"),
])
def test_wrong_values_of_variables_are_told(name: str, value: str, needs: str) -> None:
    done = run("import tenon", **{name: value})
    assert done.returncode == 0
    assert done.stderr == f"[COMPILE] {name}={value} is ignored: it needs {needs}\n"


def test_sizes_that_are_no_operands_are_told() -> None:
    done = run("""
        import tenon as tn
        for size in (64, 128):
            tn.exp(tn.random.bits((size,), key=tn.random.key(0)).astype(tn.float32)).sum().item()
    """, TENON_COMPILE="1", TENON_DEBUG_COMPILE="1")
    assert done.returncode == 0, done.stderr
    [line] = [line for line in done.stderr.splitlines() if "Recompiling" in line]
    assert line.endswith("as before, sizes or settings of its ops differ")


def test_zero_turns_it_off_without_a_word() -> None:
    assert run("import tenon", TENON_AUTO_COMPILE="0", TENON_COMPILE="").stderr == ""


def test_calls_have_the_names_that_users_write() -> None:
    w = tn.ones((100, 100))
    tn.eval(w)
    tn._core._clear_plans()
    with tn.set_auto_compile(True, threshold=1000):
        (tn.randn(100, 100) @ w).relu().sum().item()
        (tn.arange(6.0) * tn.arange(6.0)).mean().item()
        names = {path.sequence for path in tn.hot_paths()}
    assert "arange -> arange -> multiply -> mean" in names
    assert any(name.endswith("random_normal -> matmul -> relu -> sum") for name in names)


def test_hashes_are_the_same_in_every_process() -> None:
    program = """
        import tenon as tn
        filler = [tn.ones(n) for n in range({})]  # what is interned lies elsewhere
        x = tn.ones((8, 8))
        for axis in (0, 1):
            tn.softmax((x @ x).relu() * 2.5, axis=axis).sum().item()
        print(*sorted((path.hash, path.sequence) for path in tn.hot_paths()))
    """
    runs = {run(program.format(size), TENON_AUTO_COMPILE="1").stdout for size in (0, 500)}
    assert len(runs) == 1
    hashes = [word for word in runs.pop().split("'") if len(word) == 12]
    assert len(hashes) == len(set(hashes)) == 2


def test_the_table_is_as_short_as_it_can_be() -> None:
    with tn.set_auto_compile(True, threshold=1000):
        tn._core._clear_plans()
        for size in (3, 4):
            tn.sum(tn.exp(tn.ones(size)) * 2.5).item()
        paths = tn.hot_paths()
    assert isinstance(paths[:1], tn.HotPaths) and str(paths[:1]).count("\n") == 1
    heads = str(paths).splitlines()[0].split()
    assert heads == ["hash", "sequence", "runs", "status"]  # nothing was measured yet
    assert "<th>reason</th>" not in paths._repr_html_()


def test_rows_that_are_capped_are_one() -> None:
    tn._core._clear_plans()
    with tn.set_auto_compile(True, threshold=1):
        for size in range(3, 15):
            x = tn.array(np.ones(size, np.float32))
            tn.sum(tn.cos(tn.sin(x))).item()
            wait("sin -> cos -> sum")
        paths = tn.hot_paths()
    capped = [path for path in paths if path.status == "capped"]
    assert len(capped) > 1
    [row] = [line for line in str(paths).splitlines() if "capped" in line]
    assert row.startswith(f"({len(capped)} alike)") and "compiled for 8 other types" in row


@pytest.mark.parametrize("name, near", [
    ("TENON_AUTOCOMPILE", "TENON_AUTO_COMPILE"), ("TENON_DEBUG_NAN", "TENON_DEBUG_NANS"),
    ("TENON_TOKEN", None), ("TENON_AUTO_COMPILE", None),
])
def test_names_of_variables_that_are_nearly_right_are_told(name: str, near: str | None) -> None:
    said = run("import tenon", **{name: "1"}).stderr
    text = f"unknown environment variable {name}; did you mean {near}?"
    assert said.count(text) == (near is not None)
    assert near or not said


def test_set_auto_compile_takes_true_or_false() -> None:
    for wrong in ("yes", 20, None):
        with pytest.raises(TypeError, match="enabled is True or False"):
            tn.set_auto_compile(wrong)
    with tn.set_auto_compile(False, threshold=5) as policy:
        assert repr(policy) == "set_auto_compile(False, threshold=5)"


def test_ops_are_run_once() -> None:
    lines = []
    with tn.set_auto_compile(True, threshold=2):
        x = tn.ones(3)
        for _ in range(30):
            state = tn.random.uniform(shape=(4,))
            lines.append(tuple(state.tolist()))
            (x + 1).numpy()
    assert len(set(lines)) == 30


def test_the_process_ends_at_once_while_something_compiles(tmp_path: pathlib.Path) -> None:
    done = run("""
        import tenon as tn
        x = tn.ones((64, 64))
        tn.set_auto_compile(True, threshold=1)
        for k in range(8):
            y = x
            for i in range(150):
                y = tn.tanh(y * (1 + i / 7)) + tn.sum(tn.exp(-y), axis=(i + k) % 2)
            y.numpy()
    """, TENON_CACHE="1", TENON_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert len([p for p in tmp_path.rglob("*") if p.is_file()]) < 8 * 150  # not all kernels


@pytest.mark.forks
def test_a_child_of_fork_compiles_for_itself() -> None:
    done = run("""
        import os, time, tenon as tn
        tn.set_auto_compile(True, threshold=3)
        x = tn.ones((8, 8))
        def step():
            y = x
            for i in range(60):
                y = tn.tanh(y * (1 + i / 7)) + tn.sum(tn.exp(-y), axis=i % 2)
            return y.numpy().tobytes()
        def settle():
            for _ in range(4000):
                step()
                if tn.hot_paths()[0].status in ("kept", "dropped"):
                    return True
                time.sleep(0.005)
        wanted = [step() for _ in range(3)][0]
        child = os.fork()
        if child == 0:
            assert tn.hot_paths()[0].status in ("cold", "trial")
            ok = settle() and step() == wanted
            os._exit(0 if ok else 1)
        assert settle() and step() == wanted
        assert os.waitpid(child, 0)[1] == 0
    """)
    assert done.returncode == 0, done.stderr


def test_a_training_loop_keeps_its_bits() -> None:
    def train() -> list[float]:
        tn.random.seed(0)
        model = tn.nn.Sequential(tn.nn.Linear(8, 16), tn.nn.ReLU(), tn.nn.Linear(16, 1))
        optimizer = tn.optim.SGD(model.parameters(), lr=0.05)
        x, y = tn.randn(32, 8), tn.randn(32, 1)
        losses = []
        for _ in range(60):
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        return losses

    wanted = train()
    with tn.set_auto_compile(True, threshold=2):
        assert train() == wanted


@pytest.mark.compiles
def test_the_program_in_cpp(tmp_path) -> None:
    source = pathlib.Path(__file__).parents[2] / "examples" / "cpp" / "hot_paths.cpp"
    lines = run_cpp(source.read_text(), tmp_path).splitlines()
    assert lines[0] == "the same value in each step: yes"
    paths = {tuple(line.split(maxsplit=1)) for line in lines[1:]}
    assert ("process", "matmul -> relu       201 runs") in paths
    assert ("score", "tanh -> multiply -> sum 201 runs") in paths


def test_examples_in_docstrings() -> None:
    import doctest

    from tenon import auto_compile as module

    assert doctest.testmod(module, extraglobs={"tn": tn}).failed == 0


def train(steps: int, optimizer: type, each_step=lambda model: None) -> list[np.ndarray]:
    """The parameters after a loop, and what `each_step` kept of it."""
    tn.random.seed(0)
    x, y = tn.randn(4, 64), tn.randn(4, 3)
    model = tn.nn.Sequential(tn.nn.Linear(64, 32), tn.nn.ReLU(), tn.nn.Linear(32, 3))
    rule = optimizer(model.parameters(), lr=0.05)
    kept = []
    for i in range(steps):
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        rule.step()
        kept.append(each_step(model))
        rule.zero_grad()
        if i == 12:
            while any(p.status in ("queued", "compiling") for p in tn.hot_paths()):
                time.sleep(0.005)
    values = [v for v in kept if v is not None] + list(model.state_dict().values())
    return [np.array(v) for v in values]


def address(model: tn.nn.Module) -> int:
    return np.asarray(model.layers[0].weight).__array_interface__["data"][0]


def test_parameters_that_nobody_else_holds_are_updated_in_place() -> None:
    found = []
    with tn.set_auto_compile(True, threshold=5):
        train(60, tn.optim.SGD, lambda model: found.append(address(model)))
    assert len(set(found[-10:])) == 1
    assert len(set(found[:5])) > 1  # by the interpreter


@pytest.mark.parametrize("optimizer", [tn.optim.SGD, tn.optim.Adam])
@pytest.mark.parametrize("what", [
    lambda model: None,
    lambda model: model.layers[0].weight.detach(),  # former parameters stay what they were
    lambda model: model.layers[0].weight.grad,
    lambda model: tn.sum(model.layers[0].weight),  # pending, from the new one
])
def test_training_gives_the_same_bits_with_parameters_updated_in_place(optimizer, what) -> None:
    expected = train(40, optimizer, what)
    with tn.set_auto_compile(True, threshold=5):
        got = train(40, optimizer, what)
    for a, b in zip(expected, got, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_backward_may_still_need_is_not_written_over() -> None:
    """Sums of gradients of two losses, where the first has been computed."""

    def run_loop() -> list[np.ndarray]:
        tn.random.seed(0)
        w = tn.randn(8, 8).requires_grad_()
        x, found = tn.randn(4, 8), []
        for _ in range(30):
            y = tn.tanh(x @ w)
            other = (w * w).sum()  # kept: backward() comes after the value
            w2 = w.detach() * 0.5
            found.append(np.array(w2))
            float(other.item())
            (y.sum() + other).backward()
            with tn.no_grad():
                tn._core._rebind(w, w - 0.01 * w.grad)
            w.grad = None
            found.append(np.array(w))
        return found

    expected = run_loop()
    with tn.set_auto_compile(True, threshold=3):
        got = run_loop()
    np.testing.assert_array_equal(expected, got)
