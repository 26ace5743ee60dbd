"""JAX's names: loops, choices, scans, linear functions, shapes, rules, trees."""

from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import tenon as tn

X = tn.array([1.0, 2.0, 3.0])


def test_fori_loop_has_no_array_of_counters():
    tn.fori_loop(0, 10**12, lambda i, v: v + i, tn.array(0))  # not computed; it fits in memory
    for upper, kind in ((2.5, TypeError), (10**30, ValueError)):
        with pytest.raises(kind, match="fori_loop"):
            tn.fori_loop(0, upper, lambda i, v: v, 0)


def test_fori_loop():
    assert tn.fori_loop(2, 6, lambda i, v: v + i, tn.array(0)).item() == 14
    assert tn.fori_loop(3, 3, lambda i, v: v + i, tn.array(5)).item() == 5
    assert tn.fori_loop(0, tn.array(4), lambda i, v: v * 2, 1.0).item() == 16
    assert tn.grad(lambda a: tn.fori_loop(0, 3, lambda i, v: v * a, 1.0))(2.0).item() == 12
    pair = tn.compile(lambda n, x: tn.fori_loop(0, n, lambda i, v: {"a": v["a"] + x}, {"a": x}))
    assert pair(tn.array(2), X)["a"].tolist() == [3, 6, 9]


def test_map():
    made = tn.map(lambda p: {"sum": p["a"] + p["b"]}, {"a": X, "b": X * 10})
    assert made["sum"].tolist() == [11, 22, 33]
    assert tn.grad(lambda x: tn.map(tn.square, x).sum())(X).tolist() == [2, 4, 6]


def test_switch():
    branches = [lambda x: x, lambda x: x * 2, lambda x: x * 3]
    for index, factor in [(-4, 1), (0, 1), (1, 2), (2, 3), (7, 3)]:
        assert tn.switch(index, branches, X).tolist() == (X * factor).tolist()
    assert tn.compile(lambda i: tn.switch(i, branches, X))(tn.array(1)).tolist() == [2, 4, 6]
    each = tn.vmap(lambda i: tn.switch(i, branches, X))(tn.array([0, 2]))
    assert each.tolist() == [[1, 2, 3], [3, 6, 9]]
    assert tn.grad(lambda x: tn.switch(2, branches, x))(2.0).item() == 3
    with pytest.raises(ValueError, match="switch: there are no branches"):
        tn.switch(0, [])
    with pytest.raises(TypeError, match="switch: index is one integer"):
        tn.switch(0.5, branches, X)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 7, 8, 9])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(length, reverse):
    x = np.random.default_rng(length).normal(size=(2, length, 2, 2))
    made = tn.associative_scan(lambda a, b: a @ b, tn.asarray(x.swapaxes(0, 1)), reverse=reverse)
    want = x.swapaxes(0, 1)[::-1 if reverse else 1].copy()
    for i in range(1, length):
        want[i] = want[i - 1] @ want[i]
    np.testing.assert_allclose(made.numpy(), want[::-1 if reverse else 1], 1e-12)


def test_associative_scan_of_trees_along_an_axis():
    given = {"m": tn.array([[3, 1, 4], [1, 5, 2]])}
    made = tn.associative_scan(lambda a, b: {"m": tn.maximum(a["m"], b["m"])}, given, axis=1)
    assert made["m"].tolist() == [[3, 3, 4], [1, 5, 5]]


def test_linearize():
    runs = []

    def f(x, p):
        runs.append(1)
        return {"y": tn.sin(x) * p["w"], "z": tn.sum(x)}

    args = (X, {"w": tn.array(2.0)})
    tangents = (tn.array([1.0, 0.0, 2.0]), {"w": tn.array(0.5)})
    value, along = tn.linearize(f, *args)
    want = tn.jvp(f, args, tangents)
    runs.clear()
    for _ in range(2):
        got = along(*tangents)
        for name in ("y", "z"):
            np.testing.assert_allclose(got[name].numpy(), want[1][name].numpy(), 1e-6)
            assert value[name].tolist() == want[0][name].tolist()
    assert not runs
    assert tn.linearize(lambda x: (x * x, "kept"), X, has_aux=True)[2] == "kept"
    batch = tn.vmap(along)(tn.eye(3), {"w": tn.zeros(3)})
    np.testing.assert_allclose(batch["y"].numpy(), np.diag(2 * np.cos(X.numpy())), 1e-6)


def test_eval_shape():
    struct = tn.ShapeDtypeStruct((4, 3), "bfloat16")
    made = tn.eval_shape(lambda x, n=1: {"y": x @ x.T, "n": (x > 0).sum()}, struct)
    assert made["y"] == tn.ShapeDtypeStruct((4, 4), tn.bfloat16) and made["y"].size == 16
    assert made["n"] == tn.ShapeDtypeStruct((), tn.int64)
    huge = tn.ShapeDtypeStruct((10**6, 10**6), "float32")
    assert tn.eval_shape(tn.exp, huge).shape == (10**6, 10**6)
    assert tn.eval_shape(lambda: tn.ones((2,))).shape == (2,)
    with pytest.raises(tn.Error):
        tn.eval_shape(lambda x: x if x.sum() > 0 else -x, X)


def test_custom_vjp():
    @tn.custom_vjp
    def product(x, y):
        return x * y

    with pytest.raises(ValueError, match="product has no rule; call defvjp first"):
        product(1.0, 2.0)

    def forward(x, y):
        return x * y, {"x": x, "y": y, "factor": 10, "name": "kept"}

    def backward(kept, ct):
        assert kept["name"] == "kept"
        return ct * kept["y"] * kept["factor"], None

    product.defvjp(forward, backward)
    gradients = tn.grad(product, argnums=(0, 1))(2.0, 5.0)
    assert [g.item() for g in gradients] == [50, 0]
    assert product(tn.array(2.0), 5.0).item() == 10 and product.__name__ == "product"
    assert tn.compile(tn.grad(product))(tn.array(2.0), tn.array(5.0)).item() == 50
    assert tn.vmap(tn.grad(product), in_axes=(0, None))(X, tn.array(5.0)).tolist() == [50] * 3
    product.defvjp(forward, lambda kept, ct: ct)
    with pytest.raises(TypeError, match="a tuple of 2 cotangents"):
        tn.grad(product)(2.0, 5.0)


def test_custom_vjp_with_arguments_that_are_not_differentiated():
    power = tn.custom_vjp(lambda n, x: x**n, nondiff_argnums=(0,))
    power.defvjp(lambda n, x: (x**n, x), lambda n, x, ct: (ct * 100 * n,))
    assert tn.grad(lambda x: power(3, x))(2.0).item() == 300


def test_custom_vjp_whose_rule_calls_the_function():
    @tn.custom_vjp
    def scaled_sin(x, y):
        return tn.sin(x) * y

    def forward(x, y):
        return scaled_sin(x, y), (tn.cos(x), tn.sin(x), y)

    scaled_sin.defvjp(forward, lambda kept, ct: (kept[0] * ct * kept[2], kept[1] * ct))
    x, y = tn.array(2.0), tn.array(3.0)
    assert scaled_sin(x, y).item() == (tn.sin(x) * y).item()
    gradients = tn.grad(scaled_sin, argnums=(0, 1))(x, y)
    assert [g.item() for g in gradients] == [(tn.cos(x) * y).item(), tn.sin(x).item()]


def test_second_derivatives_of_custom_vjp_are_those_of_its_rule():
    @tn.custom_vjp
    def double_slope(x):
        return tn.exp(x)

    def forward(x):
        y = double_slope(x)
        return y, y

    double_slope.defvjp(forward, lambda y, ct: (2 * ct * y,))
    first = tn.grad(double_slope)
    second = tn.grad(first)
    assert [f(0.0).item() for f in (first, second, tn.grad(second))] == [2, 4, 8]
    assert tn.compile(second)(tn.array(0.0)).item() == 4
    assert tn.vmap(second)(tn.zeros(2)).tolist() == [4, 4]


def test_custom_jvp():
    @tn.custom_jvp
    def product(x, y):
        return x * y

    @product.defjvp
    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return product(x, y), dx * y * 10 + dy * x

    assert tn.jvp(product, [tn.array(2.0), tn.array(3.0)], [1.0, 1.0])[1].item() == 32
    assert [g.item() for g in tn.grad(product, (0, 1))(2.0, 3.0)] == [30, 2]
    product.defjvps(lambda t, result, x, y: t * result, None)
    assert [g.item() for g in tn.grad(product, (0, 1))(2.0, 3.0)] == [6, 0]


Point = namedtuple("Point", "a b")


@dataclass
class Pair:
    left: object
    right: object


def test_tree_map_with_path():
    given = {"w": [1, (2, None)], "p": Point(3, []), "d": Pair(4, {"k": 5})}
    paths = tn.tree.map_with_path(lambda path, x: path, given)
    found = []
    tn.tree.map_with_path(lambda path, x: found.append((path, x)), given)
    assert found == [
        (("w", 0), 1),
        (("w", 1, 0), 2),
        (("p", "a"), 3),
        (("d", "left"), 4),
        (("d", "right", "k"), 5),
    ]
    assert paths["w"][0] == ("w", 0) and paths["d"].right["k"] == ("d", "right", "k")
    trees = {"a": 1, "b": 2}, {"b": 3, "a": 4}
    both = tn.tree.map_with_path(lambda path, x, y: (path[0], x + y), *trees)
    assert both == {"a": ("a", 5), "b": ("b", 5)}


def test_tree_reduce():
    assert tn.tree.reduce(lambda a, b: a + b, {"w": [1, 2], "b": 3}) == 6
    assert tn.tree.reduce(lambda a, b: a + [b], (1, 2), []) == [1, 2]
    assert tn.tree.reduce(lambda a, b: a + b, [], 7) == 7
    with pytest.raises(ValueError, match="no leaves, and no initializer"):
        tn.tree.reduce(lambda a, b: a + b, [])


def test_segments():
    x, ids = tn.array([[1, 5], [3, 2], [4, 4]]), tn.array([0, 2, 0])
    assert tn.segment_max(x, ids, 3).tolist() == [[4, 5], [-(2**63)] * 2, [3, 2]]
    assert tn.segment_min(x * 1.0, ids, 3).tolist() == [[1, 4], [float("inf")] * 2, [3, 2]]
    assert tn.segment_prod(x, ids, 3).tolist() == [[4, 20], [1, 1], [3, 2]]
    for f in (tn.segment_max, tn.segment_min, tn.segment_prod):
        with pytest.raises(IndexError, match="out of bounds"):
            f(x, tn.array([0, 3, 0]), 3)
