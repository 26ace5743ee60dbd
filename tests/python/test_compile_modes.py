"""compile(mode=...): each mode does something that can be seen."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import tenon as tn

X = tn.array(np.random.default_rng(0).normal(size=(32, 32)).astype(np.float32))

TUNED = """
    import tenon as tn
    w = tn.ones((64, 16))
    def f(x):
        return tn.softmax(x * 2.0, axis=1) @ w
    x = tn.ones((64, 64))
    a, b = tn.compile(f)(x), tn.compile(f, mode="max-autotune")(x)
    assert a.tolist() == b.tolist()
"""


def lines_of(program: str, folder: object) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True,
        env={**os.environ, "TENON_DEBUG_COMPILE": "1", "TENON_CACHE": "1",
             "TENON_CACHE_DIR": str(folder)}, timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return [line for line in done.stderr.splitlines() if "Autotun" in line]


def test_what_was_measured_is_remembered_on_disk(tmp_path) -> None:
    first, second = lines_of(TUNED, tmp_path), lines_of(TUNED, tmp_path)
    chosen = [line for line in first if line.endswith(", chosen")]
    assert len(first) >= 6 and len(chosen) in (1, 2)
    assert first[0].startswith("[COMPILE] Autotuning: as it is: ")
    ways = {line.split(": ")[1] for line in first}
    assert {"without fuse", "without epilogue", "without layout"} <= ways
    assert len(second) == 1 and second[0].startswith("[COMPILE] Autotuned before: ")


REGION = """
    import tenon as tn
    tn.signal.load({path!r})
    x, w = tn.ones((64, 64)), tn.ones((64, 16))
    for scale in (2.5, 3.5, 4.5):
        with tn.signal.context("tuned"):
            y = tn.softmax(x * scale, axis=1) @ w
        y.numpy()
    [path] = [path for path in tn.hot_paths() if path.region == "tuned"]
    assert path.count == 3 and path.status == "trial", path
"""


def test_regions_are_tuned_and_that_is_remembered(tmp_path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("tuned: {compile: {mode: max-autotune}}")
    program = REGION.format(path=str(config))
    first, second = lines_of(program, tmp_path), lines_of(program, tmp_path)
    assert first[0].startswith("[COMPILE] Autotuning: as it is: ")
    assert len(second) == 1 and second[0].startswith("[COMPILE] Autotuned before: ")
    config.write_text("tuned: {compile: true}")
    assert not lines_of(program, tmp_path)


def test_what_happens_besides_computing_happens_once(capfd) -> None:
    def f(x: tn.Tensor) -> tn.Tensor:
        tn.print("seen {}", x.sum())
        return x + 1

    tuned = tn.compile(f, mode="max-autotune")
    tn.eval(tuned(tn.ones(3)))
    assert capfd.readouterr().out.count("seen") == 1


def test_arguments_that_are_given_away_are_there_until_the_call() -> None:
    tuned = tn.compile(lambda x: tn.exp(x) * 2, donate_argnums=0, mode="max-autotune")
    wanted = tn.compile(lambda x: tn.exp(x) * 2)(X).tolist()
    assert tuned(tn.array(X.tolist())).tolist() == wanted


def test_state_is_changed_once_by_a_call_that_tunes() -> None:
    state = {"sum": tn.zeros((32, 32))}

    @tn.compile(inputs=state, outputs=state, mode="max-autotune")
    def add(x: tn.Tensor) -> None:
        state["sum"] = state["sum"] + x

    for _ in range(3):
        add(X)
    assert tn.allclose(state["sum"], 3 * X)


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune"])
def test_all_modes_give_the_same_bits(mode: str) -> None:
    def f(x: tn.Tensor) -> tn.Tensor:
        return tn.softmax(tn.sin(x), axis=-1) @ x

    made = tn.compile(f, mode=mode)
    for _ in range(3):
        assert made(X).tolist() == tn.compile(f)(X).tolist()


def turns_of_another_thread(call, times: int) -> int:
    """How often another thread gets Python's lock while `call` is called: when it is given away."""
    turns, stop = [0], threading.Event()

    def other() -> None:
        while not stop.is_set():
            turns[0] += 1

    before = sys.getswitchinterval()
    thread = threading.Thread(target=other)
    thread.start()
    try:
        while not turns[0]:
            pass
        sys.setswitchinterval(0.5)  # another thread runs only when the lock is given away
        seen = turns[0]
        for _ in range(times):
            call()
            if turns[0] > seen:
                break
        return turns[0] - seen
    finally:
        stop.set()
        sys.setswitchinterval(before)
        thread.join()


def test_calls_with_little_overhead_keep_pythons_lock() -> None:
    f = tn.compile(lambda x: x + 1, mode="reduce-overhead")
    for _ in range(20):
        f(X)
    assert turns_of_another_thread(lambda: f(X), 50) == 0


def test_long_calls_let_other_threads_go_on() -> None:
    f, x = tn.compile(lambda x: tn.exp(x @ x) @ x, mode="reduce-overhead"), tn.ones((512, 512))
    for _ in range(3):
        f(x)
    assert turns_of_another_thread(lambda: f(x), 20) > 0


@pytest.mark.parametrize("mode", ["reduce-overhead", "default"])
def test_short_regions_keep_pythons_lock(mode: str, tmp_path) -> None:
    (tmp_path / "config.yaml").write_text(f"short: {{compile: {{mode: {mode}}}}}")
    tn.signal.load(tmp_path / "config.yaml")

    def step() -> None:
        with tn.signal.context("short"):
            y = tn.sin(X) * 2.5
        y.eval()

    try:
        for _ in range(20):
            step()
        turns = turns_of_another_thread(step, 50 if mode == "reduce-overhead" else 5000)
    finally:
        tn.signal.load(None)
        tn._core._clear_plans()
    assert (turns == 0) == (mode == "reduce-overhead")


def test_threads_share_a_function_with_little_overhead() -> None:
    f = tn.compile(lambda x: tn.exp(x) + 1, mode="reduce-overhead")
    wanted, wrong = (tn.exp(X) + 1).tolist(), []

    def work() -> None:
        for _ in range(100):
            wrong.extend([1] if f(X).tolist() != wanted else [])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
