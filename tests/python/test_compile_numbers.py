"""Numbers among the arguments of compiled functions: Python's arithmetic, and when they are
given."""

import math

import pytest

import tenon as tn
from op_harness import bits_of
from test_compile import X, counted, same


def train(w, g, lr, step, half):
    scale = lr * (1 - 0.9**step) / (1 + abs(-half))
    return w - scale * g, (w * half).astype(tn.float16) * lr, step + 1, lr * 2


def test_numbers_that_vary_are_given_at_run_time():
    f, runs = counted(train)
    g = tn.compile(f)
    values = [(0.1, 1.0, 2), (0.2, 2.0, 2), (1e-3, 3.0, 5), (math.pi, 4.0, 7), (0.0, 5.0, -1)]
    for lr, step, half in values:
        got, want = g(X, X * 3, lr, step, half), train(X, X * 3, lr, step, half)
        assert [bits_of(a) for a in got[:2]] == [bits_of(b) for b in want[:2]]
        assert got[2:] == want[2:] and [type(v) for v in got[2:]] == [float, float]
    assert len(runs) == 3  # constants, then two of them given, then all


@pytest.mark.parametrize("dtype", [tn.float16, tn.bfloat16, tn.float32, tn.float64, tn.int64])
def test_numbers_do_not_widen(dtype):
    x = X.astype(dtype)
    f = tn.compile(lambda x, a: (x * a, x + 1, tn.where(a > 1, x, a), tn.exp(a), tn.array(a), -a))
    plain = f.__wrapped__
    for a in (0.1, 0.7, 1e-4, 3.3333333333) if dtype != tn.int64 else (3, 4, 5):
        got, want = f(x, a), plain(x, a)
        assert [bits_of(v) for v in got[:5]] == [bits_of(v) for v in want[:5]]
        assert got[5] == want[5]


def places_of_floats(x, a):
    pairs = tn.stack([x, x * a]), tn.concat([x, x + a])
    loop = tn.scan(lambda c, row: (c + tn.sum(row) * a, c), a, x)
    mapped = tn.vmap(lambda row: row * a)(x)
    choice = tn.cond(tn.sum(x) > a, lambda v: v * a, lambda v: v - a, x)
    derived = tn.grad(lambda b: tn.sum(x * b * a))(a)
    updated = x.at[0].set(a), tn.where(x > a, x, a), tn.clip(x, -a, a), tn.maximum(a, x)
    made = tn.full((2,), a), tn.linspace(0, a, 3), tn.array(a), tn.zeros(3) + a
    return pairs, loop, mapped, choice, derived, updated, made, x**a, a**2.0, a * 0.1 - 1 / a, -a


def places_of_integers(x, n):
    whole = tn.arange(3) + n, tn.arange(3) // n, tn.arange(3) % n, tn.arange(3) > n
    loop = tn.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2), (0, x))
    return whole, loop, x / n, x // n, x**n, n // 2, n % 3, n + 1, n * 0.5, n / 2, -n, abs(n)


@pytest.mark.parametrize(
    "f, values", [(places_of_floats, (0.5, 0.3, 2.7, 0.1)), (places_of_integers, (3, 5, 8, 1))]
)
def test_numbers_wherever_they_may_stand(f, values):
    compiled = tn.compile(f)
    for value in values:
        got, want = tn.tree.flatten(compiled(X, value)), tn.tree.flatten(f(X, value))
        assert got[1] == want[1]
        for place, a, b in zip(want[1].paths(), got[0], want[0]):
            assert type(a) is type(b), place
            assert bits_of(a) == bits_of(b) if isinstance(a, tn.Tensor) else a == b, place


def test_numbers_that_are_asked_for_stay_constants():
    f, runs = counted(lambda x, n: [x * i for i in range(n)] if n > 1 else x)
    g = tn.compile(f)
    for n in (2, 3, 1, 2, 3, 1):
        tn.eval(g(X, n))
    assert len(g(X, 3)) == 3 and bits_of(g(X, 1)) == bits_of(X)
    assert len(runs) == 4  # one of them tried with the number given
    small = tn.arange(3, dtype=tn.uint8)
    h = tn.compile(lambda x, n: x + n)
    assert h(small, 1).tolist() == [1, 2, 3] and h(small, 2).tolist() == [2, 3, 4]
    with pytest.raises(ValueError, match="the number 300 does not fit u8"):
        h(small, 300)
    for n in (2**53 + 1, 2**60 + 1, -(2**63), 2**63 + 1):
        same(lambda x, n: x * n, X, n)


def test_numbers_given_by_a_surrounding_function():
    inner = tn.compile(lambda x, a: (x * a, a + 1))
    outer = tn.compile(lambda x, a: inner(x.astype(tn.float16), a * 2))
    for a in (0.1, 0.2, 0.3):
        y, b = outer(X, a)
        assert bits_of(y) == bits_of(X.astype(tn.float16) * (a * 2)) and b == a * 2 + 1


def test_indices_are_checked_after_they_have_varied():
    f = tn.compile(lambda x, i: x[i])
    x = tn.arange(3)
    assert [int(f(x, i)) for i in (0, 1, 2, -1)] == [0, 1, 2, 2]
    with pytest.raises(IndexError, match="out of bounds"):
        f(x, 7)
