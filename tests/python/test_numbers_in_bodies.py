"""Numbers in functions that become graphs: they change no bit, and make no new graph."""

import numpy as np
import pytest

import tenon as tn
from interned_graphs import graphs_added

NUMBERS = [-7, -1, 0, 1, 2, 3, 100, 16777217, 0.3, 0.5, 2.5]


def in_scan(f):
    return lambda x: tn.scan(lambda c, _: (f(c), None), x, length=1)[0]


def in_cond(f):
    return lambda x: tn.cond(tn.array(True), f, f, x)


def same(a, b):
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("inside", [in_scan, in_cond, tn.checkpoint])
def test_other_numbers_make_no_new_graph(inside):
    def step(i):
        loss = inside(lambda x: x * i + x**i + tn.astype(tn.floor(x), tn.int32) // i)
        return tn.grad(lambda x: tn.sum(loss(x)))(tn.array([1.0, 2.0]))

    assert graphs_added(step, 20) == 0


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_derivatives_have_the_same_bits(dtype, number):
    x = tn.astype(tn.linspace(0.1, 9, 101), getattr(tn, dtype))
    for f in (lambda x: x**number, lambda x: x * number, lambda x: number - x):
        _, pull = tn.vjp(f, [x])
        for inside in (in_scan, in_cond, tn.checkpoint):
            _, pull_inside = tn.vjp(inside(f), [x])
            same(pull_inside(x)[0], pull(x)[0])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "int64"])
def test_integers_are_the_same(dtype):
    x = tn.astype(tn.arange(5), getattr(tn, dtype))
    for f in (
        lambda x: x * 3,
        lambda x: x // 7,
        lambda x: x % 100,
        lambda x: x**5,
        lambda x: x << 3,
        lambda x: x < 10**12,
        lambda x: x > -4,
        lambda x: tn.clip(x, 3, 1000),
        lambda x: tn.where(x > 3, x, 77),
    ):
        same(in_cond(f)(x), f(x))
