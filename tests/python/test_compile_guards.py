"""What traces took for granted: numbers mean what they mean to Python, sizes are asked about."""

from dataclasses import dataclass

import pytest

import tenon as tn

X = tn.ones(2)


def first(f, *numbers):
    return [f(X, n)[0].item() for n in numbers]


def test_a_number_given_at_run_time_passes_for_one():
    f = tn.compile(lambda x, n: x + 1 if isinstance(n, (int, float)) else x - 1)
    assert first(f, 1, 2, 3) == [2, 2, 2]
    assert first(f, 1.5, 2.5) == [2, 2]


def test_a_number_that_is_hashed_stays_constant():
    f = tn.compile(lambda x, n: x * {1: 5, 2: 6, 3: 7}[n])
    assert first(f, 1, 2, 3) == [5, 6, 7]


def test_integers_do_not_overflow():
    f = tn.compile(lambda x, n: x * (n * n))
    assert first(f, 1, 2, 2**40) == [1, 4, float(tn.array(2.0**80))]
    g = tn.compile(lambda x, n: x * (n * 3 + 1))
    assert first(g, 1, 2, 5, 6) == [4, 7, 16, 19]
    assert g.stats().traces == 2


def test_division_by_a_number_that_is_zero():
    f = tn.compile(lambda x, n: x * (1 / n))
    assert first(f, 1, 2, 4) == [1, 0.5, 0.25]
    with pytest.raises(ValueError, match="division by zero"):
        f(X, 0)
    assert first(f, 8) == [0.125]


def test_roots_of_negative_numbers_are_complex():
    f = tn.compile(lambda x, n: x * n**0.5)
    assert first(f, 4.0, 9.0) == [2, 3]
    assert f(X, -4.0).dtype == tn.complex64


def test_powers_of_a_known_number_are_open():
    f = tn.compile(lambda x, t: x * (1 - 0.5**t))
    assert first(f, 1, 2, 3, 4) == [0.5, 0.75, 0.875, 0.9375]
    assert f.stats().traces == 2


def is_int(n):
    return type(n) is int


@pytest.mark.parametrize(
    "f",
    [
        lambda x, n: x * (2 if is_int(n) else 3),
        lambda x, n: x * (2 if n is 2 else 3),  # noqa: F632
        lambda x, n: x * (2 if isinstance(n, tn.Tensor) else 3),
        lambda x, n: x * (2 if hasattr(n, "shape") else 3),
        lambda x, n: x * (2 if hasattr(n, "bit_length") else 3),
        lambda x, n: x * n.real,
        lambda x, n: x * getattr(n, "ndim", 7),
        lambda x, n: x * ((n > 1) + (n > 2)),
        lambda x, n: x + (n > 1) * 3,
        lambda x, n: x * -(n > 1),
        lambda x, n: x * (n > 1),
        lambda x, n: x * tn.astype(tn.arange(2) * (n > 1), tn.float32),
        lambda x, n: tn.where(n > 1, x, -x),
        lambda x, n: x * (2 if isinstance(n > 1, bool) else 3),
        lambda x, n: x * ((n > 1) & (n > 2)),
        lambda x, n: x * (not n > 1),
        lambda x, n: x * (n > 1) ** 2,
    ],
)
@pytest.mark.filterwarnings("ignore:.*is.*literal:SyntaxWarning")
def test_an_open_number_looks_like_a_plain_one(f):
    compiled = tn.compile(f)
    for n in (1, 2, 3, 2, 0, 1.5, 2.5, 3.5):
        got, want = compiled(X, n), f(X, n)
        assert got.dtype == want.dtype
        assert got.tolist() == want.tolist(), n


def test_what_comparisons_of_open_numbers_give_is_bool():
    f = tn.compile(lambda n: (n > 1, n + 1))
    assert [f(n) for n in (1, 2, 3)] == [(False, 2), (True, 3), (True, 4)]
    assert all(type(r) is t for r, t in zip(f(4), (bool, int), strict=True))


def test_a_question_of_type_is_told():
    f = tn.compile(lambda x, n: x * (2 if is_int(n) else 3))
    first(f, 1, 2)
    assert "not left open: `type(...)` is asked" in f.why_recompiled()[1]


def test_negative_powers_of_integers_are_refused_also_when_they_vary():
    f = tn.compile(lambda x, n: x**n)
    x = tn.array([2], dtype=tn.int64)
    assert [f(x, n).item() for n in (1, 2, 3)] == [2, 4, 8]
    with pytest.raises(ValueError, match="negative power"):
        f(x, -1)


def test_sizes_that_broadcast_only_once_are_guarded_in_every_trace():
    f = tn.compile(lambda x: x + tn.ones(4), shapeless=True)
    g = tn.compile(lambda x: (x + tn.ones(4)) * 2, shapeless=True)
    assert f(tn.zeros(1)).shape == (4,)
    assert g(tn.ones(4)).tolist() == [4] * 4
    assert g(tn.zeros(1)).tolist() == [2] * 4
    with pytest.raises(ValueError, match="broadcast"):
        g(tn.ones(7))


def test_an_inner_trace_asks_what_the_outer_asked_before():
    inner = tn.compile(lambda a, b: a + b)
    first_use = tn.compile(lambda x, y: (x * y).sum() + inner(x, y), shapeless=True)
    second_use = tn.compile(lambda x, y: inner(x, y) * 2, shapeless=True)
    first_use(tn.ones(4), tn.ones(4))
    assert second_use(tn.ones(4), tn.ones(4)).tolist() == [4] * 4
    assert second_use(tn.ones(4), tn.zeros(1)).tolist() == [2] * 4


def test_derivatives_for_one_size_do_not_serve_others():
    inner = tn.compile(lambda a: tn.cumprod(a).sum())
    outer = tn.compile(lambda x: tn.grad(inner)(x), shapeless=True)
    for size in (4, 7, 1, 5):
        x = tn.full((size,), 2.0)
        assert outer(x).tolist() == tn.grad(lambda a: tn.cumprod(a).sum())(x).tolist()


def test_equal_static_arguments_of_other_kinds_are_others():
    @dataclass(frozen=True)
    class Config:
        k: object

    f = tn.compile(lambda x, c: x * c.k, static_argnums=1)
    integers = tn.array([1, 2])
    assert f(integers, Config(1)).dtype == tn.int64
    assert f(integers, Config(1.0)).dtype == tn.float32
    g = tn.compile(lambda x, s: x * sum(s), static_argnums=1)
    assert g(integers, frozenset({1})).dtype == tn.int64
    assert g(integers, frozenset({1.0})).dtype == tn.float32


def test_constant_arguments_do_not_change():
    f = tn.compile(lambda x, s: x * sum(s))
    with pytest.raises(TypeError, match="cannot be hashed: set"):
        f(X, {1.0})


TABLE = [10.0, 20.0, 30.0, 40.0, 50.0]


def looked_up(k):
    try:
        return TABLE[k]
    except Exception:
        return 0.0


def hashed(k):
    try:
        return {1: 1.0, 2: 2.0, 3: 3.0}[k]
    except Exception:
        return 0.0


class Asked:
    def __init__(self, k):
        self.k = k


@pytest.mark.parametrize("ask", [looked_up, hashed])
def test_errors_of_open_numbers_that_are_caught(ask):
    f, g = tn.compile(lambda k, x: x * ask(k)), tn.compile(lambda o, x: x * ask(o.k))
    outer, another = (tn.compile(lambda k, x: f(k, x) + 1) for _ in range(2))
    for k in (1, 2, 3, 4):
        expected = (X * ask(k)).tolist()
        assert f(k, X).tolist() == expected and g(Asked(k), X).tolist() == expected
        assert outer(k, X).tolist() == another(k, X).tolist() == (X * ask(k) + 1).tolist()
    assert any("the error caught" in why for why in f.why_recompiled())
