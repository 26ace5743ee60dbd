"""Ctrl-C while a compiled function runs: a real signal, in a process of its own."""

import os
import subprocess
import sys

import pytest

import tenon as tn

BEGIN = """
import os, signal, threading
import tenon as tn

AFTER = 0.5

def interrupted(f, *args):
    timer = threading.Timer(AFTER, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        f(*args)
    except KeyboardInterrupt:
        return
    finally:
        timer.join()
    raise AssertionError("not interrupted")

def endless(x):
    return tn.while_loop(lambda c: c >= 0, lambda c: tn.abs(c) + 1e-6, x)

def long_scan(x):
    return tn.scan(lambda c, _: (tn.tanh(c * 1.01), None), x, length=10**12)[0]  # days
"""


def run(code):
    paths = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + code],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("loop", ["endless", "long_scan"])
def test_a_loop_stops_and_everything_is_as_before(loop):
    run(f"""
x = tn.array(2.0)
f = tn.compile({loop})
interrupted(f, x)
interrupted(f, x)  # also when nothing is left to compile
assert x.item() == 2
assert tn.compile(lambda x: x + 1)(x).item() == 3
""")


def test_steps_of_a_plan_stop():
    run("""
def products(x):
    for _ in range(100):
        x = x @ x * 1e-3
    return x
f = tn.compile(products, shapeless=True)
f(tn.ones((4, 4)))  # all that takes time is done
x = tn.ones((2000, 2000))
interrupted(f, x)
assert x[0, 0].item() == 1
""")


def test_state_that_nothing_was_written_over_is_as_before():
    run("""
state = {"n": tn.ones(1000)}
@tn.compile(inputs=state, outputs=state)
def step(x):
    state["n"] = state["n"] + endless(x)
interrupted(step, tn.array(1.0))
assert state["n"].sum().item() == 1000
""")


def test_state_that_was_written_over_is_lost_and_says_so():
    run("""
state = {"n": tn.ones(1000), "m": tn.ones(10)}
@tn.compile(inputs=state, outputs=state)
def step():
    state["n"] = state["n"] + 1
    state["m"] = state["m"] + endless(tn.sum(state["n"]))
interrupted(step)
try:
    state["n"].sum()
except tn.Error as error:
    assert "stopped half-way" in str(error), error
else:
    raise AssertionError("it can be read")
""")


def test_a_donated_argument_is_there_after_an_interrupt():
    run("""
x = tn.ones(1000)
f = tn.compile(lambda x, y: x * endless(y), donate_argnums=0)
interrupted(f, x, tn.array(1.0))
assert x.sum().item() == 1000
""")


def test_reading_an_element_type_does_not_swallow_it():
    class Interrupted:
        @property
        def name(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tn.zeros(3, dtype=Interrupted())
