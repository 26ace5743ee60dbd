"""Derivatives at the points where reductions, running ops, sorts and losses are not smooth."""

import numpy as np
import pytest

import flat
import tenon as tn

INF, NAN = np.inf, np.nan


def gradient(f, *operands, ct=None):
    """Of sum(f(...) * ct) in each operand, as float64 NumPy arrays."""
    operands = [tn.asarray(np.asarray(x, np.float64)) for x in operands]
    out = f(*operands)
    ct = tn.ones_like(out) if ct is None else tn.asarray(np.asarray(ct, np.float64))
    _, back = flat.vjp(lambda x: [f(*x)], operands, [ct])
    return [g.numpy() for g in back]


def hessian(f, x):
    """Of a scalar function of a vector."""

    def first(p):
        return flat.vjp(lambda q: [f(q[0])], p, [tn.ones_like(f(p[0]))])[1]

    x = tn.asarray(np.asarray(x, np.float64))
    rows = [flat.jvp(first, [x], [tn.asarray(e)])[1][0].numpy() for e in np.eye(x.size)]
    return np.stack(rows)


def same(got, want):
    np.testing.assert_array_equal(got, np.asarray(want, np.float64))


@pytest.mark.parametrize("f", [tn.max, lambda x: -tn.min(-x)])
def test_equal_extremes_share_the_gradient_evenly(f):
    same(gradient(f, [1, 3, 3, 2])[0], [0, 0.5, 0.5, 0])
    same(gradient(f, [2, 2, 2, 2])[0], [0.25] * 4)
    same(gradient(lambda x: tn.max(x, axis=1), [[1, 1], [0, 5]], ct=[2, 3])[0], [[1, 1], [0, 3]])


def test_the_extreme_of_infinities_has_a_gradient():
    same(gradient(tn.max, [-INF, -INF])[0], [0.5, 0.5])
    same(gradient(tn.max, [INF, 1])[0], [1, 0])


def test_a_product_with_zeros_is_not_divided():
    same(gradient(tn.prod, [2, 3, 5])[0], [15, 10, 6])
    same(gradient(tn.prod, [2, 0, 5])[0], [0, 10, 0])
    same(gradient(tn.prod, [0, 0, 5])[0], [0, 0, 0])
    same(gradient(tn.prod, [1e200, 1e200, 0])[0][2], INF)
    same(gradient(lambda x: tn.prod(x, axis=0), [[0, 1], [3, 4]])[0], [[3, 4], [0, 1]])


def test_second_derivatives_of_a_product_with_zeros():
    same(hessian(tn.prod, [0, 0, 5]), [[0, 5, 0], [5, 0, 0], [0, 0, 0]])
    same(hessian(tn.prod, [2, 0, 5]), [[0, 5, 0], [5, 0, 2], [0, 2, 0]])


def test_the_product_of_nothing_and_of_one():
    same(gradient(lambda x: tn.prod(x), np.zeros((0,)))[0], np.zeros((0,)))
    same(gradient(tn.prod, [0])[0], [1])


def test_a_complex_product_with_a_zero():
    x = tn.asarray(np.array([0, 2 + 1j, 3]))
    _, [g] = flat.vjp(lambda p: [tn.prod(p[0])], [x], [tn.asarray(np.complex128(1))])
    np.testing.assert_array_equal(g.numpy(), [6 + 3j, 0, 0])


def test_running_sums_run_backwards():
    same(gradient(tn.cumulative_sum, [1, 2, 3], ct=[1, 10, 100])[0], [111, 110, 100])
    f = lambda x: tn.cumulative(x, axis=0, exclusive=True)
    same(gradient(f, [1, 2, 3], ct=[1, 10, 100])[0], [110, 100, 0])
    f = lambda x: tn.cumulative(x, axis=0, reverse=True, exclusive=True)
    same(gradient(f, [1, 2, 3], ct=[1, 10, 100])[0], [0, 1, 11])


def test_running_products_with_zeros():
    same(gradient(tn.cumulative_prod, [2, 0, 5], ct=[1, 1, 1])[0], [1, 12, 0])
    same(gradient(tn.cumulative_prod, [0, 0, 5], ct=[1, 1, 1])[0], [1, 0, 0])
    f = lambda x: tn.cumulative(x, axis=0, mode="prod", reverse=True, exclusive=True)
    same(gradient(f, [2, 0, 5], ct=[1, 1, 1])[0], [0, 5, 1])


def test_second_derivatives_of_running_products_with_zeros():
    same(
        hessian(lambda x: tn.sum(tn.cumulative_prod(x)), [0, 0, 5]),
        [[0, 6, 0], [6, 0, 0], [0, 0, 0]],
    )


def test_running_extremes_go_to_the_last_of_equal_elements():
    same(gradient(tn.cummax, [1, 3, 2, 3], ct=[1, 10, 100, 1000])[0], [1, 110, 0, 1000])
    same(gradient(tn.cummin, [1, 3, 1, 0], ct=[1, 10, 100, 1000])[0], [11, 0, 100, 1000])
    f = lambda x: tn.cumulative(x, axis=0, mode="max", exclusive=True)
    same(gradient(f, [1, 3, 2], ct=[1, 10, 100])[0], [10, 100, 0])
    f = lambda x: tn.cumulative(x, axis=0, mode="min", reverse=True)
    same(gradient(f, [1, 3, 2], ct=[1, 10, 100])[0], [1, 0, 110])


def test_sorting_moves_the_gradient_with_the_elements():
    same(gradient(tn.sort, [3, 1, 2], ct=[10, 20, 30])[0], [30, 10, 20])
    same(gradient(tn.sort, [1, 1, 0], ct=[10, 20, 30])[0], [20, 30, 10])
    top = lambda x: tn.top_k(x, 2)[0]
    same(gradient(top, [1, 5, 5, 2], ct=[10, 20])[0], [0, 10, 20, 0])
    same(gradient(tn.median, [3, 1, 2, 7])[0], [0.5, 0, 0.5, 0])
    half = lambda x: tn.quantile(x, tn.asarray(0.25))
    np.testing.assert_allclose(gradient(half, [0, 1, 2])[0], [0.5, 0.5, 0])


@pytest.mark.parametrize("f", [tn.softmax, tn.log_softmax, tn.logsumexp])
def test_lines_of_minus_infinity_have_gradient_zero(f):
    same(gradient(f, [-INF, -INF, -INF])[0], [0, 0, 0])


def test_masked_elements_have_no_share():
    same(gradient(tn.logsumexp, [-INF, 0, 0])[0], [0, 0.5, 0.5])
    same(gradient(tn.softmax, [-INF, 0, 0], ct=[7, 1, 0])[0], [0, 0.25, -0.25])
    same(gradient(tn.log_softmax, [-INF, 0, 0], ct=[0, 1, 0])[0], [0, 0.5, -0.5])


def test_logsumexp_of_large_numbers():
    same(gradient(tn.logsumexp, [1000, 1000])[0], [0.5, 0.5])
    np.testing.assert_allclose(
        gradient(tn.logcumsumexp, [-INF, 1000, 1000], ct=[1, 1, 1])[0], [0, 1.5, 0.5]
    )


def test_cross_entropy_far_from_the_target():
    for classes in (tn.asarray([1]), tn.asarray([[0.0, 1.0]])):
        f = lambda x: tn.cross_entropy(x, classes)
        same(gradient(f, [[1000, 0]])[0], [[1, -1]])
        same(gradient(f, [[-1000, 0]])[0], [[0, 0]])


def test_cross_entropy_of_a_masked_class_and_of_none():
    f = lambda x: tn.cross_entropy(x, tn.asarray([1]))
    same(gradient(f, [[-INF, 0, 0]])[0], [[0, -0.5, 0.5]])
    slopes = tn.compile(tn.grad(lambda x, t: tn.cross_entropy(x, t, reduction="sum")))
    same(slopes(tn.zeros((2, 2)), tn.asarray([5, 0])), [[0, 0], [-0.5, 0.5]])  # not checked there


def test_a_query_without_keys_has_gradient_zero():
    q, k, v = np.ones((1, 1, 2, 2)), np.ones((1, 1, 3, 2)), np.arange(6.0).reshape(1, 1, 3, 2)
    mask = tn.asarray(np.array([[False] * 3, [True, False, False]]))
    f = lambda q, k, v: tn.scaled_dot_product_attention(q, k, v, mask)
    dq, dk, dv = gradient(f, q, k, v)
    same(dq, np.zeros_like(q)), same(dk, np.zeros_like(k))
    same(dv, [[[[1, 1], [0, 0], [0, 0]]]])


LAYERS = {
    "softmax": (tn.softmax, [(64, 128)]),
    "log_softmax": (tn.log_softmax, [(64, 128)]),
    "logsumexp": (lambda x: tn.logsumexp(x, axis=-1), [(64, 128)]),
    "layer_norm": (tn.layer_norm, [(64, 128), (128,), (128,)]),
    "rms_norm": (tn.rms_norm, [(64, 128), (128,)]),
    "group_norm": (lambda *x: tn.group_norm(*x, num_groups=4), [(4, 16, 32), (32,), (32,)]),
    "batch_norm": (lambda x, m, v: tn.batch_norm(x, m, v * v + 1), [(64, 32), (32,), (32,)]),
    "attention": (tn.scaled_dot_product_attention, [(2, 4, 32, 16)] * 3),
}


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_layers_in_float32_agree_with_float64(name):
    f, shapes = LAYERS[name]
    rng = np.random.default_rng(0)
    operands = [rng.normal(size=s).astype(np.float32) for s in shapes]
    out = f(*(tn.asarray(x) for x in operands))
    ct = rng.normal(size=out.shape).astype(np.float32)

    def back(dtype):
        primals = [tn.asarray(x).astype(dtype) for x in operands]
        cts = [tn.asarray(ct).astype(dtype)]
        return [g.numpy() for g in flat.vjp(lambda x: [f(*x)], primals, cts)[1]]

    for narrow, wide in zip(back(tn.float32), back(tn.float64)):
        scale = np.abs(wide).max()
        assert np.abs(narrow - wide).max() <= 4e-6 * scale


def test_strided_stores_come_after_all_loads_of_a_step():
    def halves(x):
        turned = x.reshape(4, 8).T.reshape(4, 8)
        return turned[:2].sum(axis=0) + turned[2:].sum(axis=0)

    def f(x):  # one result may lie where an operand of the other does
        return halves(x), halves(x * 0.5)

    x = tn.array(np.random.default_rng(0).normal(size=32).astype(np.float32))
    want = [y.numpy() for y in f(x)]
    for level in (1, 2, 3):
        made = tn.compile(f, optimization_level=level)(x)
        for got, expected in zip(made, want, strict=True):
            np.testing.assert_array_equal(got.numpy(), expected)
