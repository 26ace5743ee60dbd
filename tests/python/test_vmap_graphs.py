"""What vmap records: one op for the batch, not a loop, and nothing repeated without need."""

import re

import numpy as np
import pytest

import flat
import tenon as tn


def ones(*shape):
    return tn.asarray(np.ones(shape, np.float32))


def ops_of(text):
    return [m for m in re.findall(r"= (\w+)", text) if m != "input"]


def recorded(f, args, axes):
    return tn.graph_text(*flat.vmap(f, args, axes))


def matmul(x):
    return [tn.matmul(x[0], x[1])]


@pytest.mark.parametrize(
    "shapes, axes",
    [
        ([(5, 2, 3), (5, 3, 4)], (0, 0)),
        ([(5, 2, 3), (3, 4)], (0, None)),
        ([(2, 3), (5, 3, 4)], (None, 0)),
    ],
)
def test_matmul_is_one_dot(shapes, axes):
    text = recorded(matmul, [ones(*s) for s in shapes], axes)
    assert ops_of(text).count("dot") == 1, text
    assert set(ops_of(text)) <= {"dot", "permute_dims"}, text


def test_matmul_under_two_vmaps_is_one_dot():
    inner = lambda x: flat.vmap(matmul, x, (0, 0))
    text = recorded(inner, [ones(6, 5, 2, 3), ones(6, 5, 3, 4)], (0, 0))
    assert ops_of(text) == ["dot"], text


ALONG_AN_AXIS = [tn.softmax, tn.log_softmax, tn.logsumexp, tn.sort, tn.cumulative_sum]


@pytest.mark.parametrize("f", ALONG_AN_AXIS)
def test_ops_along_an_axis_stay_one_node(f):
    text = recorded(lambda x: [f(x[0], axis=-1)], [ones(5, 2, 3)], (0,))
    assert len(ops_of(text)) == 1, text


def test_an_operand_without_the_batch_is_not_repeated():
    i = tn.asarray(np.zeros((5, 2), np.int64))
    text = recorded(lambda x: [tn.gather(x[0], [x[1]], axes=[0])], [ones(1000, 3), i], (None, 0))
    assert ops_of(text) == ["gather"], text
    text = recorded(lambda x: [x[0] + x[1]], [ones(5, 3), ones(3)], (0, None))
    assert ops_of(text) == ["add"], text


def test_batched_starts_are_a_gather():
    x, at = ones(5, 8, 3), tn.asarray(np.arange(5))
    text = recorded(lambda v: [tn.dynamic_slice(v[0], [v[1], 0], (2, 3))], [x, at], (0, 0))
    assert ops_of(text).count("gather") == 1 and "scan" not in ops_of(text), text
