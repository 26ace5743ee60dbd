"""Functions made again and again: what they compile is found, and memory stays as it was."""

import gc

import numpy as np
import pytest

import tenon as tn

X = tn.array(np.linspace(0, 1, 16, dtype=np.float32))
C = tn.array(np.linspace(1, 2, 16, dtype=np.float32))


def resident():
    """Kilobytes of memory of this process."""
    gc.collect()
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def check_flat(make, rounds):
    """`make` gives a function; later ones compile nothing, and memory does not grow with them."""
    expected = np.asarray(make()(X))
    for _ in range(rounds // 4):
        make()(X)
    before = resident()
    for _ in range(rounds):
        f = make()
        result = f(X)
        stats = f.stats()
        assert stats.kernel_compiles == stats.graph_compiles == 0
    np.testing.assert_array_equal(result, expected)
    assert resident() - before < 3000


@pytest.mark.resident
def test_ten_thousand_lambdas():
    check_flat(lambda: tn.compile(lambda x: tn.exp(-x) + 1), 10_000)


@pytest.mark.resident
def test_gradients_of_fresh_functions():
    def make():
        return tn.compile(lambda x: tn.grad(lambda y: (tn.sin(y) * y).sum())(x))

    check_flat(make, 1000)


@pytest.mark.resident
def test_fresh_functions_that_close_over_a_tensor():
    alive = tn.compile(lambda x: tn.exp(x) * C)  # who closes over it keeps the plan
    alive(X)
    check_flat(lambda: tn.compile(lambda x: tn.exp(x) * C), 2000)


def test_constants_go_with_the_functions_that_close_over_them():
    before = tn.memory.active_memory()
    for n in range(20):
        constant = tn.array(np.full(100_000, n, np.float32))
        tn.compile(lambda x: x + constant)(tn.zeros(100_000)).eval()  # noqa: F821  deleted later
        del constant
    gc.collect()
    assert tn.memory.active_memory() - before < 1_000_000


def test_functions_of_one_shape_after_the_other_stay_within_bounds():
    f = tn.compile(lambda x: tn.exp(-x) + 1)
    for n in range(1, 60):
        f(tn.ones(n))
    before = resident()
    for n in range(60, 1000):
        f(tn.ones(n))
    assert f.stats().kernel_compiles <= 4
    assert resident() - before < 5000
