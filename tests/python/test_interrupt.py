"""Ctrl-C while a compiled function runs: a real signal, in a process of its own."""

import os
import subprocess
import sys

import pytest

import tenon as tn

BEGIN = """
import os, signal, threading, time
import numpy as np
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

flag = np.zeros(1)
shared = tn.asarray(flag, copy=False)

def until_flag(x):
    return tn.while_loop(lambda c: shared[0] == 0, lambda c: c + 1, x)

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
    assert "was interrupted" in str(error), error
else:
    raise AssertionError("it can be read")
""")


TRAINING = """
from tenon import nn, optim
model = nn.Sequential(nn.Linear(2, 256), nn.gelu, nn.Linear(256, 256), nn.gelu, nn.Linear(256, 1))
optimizer = optim.AdamW(learning_rate=1e-3)
state = [model.state, optimizer.state]
@tn.compile(inputs=state, outputs=state)
def step(x):
    loss, gradients = nn.value_and_grad(model, lambda x: (model(x) ** 2).mean())(x)
    optimizer.update(model, gradients)
    return loss
x = tn.random.normal((512, 2))
for _ in range(3):
    step(x).item()
"""


def test_a_model_survives_interrupts_of_its_training():
    """The handler of the signal raises in Python code: where containers get their new tensors."""
    run(TRAINING + """
def train():
    while True:
        step(x).item()
AFTER = 0.1
for _ in range(15):
    before = optimizer.state["step"].item()
    interrupted(train)
    assert optimizer.state["step"].item() >= before
    assert np.isfinite(sum(float(p.sum()) for p in tn.tree.leaves(model.parameters())))
step(x).item()
""")


def test_what_a_step_makes_is_whole_when_a_handler_raises_while_it_is_stored():
    run("""
class Module:
    def __init__(self):
        self.values = {"a": tn.ones(10), "b": tn.ones(10), "c": 1}
    @property
    def state(self):
        if armed and armed.pop():
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(10):  # the handler runs here
                pass
        return self.values
armed, modules = [], [Module(), Module()]
@tn.compile(inputs=modules, outputs=modules)
def step():
    for m in modules:
        for name in "ab":
            m.values[name] = m.values[name] + 1
step(), step()
for count in range(12):  # questions before the one that the signal comes in
    armed[:] = [True] + [False] * count
    before = modules[0].values["a"][0].item()
    try:
        step()
    except KeyboardInterrupt:
        pass
    now = {v[0].item() for m in modules for v in (m.values["a"], m.values["b"])}
    assert now in ({before}, {before + 1}), (before, now)
""")


def test_a_scan_of_a_step_that_writes_over_its_state_comes_to_its_end():
    run("""
state = {"n": tn.ones(1000), "m": tn.ones(10)}
@tn.compile(inputs=state, outputs=state)
def step():
    state["n"] = state["n"] + 1
    last = tn.scan(lambda c, _: (tn.tanh(c * 1.01), None), tn.sum(state["n"]), length=1_000_000)[0]
    state["m"] = state["m"] + last
step()
AFTER = 0.2
def steps():
    while True:
        step()
interrupted(steps)
assert state["n"][0].item() > 1 and state["m"].shape == (10,)
""")


def test_readers_of_a_model_wait_for_its_training():
    run(TRAINING + """
over, failed, count = threading.Event(), [], []
def read():
    try:
        while not over.is_set():
            np.asarray(model.layers[2].weight).sum(), model(x[:4]).sum().item(), model.state_dict()
            count.append(1)
    except BaseException as error:
        failed.append(error)
threads = [threading.Thread(target=read) for _ in range(3)]
for t in threads:
    t.start()
for _ in range(50):
    step(x).item()
while not count:
    step(x).item()
over.set()
for t in threads:
    t.join()
assert not failed, failed
""")


def test_a_donated_argument_is_gone_for_those_who_waited_for_it():
    run("""
def slow(x):
    return x * tn.scan(lambda c, _: (tn.tanh(c * 1.01), None), x[0], length=100_000)[0]
x = tn.ones(1000)
thread = threading.Thread(target=tn.compile(slow, donate_argnums=0), args=(x,))
thread.start()
try:
    while True:
        x.sum().item()
except tn.Error as error:
    assert "that has ended" in str(error), error
thread.join()
""")


def test_a_donated_argument_is_there_after_an_interrupt():
    run("""
x = tn.ones(1000)
f = tn.compile(lambda x, y: x * endless(y), donate_argnums=0)
interrupted(f, x, tn.array(1.0))
assert x.sum().item() == 1000
""")


def test_an_input_that_was_overwritten_is_lost(tmp_path):
    """Compiled regions reuse the memory of tensors that only they reference."""
    (tmp_path / "hot.yaml").write_text("hot: {compile: true}\n")
    run(f"""
tn.signal.load({str(tmp_path / "hot.yaml")!r})
x = tn.array(np.full(1000, 2.0, np.float32)) * 1.5
tn.eval(x)
with tn.signal.context("hot"):
    y = tn.sort(x + 1)
    z = tn.sort(y * 2) * endless(y[0])
    del x, y
interrupted(tn.eval, z)
try:
    tn.eval(z)
    raise AssertionError("evaluated")
except tn.Error as error:
    assert "failed or was interrupted has overwritten an input: f32[1000]" in str(error)
    assert "hint: compute it again" in str(error)
""")


def test_reading_an_element_type_does_not_swallow_it():
    class Interrupted:
        @property
        def name(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tn.zeros(3, dtype=Interrupted())


# Immediate evaluation ------------------------------------------------------------------------


@pytest.mark.parametrize("loop", ["endless", "long_scan"])
def test_an_evaluation_stops_and_stays_pending(loop):
    run(f"""
x = tn.array(2.0)
y, z = {loop}(x), x + 1
interrupted(y.item)
interrupted(tn.eval, y, z)
assert x.item() == 2 and z.item() == 3
assert "tanh" in y.graph() or "while_loop" in y.graph()  # not lost
""")


def test_steps_of_an_evaluation_stop():
    run("""
x = y = tn.ones((2000, 2000))
tn.eval(x)
for _ in range(100):
    y = y @ y * 1e-3
interrupted(y.eval)
assert x[0, 0].item() == 1
""")


def test_a_value_is_the_same_after_an_interrupt():
    run("""
y = until_flag(tn.array(5))
interrupted(y.item)
flag[0] = 1
assert y.item() == 5
""")


def test_an_evaluation_that_recording_starts_stops():
    """Long chains are computed piece by piece, by the op that makes them too long."""
    run("""
tn._core._set_longest_pending(10)
def chain():
    x = endless(tn.array(1.0))
    for _ in range(20):
        x = x + 1
interrupted(chain)
assert (tn.ones(3) + 1).sum().item() == 6
""")


def test_waiting_for_the_evaluation_of_another_thread_stops():
    run("""
threading.Thread(target=endless(tn.array(1.0)).item, daemon=True).start()
time.sleep(0.1)  # should it begin later, this waits for its own turn all the same
x = endless(tn.array(2.0))
interrupted(x.item)
interrupted(x.item)
""")


def test_waiting_for_async_eval_stops_it():
    run("""
for wait in (tn.synchronize, lambda: (x + 1).item()):
    x, before = endless(tn.array(1.0)), tn._core._totals()["runs"]
    tn.async_eval(x)
    while tn._core._totals()["runs"] == before:  # until it is under way
        time.sleep(0.001)
    assert tn.array(0.0).sin().item() == 0  # what does not need it does not wait for it
    interrupted(wait)
    assert (tn.ones(3) + 1).sum().item() == 6
""")


def test_an_interrupted_value_is_not_computed_by_async_eval_instead():
    run("""
for _ in range(3):
    x = endless(tn.array(1.0))
    tn.async_eval(x)
    interrupted(x.item)
    interrupted(lambda: (time.sleep(0.01), tn.synchronize(), time.sleep(60)))
    assert (tn.ones(3) + 1).sum().item() == 6
""")


def test_hot_paths_stop():
    run("""
tn.set_auto_compile(True, threshold=1)
x = endless(tn.array(1.0))
interrupted(x.item)
assert (tn.ones(3) + 1).sum().item() == 6
""")


def test_a_handler_of_the_user_runs_outside_of_the_evaluation():
    """It may ask for values, and go on: the evaluation then starts again."""
    run("""
y, state, seen = until_flag(tn.array(5)), tn.ones(3) + 1, []
def handler(number, frame):
    seen.append(state.sum().item())
    flag[0] = 1
signal.signal(signal.SIGINT, handler)
threading.Timer(AFTER, os.kill, (os.getpid(), signal.SIGINT)).start()
assert y.item() == 5 and seen == [6], seen
""")


@pytest.mark.forks
def test_fork_while_an_evaluation_goes_on():
    """The child has not the thread that evaluates. The main thread, which may be waiting to ask
    Python for interrupts, does not hold up a thread that forks with Python's lock."""
    run("""
x, children = endless(tn.array(1.0)), []
def fork():
    for _ in range(20):
        child = os.fork()
        if child == 0:
            os._exit(int((tn.ones(3) + 1).sum().item()))
        children.append(os.waitpid(child, 0)[1])
thread = threading.Thread(target=fork)
thread.start()
interrupted(x.item)
thread.join()
assert [os.waitstatus_to_exitcode(c) for c in children] == [6] * 20, children
""")


FORKS = """
import sys

class Nowhere:
    def write(self, text): pass
    def flush(self): pass
sys.stdout = Nowhere()

over = threading.Event()
def again_and_again(f):
    def work():
        while not over.is_set():
            try:
                f()
            except tn.Error:
                pass
    threads.append(threading.Thread(target=work))
    threads[-1].start()
threads = []

def fork(times):
    for _ in range(times):
        sum(range(50_000))  # with Python's lock: the other thread comes to want it
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            os._exit(int((tn.ones(3) + 1).sum().item()))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 6
"""


@pytest.mark.parametrize(
    "work",
    [
        "def work():\n    tn.print('{}', tn.ones(3)), tn.eval(tn.ones(2) + 1)",
        "@tn.compile\ndef work():\n    tn.print('{}', tn.ones(3))\n    return tn.ones(2) + 1",
        "def work():\n    tn.check(tn.ones(2) > 1, 'too small'), tn.eval(tn.ones(2) + 1)",
        "tn.debug_nans(True)\ndef work():\n    tn.log(-tn.ones(3)).tolist()",
        "kept = []\ntn.compile(lambda x: kept.append(x + 1) or x)(tn.ones(2))\n"
        "def work():\n    kept[0].tolist()",
    ],
    ids=["print", "compiled", "check", "nan", "leaked"],
)
@pytest.mark.forks
def test_fork_while_an_evaluation_wants_pythons_lock(work):
    """To print, or to name the user's line in an error: the thread that forks has the lock."""
    run(FORKS + work + """
again_and_again(work)
fork(100)
over.set()
threads[0].join()
""")


def test_errors_about_leaked_tensors_and_walks_of_other_threads():
    run(FORKS + """
kept = []
tn.compile(lambda x: kept.append(x + 1) or x)(tn.ones(2))
again_and_again(lambda: kept[0].tolist())
gradient = tn.grad(lambda x: tn.sin(x).sum())
for _ in range(2000):
    gradient(tn.ones(2))
over.set()
threads[0].join()
""")
