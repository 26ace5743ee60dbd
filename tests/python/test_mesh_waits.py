"""Workers that do not meet in a collective: an error, and never a wait without an end."""

import subprocess
import sys

import pytest

import tenon as tn
from processes import environment

dist = tn.distributed


def is_worker(number, axis="data"):
    return dist.axis_index(axis) == number


def first_sums(x):
    return tn.cond(is_worker(0), lambda x: dist.all_sum(x, axis="data"), lambda x: x * 2, x)


def all_but_the_last_sum(x):
    return tn.cond(is_worker(3), lambda x: x, lambda x: dist.all_sum(x, axis="data"), x)


def sums_by_number(x):
    def body(carry):
        i, x = carry
        return i + 1, dist.all_sum(x, axis="data")

    return tn.while_loop(lambda c: c[0] < dist.axis_index("data"), body,
                         (tn.array(0, dtype=tn.int32), x))[1]


def sum_or_maximum(x):
    return tn.cond(is_worker(0), lambda x: dist.all_sum(x, axis="data"),
                   lambda x: dist.all_max(x, axis="data"), x)


def sums_of_parts(x):
    return tn.cond(is_worker(0), lambda x: dist.all_sum(x, axis="data").sum(),
                   lambda x: dist.all_sum(x[:1], axis="data").sum(), x)[None]


def crossed(x):
    """Each worker waits along another axis than the others."""
    return tn.cond(dist.axis_index("data") == dist.axis_index("model"),
                   lambda x: dist.all_sum(x, axis="data"),
                   lambda x: dist.all_sum(x, axis="model"), x)


CASES = {
    "one branch": (first_sums, {"data": 2}, [
        "workers wait for each other, and none can go on",
        "worker 0 waits in all_sum along 'data' of float32[2] (test_mesh_waits.py:",
        "for worker 1", "worker 1 has ended without it"]),
    "one is missing": (all_but_the_last_sum, {"data": 4}, [
        "workers 0, 1, 2 wait in all_sum along 'data' of float32[1]", "for worker 3"]),
    "loops of different lengths": (sums_by_number, {"data": 4}, [
        "wait in all_sum along 'data'", "has ended without it"]),
    "different collectives": (sum_or_maximum, {"data": 2}, [
        "workers disagree: worker 0 calls all_sum along 'data' of float32[2]",
        "worker 1 calls all_max along 'data' of float32[2]"]),
    "different shapes": (sums_of_parts, {"data": 2}, [
        "workers disagree: worker 0 calls all_sum along 'data' of float32[2]",
        "worker 1 calls all_sum along 'data' of float32[1]"]),
    "two axes": (crossed, {"data": 2, "model": 2}, [
        "all_sum along 'data'", "all_sum along 'model'", "for worker 2", "for worker 0"]),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_workers_that_do_not_meet(name, compiled):
    f, axes, texts = CASES[name]
    mesh = tn.Mesh(**axes)
    g = tn.shard_map(f, mesh, in_specs=((tuple(axes),),), out_specs=(tuple(axes),))
    run = tn.compile(g) if compiled else g
    with pytest.raises(tn.WorkerFailed) as error:
        tn.eval(run(tn.arange(4.0)))
    for text in texts:
        assert text in str(error.value)
    assert "hint: all workers along an axis must make the same collectives" in str(error.value)
    # The workers are there for the next run.
    total = tn.shard_map(lambda x: dist.all_sum(x.sum(), axis=tuple(axes)), mesh,
                         in_specs=((tuple(axes),),), out_specs=None)
    assert total(tn.arange(4.0)).item() == 6


def test_the_report_before_the_run():
    """What the compiler knows: predicates that may differ around collectives."""
    mesh = tn.Mesh(data=2)
    x = tn.arange(4.0)
    same = tn.compile(tn.shard_map(
        lambda x: tn.cond(dist.all_sum(x.sum(), axis="data") > 0,
                          lambda x: dist.all_sum(x, axis="data"), lambda x: x, x),
        mesh, in_specs=("data",), out_specs="data"))
    assert same(x).tolist() == [2, 4, 2, 4]
    assert "sure to meet" not in same.show("sharding")
    text = "not cond sure to meet: its predicate may differ by worker along 'data'"
    other = tn.compile(tn.shard_map(
        lambda x: tn.cond(x.sum() >= 0, lambda x: dist.all_sum(x, axis="data"), lambda x: x, x),
        mesh, in_specs=("data",), out_specs="data"))
    assert other(x).tolist() == [2, 4, 2, 4]  # it is equal here
    assert text in other.show("sharding")


ENDLESS = """
import os, signal, sys, threading, time
import tenon as tn
dist = tn.distributed

def endless(x):
    return tn.while_loop(lambda c: c[0] >= 0, lambda c: (c[0] * 0,), (x,))[0]

def f(x):
    return tn.cond(dist.axis_index("data") == WORKER, endless, OTHER, x)

def interrupt():
    while True:
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

if INTERRUPTED:
    threading.Thread(target=interrupt, daemon=True).start()
try:
    g = tn.shard_map(f, tn.Mesh(data=2), in_specs=("data",), out_specs="data")
    tn.eval((CHANGE)(lambda x: g(x + 1))(tn.arange(2.0)))
except KeyboardInterrupt:
    print("interrupted", flush=True)
except tn.WorkerFailed as error:
    print(error, flush=True)
os._exit(0)
"""
def run_endless(tmp_path, interrupted, worker, other, change="lambda f: f", **variables):
    text = ENDLESS.replace("INTERRUPTED", str(interrupted)).replace("WORKER", str(worker))
    program = tmp_path / "program.py"
    program.write_text(text.replace("OTHER", other).replace("CHANGE", change))
    made = subprocess.run([sys.executable, str(program)], env={**environment(), **variables},
                          capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stderr
    return made.stdout


OTHERS = ["lambda x: dist.all_sum(x, axis='data')", "lambda x: x"]


@pytest.mark.parametrize("worker", [0, 1])
@pytest.mark.parametrize("other", OTHERS)
def test_an_interrupt_ends_an_endless_wait(tmp_path, worker, other):
    """The worker loops; the other one waits for it in a collective, or has ended."""
    change = "tn.compile" if worker else "lambda f: f"
    assert run_endless(tmp_path, True, worker, other, change) == "interrupted\n"


def test_the_timeout_counts_for_threads(tmp_path):
    text = run_endless(tmp_path, False, 1, OTHERS[0], TENON_COLLECTIVE_TIMEOUT="1")
    assert text.startswith("no progress for 1 s: worker 0 waits in all_sum along 'data' of "
                           "float32[1] (program.py:")
    assert "for worker 1; worker 1 computes" in text
