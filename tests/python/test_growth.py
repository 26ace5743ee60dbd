"""Programs that meet new shapes all the time do not grow: tables are counted, not bytes."""

import pickle

import numpy as np
import pytest

import tenon as tn
from tenon import _core

PLANS = 4096  # that are kept, with the types they refer to
MORE = 1500
SLACK = 64


def grown(step, first=500):
    """How many more types and attributes there are after new shapes."""
    shapes = [(i // 324 + 1, i // 18 % 18 + 1, i % 18 + 1, 1, 1) for i in range(first + MORE)]
    for shape in shapes[:first]:
        step(shape)
    before = _core._interned()
    for shape in shapes[first:]:
        step(shape)
    return max(now - then for now, then in zip(_core._interned(), before))


PROGRAMS = {
    "recorded": lambda shape: tn.exp(tn.ones(shape)) + 1,
    "computed": lambda shape: tn.eval(tn.ones(shape) * 2, tn.ones(shape).reshape((-1,))),
    "composite": lambda shape: tn.eval(tn.softmax(tn.ones(shape), axis=0)),
    "derivative": lambda shape: tn.eval(tn.grad(lambda x: (x * x).sum())(tn.ones(shape))),
    "batched": lambda shape: tn.eval(tn.vmap(lambda x: x + 1)(tn.ones(shape))),
    "indexed": lambda shape: tn.eval(tn.ones(shape)[0, shape[1] // 2 :].reshape((1, -1))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_immediate_evaluation(name):
    assert grown(PROGRAMS[name], first=PLANS) < PLANS / 4 * 3  # the oldest quarter goes at once


def scanned(x):
    return tn.scan(lambda c, v: (c + v, c * v), tn.zeros(x.shape[1:]), x)


def looped(x):
    return tn.while_loop(lambda c: c.sum() < 9, lambda c: c * 2, x)


def branched(x):
    return tn.cond(x.sum() > 0, lambda a: a * 2, lambda a: a - 1, x)


@tn.custom_function
def tripled(x):
    return x * 3


RECORDED = {
    "ops": lambda x: tn.exp(x).sum(axis=1, keepdims=True),
    "scan": scanned,
    "while_loop": looped,
    "cond": branched,
    "gradient of scan": tn.grad(lambda x: scanned(x)[1].sum()),
    "gradient of cond": tn.grad(lambda x: branched(x).sum()),
    "gradient of checkpoint": tn.grad(lambda x: tn.checkpoint(lambda a: tn.exp(a))(x).sum()),
    "gradient of custom_function": tn.grad(lambda x: tripled(x).sum()),
    "batched cond": lambda x: tn.vmap(branched)(x),
}


@pytest.mark.parametrize("name", RECORDED)
def test_what_is_only_recorded_leaves_nothing(name):
    # Tables of the thread keep some, which ones depends on hashes.
    assert grown(lambda shape: RECORDED[name](tn.ones(shape)), first=PLANS) < MORE / 4


def test_batches_of_one_function_leave_nothing():
    batched = tn.vmap(lambda x: tn.scan(lambda c, v: (c + v, c), x, tn.ones(3)))
    sizes = iter(range(1, 10_000))  # the graphs of some of the last are kept
    assert grown(lambda _: batched(tn.ones(next(sizes))), first=PLANS) < MORE / 4


def given(shape):
    """Data from outside, which nothing computed."""
    return tn.array(np.ones(shape, np.float32))


def test_compiled_functions():
    compiled = tn.compile(lambda x: tn.softmax(x.reshape((x.shape[0], -1)) * 2))
    assert grown(lambda shape: tn.eval(compiled(given(shape)))) < SLACK


def test_executables():
    size = (1, 4, 100)
    executable = tn.compile(
        lambda x: tn.exp(x) * 2, args=[tn.InputInfo((size, size, size, 1, 1), tn.float32)]
    )
    assert grown(lambda shape: tn.eval(executable(given(shape)))) < SLACK


@pytest.mark.parametrize("protocol", [2, 5])
def test_pickles(protocol):
    sizes = iter(range(protocol * 10_000, 1_000_000))
    step = lambda _: pickle.loads(pickle.dumps(given(next(sizes)), protocol))
    assert grown(step) < SLACK


def test_shapes_that_are_held_stay():
    held = [tn.zeros((1, 90_000 + i)) for i in range(5000)]
    before = _core._interned()[0]
    grown(PROGRAMS["computed"], first=10)
    assert [x.shape for x in held] == [(1, 90_000 + i) for i in range(5000)]
    del held
    assert _core._interned()[0] < before
