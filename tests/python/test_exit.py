"""The end of the interpreter while daemon threads compute: a process of its own for every run."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

BEGIN = """
import itertools, threading, time
import numpy as np
import tenon as tn

threads, begun = [], []

def forever(step):
    threads.append(step)
    def loop():
        for i in itertools.count():
            step(i)
            if i == 0:
                begun.append(step)
    threading.Thread(target=loop, daemon=True).start()

"""

END = """
while len(begun) < len(threads):
    time.sleep(0.001)
"""

IMMEDIATE = """
x = tn.ones((64, 64))
forever(lambda i: (x @ x + i).sum().item())
forever(lambda i: tn.eval(tn.exp(x) + i, x * i))
forever(lambda i: np.asarray(tn.array(np.ones(100)) + i))
"""

COMPILED = """
x = tn.ones((64, 64))
f = tn.compile(lambda x, n: tn.tanh(x @ x) * n, shapeless=True)
forever(lambda i: f(x, i))
forever(lambda i: tn.compile(lambda x: tn.exp(x) + i)(x))  # traced and compiled every time
"""

DERIVATIVES = """
def slow(x):
    for _ in range(100):
        x = x * 1.01
    return x.sum()
x = tn.ones(100)
model = tn.nn.Linear(8, 8)
optimizer = tn.optim.SGD(model.parameters(), lr=0.1)
def step(i):
    model(tn.ones((4, 8))).sum().backward()
    optimizer.step()
forever(lambda i: tn.eval(tn.grad(slow)(x)))
forever(lambda i: tn.vmap(slow)(tn.ones((4, 100))).sum().item())
forever(step)
"""

ERRORS = """
class Slow:  # callbacks that C++ waits for
    shape = (2,)
    def __del__(self):
        sum(range(1000))
def failing(i):
    try:
        tn.check(tn.array(i) < 0, "a value of {}", tn.array(i))
    except tn.Error:
        pass
def printing(i):
    tn.compile(lambda x: tn.print("{}", x) or x + 1)(tn.array(i)).item()
import os, sys
sys.stdout = open(os.devnull, "w")
forever(failing)
forever(printing)
forever(lambda i: tn.tree.map(lambda a, b: (a, b), [1, Slow()], [2, Slow()]))
"""

PREFETCH = """
data = (tn.ones((16, 16)) * i for i in itertools.count())
source = iter(tn.data.prefetch(data, ahead=4))
next(source)
tn.async_eval(tn.ones((300, 300)) @ tn.ones((300, 300)))
forever(lambda i: next(iter(tn.data.prefetch([tn.ones(3) + i]))))
"""

AT_EXIT = """
import atexit
class Computing:
    def __del__(self, tn=tn):
        tn.ones(3).sum().item()
kept = Computing()
kept.itself = kept
atexit.register(lambda: tn.ones(3).sum().item())
x = tn.ones((64, 64))
forever(lambda i: (x @ x + i).sum().item())
"""


def run(code):
    paths = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + code + END],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=100,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "program, runs",
    [(IMMEDIATE + COMPILED + DERIVATIVES + PREFETCH, 20), (ERRORS, 10), (AT_EXIT, 10)],
    ids=["computing", "errors", "at_exit"],
)
def test_daemon_threads_do_not_disturb_the_end(program, runs):
    with ThreadPoolExecutor(2) as pool:
        for done in pool.map(run, [program] * runs):
            assert done == (0, "")
