"""Transforms of functions whose ops are recorded by another thread."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tenon as tn


@pytest.fixture
def elsewhere():
    """Runs a function on one other thread, which has recorded ops before."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: tn.asarray([1.0]) + 1).result()
        yield lambda f: pool.submit(f).result()


def test_ops_of_another_thread_are_differentiated(elsewhere):
    got = tn.grad(lambda a: elsewhere(lambda: tn.sin(a) * a))(1.0)
    assert got.item() == pytest.approx(np.cos(1) + np.sin(1), rel=1e-6)


def test_a_gradient_taken_on_another_thread_is_differentiated(elsewhere):
    got = tn.grad(lambda a: elsewhere(lambda: tn.grad(lambda b: a * b * b)(a)))(3.0)
    assert got.item() == 12.0


def test_ops_of_another_thread_are_mapped(elsewhere):
    got = tn.vmap(lambda a: elsewhere(lambda: tn.sin(a) * a))(tn.asarray([1.0, 2.0]))
    np.testing.assert_allclose(got.numpy(), np.sin([1, 2]) * [1, 2], rtol=1e-6)


def test_another_thread_does_not_keep_the_tape(elsewhere):
    """What is computed outside of derivatives, while one runs elsewhere, releases its operands."""
    x = tn.ones((1000,))

    def train():
        w = x
        for _ in range(20):
            w = w - 0.1 * tn.grad(lambda v: tn.sum(v * v))(w)
            tn.eval(w)
        return w

    def loss(a):
        return tn.sum(a) * elsewhere(train)[0]

    tn.eval(x)
    before = tn.memory.active_memory()
    kept = tn.grad(loss)(x)
    tn.eval(kept)
    assert tn.memory.active_memory() - before <= 2 * x.nbytes
