"""Sizes and counts that no machine has: refused before loops over them."""

import numpy as np
import pytest

import tenon as tn

X = tn.ones((3, 4))
IMAGE = tn.ones((1, 4, 4, 2))
HUGE = [2**45, 2**62, 2**63 - 1]
MANY = {
    "array_split": lambda n: tn.array_split(X, n),
    "unstack": lambda n: tn.unstack(tn.broadcast_to(tn.ones(1), (n,))),
    "split": lambda n: tn.split(tn.broadcast_to(tn.ones(1), (n,)), n),
    "diff": lambda n: tn.diff(tn.broadcast_to(tn.ones(1), (n,)), n=n - 1),
}
LARGE = {
    "interpolate": lambda n: tn.interpolate(IMAGE, size=[5, n]),
    "interpolate first": lambda n: tn.interpolate(IMAGE, size=[n, 5]),
    "interpolate linear": lambda n: tn.interpolate(IMAGE, size=[5, n], mode="linear"),
    "as_strided": lambda n: tn.as_strided(X, (n,), (1,)),
    "as_strided back": lambda n: tn.as_strided(X, (3,), (-n,)),
    "tile": lambda n: tn.tile(X, (n, n)).numpy(),
    "repeat": lambda n: tn.repeat(X, n).numpy(),
    "pad": lambda n: tn.pad(X, [(n, 0), (0, 0)]).numpy(),
    "pad edge": lambda n: tn.pad(X, [(n, 0), (0, 0)], mode="edge").numpy(),
    "random keys": lambda n: tn.random.split(tn.random.key(0), n).numpy(),
    "eye": lambda n: tn.eye(n).numpy(),
    "arange": lambda n: tn.arange(n).numpy(),
    "linspace": lambda n: tn.linspace(0, 1, n).numpy(),
    "diag": lambda n: tn.diag(tn.ones(3), n).numpy(),
}


REPEATED = {
    "gradient": lambda n: tn.grad(lambda x: tn.sum(x.broadcast_to((n,))))(tn.array(2.0)),
    "sum": lambda n: tn.sum(tn.ones((n,))),
    "sum of rows": lambda n: tn.sum(tn.broadcast_to(tn.ones((2, 1)), (2, n)), axis=1),
    "prod": lambda n: tn.prod(tn.ones((n,), dtype=tn.int32)),
    "mean": lambda n: tn.mean(tn.ones((n,))),
    "max": lambda n: tn.max(tn.exp(tn.ones((n,)))),
    "any": lambda n: tn.any(tn.zeros((n,))),
    "dot": lambda n: tn.matmul(tn.ones((n,)), tn.ones((n,))),
    "compiled": lambda n: tn.compile(lambda x: tn.sum(tn.broadcast_to(x, (n,))))(tn.ones(1)),
    "product": lambda n: tn.compile(
        lambda x: tn.broadcast_to(x, (3, n)) @ tn.broadcast_to(x, (n, 4)))(tn.ones(1)),
}


@pytest.mark.parametrize("n", [2**40, *HUGE[:1]])
@pytest.mark.parametrize("name", REPEATED)
def test_reductions_of_huge_views_are_refused(name, n):
    with pytest.raises(ValueError, match="[0-9]+ equal elements, the maximum is 4294967296"):
        tn.eval(REPEATED[name](n))


def test_reductions_of_large_views_compute():
    def total(x):
        return tn.sum(tn.broadcast_to(x, (2**31,)))  # a view that is held would be stored

    x = tn.array([3], dtype=tn.int64)
    assert total(x).item() == tn.compile(total)(x).item() == 3 * 2**31


def test_loops_over_more_points_than_any_machine_can_visit_are_refused():
    x, y = tn.ones((2**20, 1)), tn.ones((1, 2**20))
    with pytest.raises(ValueError, match="computes [0-9]+ elements, the maximum"):
        tn.eval(tn.sum(tn.exp(x + y)[..., None] * tn.ones((2**15,))))


@pytest.mark.parametrize("n", [2**21, 2**31, *HUGE])
@pytest.mark.parametrize("name", MANY)
def test_counts_are_refused_before_loops_over_them(name, n):
    with pytest.raises(tn.Error):
        MANY[name](n)


@pytest.mark.parametrize("n", HUGE)
@pytest.mark.parametrize("name", LARGE)
def test_sizes_are_refused_before_loops_over_them(name, n):
    with pytest.raises(tn.Error):
        LARGE[name](n)


def test_differences_beyond_the_end_are_empty():
    assert tn.diff(X, n=2**31).shape == (3, 0)
    assert tn.diff(X, n=4).shape == (3, 0) == np.diff(X.numpy(), n=4).shape
    assert tn.diff(X > 0, n=2**62, axis=0).shape == (0, 4)
    assert tn.diff(X > 0, n=2**62, axis=0).dtype == tn.bool
    with pytest.raises(ValueError, match="n must be at most 10000: 20000"):
        tn.diff(tn.ones(20_001), n=20_000)


def test_a_size_of_minus_one_is_an_error():
    for call in (lambda: tn.as_strided(X, (-1,), (1,)), lambda: tn.as_strided(X, (2, -1)),
                 lambda: tn.as_strided(X, (2,), (-1,))):
        with pytest.raises(ValueError, match="as_strided: "):
            call()
    assert tn.as_strided(X, (2,), (-1,), 1).tolist() == [1.0, 1.0]


def test_long_products_and_sums_of_sizes_are_refused():
    def powers(x):
        size = x.shape[0]
        for _ in range(100_000):
            size = size * x.shape[0]
        return x

    def sums(x, y):
        size = x.shape[0]
        for _ in range(100_000):
            size = size * x.shape[0] + y.shape[0] + 1
        return x

    x = y = tn.InputInfo(((1, 2, 9),), tn.float32)
    with pytest.raises(ValueError, match="size: a product of 257 factors|does not fit in 64"):
        tn.compile(powers, args=[x])
    with pytest.raises(ValueError, match="size: "):
        tn.compile(sums, args=[x, y])
