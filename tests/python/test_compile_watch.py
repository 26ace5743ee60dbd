"""timeout, check, Ctrl-C and the debug log of compiled functions."""

import _thread
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import tenon as tn
from tenon import _core


def slow_to_compile(kernels, seed):
    """A function of many kernels that no cache has seen."""

    def f(x):
        out = []
        for i in range(kernels):
            y = x
            for k in range(12):
                y = tn.tanh(y * (1 + 0.01 * i + 0.001 * k + seed)) + tn.exp(-y * y)
            out.append(tn.sum(y, axis=i % 2))
        return out

    return f


@pytest.fixture(autouse=True)
def no_disk_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TENON_CACHE_DIR", str(tmp_path))


def test_the_interpreter_runs_until_the_plan_is_ready():
    f = slow_to_compile(30, random.random())
    quick, patient = tn.compile(f, timeout=1e-9), tn.compile(f)
    x = tn.ones((8, 8))
    first = [np.asarray(y) for y in quick(x)]
    for wanted, got in zip(patient(x), first):
        assert np.asarray(wanted).tobytes() == got.tobytes()
    for _ in range(3):  # the plan is known by now
        for wanted, got in zip(first, quick(x)):
            assert wanted.tobytes() == np.asarray(got).tobytes()


def test_a_call_that_is_late_fails_when_asked_to():
    f = tn.compile(slow_to_compile(30, random.random()), timeout=(1e-9, "error"))
    with pytest.raises(ValueError, match="compile: compilation timed out after 1e-09 s in tracing"):
        f(tn.ones((8, 8)))
    for _ in range(600):
        try:
            assert len(f(tn.ones((8, 8)))) == 30
            break
        except ValueError:
            time.sleep(0.1)
    else:
        pytest.fail("never ready")


@pytest.mark.forks
def test_a_child_of_fork_compiles_what_its_parent_had_begun():
    f = tn.compile(slow_to_compile(30, random.random()), timeout=(1e-9, "error"))
    x = tn.ones((8, 8))
    with pytest.raises(ValueError, match="timed out"):
        f(x)
    child = os.fork()
    if child == 0:
        for _ in range(300):
            try:
                os._exit(len(f(x)) != 30)
            except ValueError:
                time.sleep(0.1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("mode", ["default", "max-autotune"])
@pytest.mark.forks
def test_children_of_fork_compile_while_their_parent_does(mode):
    """Whatever the thread of the parent is at: tracing, in passes, in the code generator."""
    x = tn.ones((8, 8))
    tn.compile(lambda x: x + 1, mode=mode)(x)  # imports, whose locks are Python's
    children = []
    for _ in range(3):
        f = tn.compile(slow_to_compile(6, random.random()), mode=mode)
        thread = threading.Thread(target=f, args=[x])
        thread.start()
        for _ in range(6):
            children.append(os.fork())
            if children[-1] == 0:
                signal.alarm(60)
                os._exit(len(f(x)) != 6)
            time.sleep(0.01)
        thread.join()
    assert [os.waitstatus_to_exitcode(os.waitpid(c, 0)[1]) for c in children] == [0] * 18


def test_plans_in_time_are_waited_for():
    f = tn.compile(lambda x: x + 1, timeout=60)
    assert f(tn.ones(3)).tolist() == [2, 2, 2]
    assert f(tn.ones(4)).tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize("timeout", [-1, float("nan"), "1", True, (1, "later"), (1, 2, 3)])
def test_wrong_timeouts(timeout):
    with pytest.raises(ValueError, match="compile: .*timeout"):
        tn.compile(lambda x: x, timeout=timeout)


def test_a_pending_compilation_does_not_keep_the_process(tmp_path):
    code = (
        "import tenon as tn, sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from test_compile_watch import slow_to_compile\n"
        "tn.compile(slow_to_compile(400, 0.5), timeout=1e-9)(tn.ones((8, 8)))\n"
    )
    paths = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)
    variables = {"PYTHONPATH": paths, "TENON_CACHE": "1", "TENON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code, os.path.dirname(__file__)],
                          env=os.environ | variables)
    assert done.returncode == 0
    assert len([p for p in tmp_path.rglob("*") if p.is_file()]) < 400  # not all kernels were made


def test_check_passes_for_right_code():
    f = tn.compile(lambda x, y: tn.softmax(x @ y) + tn.mean(x), check=True)
    rng = np.random.default_rng(0)
    for rows in (3, 4, 5):
        x = rng.standard_normal((rows, 8)).astype(np.float32)
        y = rng.standard_normal((8, 6)).astype(np.float32)
        assert f(tn.array(x), tn.array(y)).shape == (rows, 6)


def test_check_sees_nan_and_no_elements():
    f = tn.compile(lambda x: tn.log(x) / x, check=True)
    f(tn.array([float("nan"), -1.0, 0.0, float("inf")]))
    f(tn.zeros((0,)))


def test_effects_happen_once_under_check(capfd):
    def f(x):
        tn.print("seen {}", x + 1)
        return x * 2

    tn.compile(f, check=True)(tn.ones(2))
    assert capfd.readouterr().out.count("seen") == 1


def test_an_interrupt_ends_a_long_compilation_and_leaves_everything_usable():
    x = tn.ones((8, 8))
    for kernels in (150, 600, 2400):  # more, where all are compiled before the interrupt arrives
        f = tn.compile(slow_to_compile(kernels, random.random()))
        before = _core._kernels_compiled()

        def interrupt():
            while _core._kernels_compiled() < before + 3:
                time.sleep(0.001)
            _thread.interrupt_main()

        watcher = threading.Thread(target=interrupt)
        watcher.start()
        with pytest.raises(KeyboardInterrupt):
            f(x)
            watcher.join()
        watcher.join()
        if _core._kernels_compiled() < before + kernels:
            break
    else:
        pytest.fail("every compilation went on after an interrupt")
    assert tn.compile(lambda x: x + 1)(x)[0, 0].item() == 2
    assert len(f(x)) == kernels


def debug_lines(code, **environment):
    paths = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)
    env = os.environ | {"PYTHONPATH": paths} | environment
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True,
                          check=True)
    return done.stderr.splitlines()


CODE = """
import tenon as tn
@tn.compile
def gelu(x):
    return x * (1 + tn.erf(x / 2**0.5)) / 2
for n in (8, 16, 24, 8):
    gelu(tn.ones((n, 4)))
"""


def test_the_debug_log_tells_traces():
    lines = debug_lines(CODE, TENON_DEBUG_COMPILE="1", TENON_CACHE="0")
    assert all(line.startswith("[COMPILE] ") for line in lines)
    traced = [line for line in lines if " gelu: " in line]
    assert traced[0] == "[COMPILE] Tracing gelu: first call (<string>:7, in <module>)"
    assert traced[1].startswith("[COMPILE] Recompiling gelu: x.shape[0] was 8, now 16 (")
    assert traced[1].endswith("; x.shape[0] becomes symbolic")
    assert len(traced) == 2
    plans = [line for line in lines if " ms" in line]
    assert re.match(r"\[COMPILE\] compiled \d+ ops \(<string>:5, in gelu\): 1 kernels compiled, "
                    r"0 from disk, 0 from memory, [\d.]+ ms", plans[0])
    assert " for s0=16 " in plans[1]
    assert re.match(r"\[COMPILE\] planned anew \d+ ops for s0=24 .*: 0 kernels compiled", plans[2])


@pytest.mark.parametrize("value", ["0", ""])
def test_no_debug_log_unless_asked_for(value):
    assert debug_lines(CODE, TENON_DEBUG_COMPILE=value) == []
