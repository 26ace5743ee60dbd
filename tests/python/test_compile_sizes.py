"""Sizes that vary: symbols after the second size, or at once; reasons for every trace."""

import math

import numpy as np
import pytest

import tenon as tn


def traced(f, **options):
    """`f` compiled, and the list of what it was traced with."""
    seen = []

    def noted(*args, **kwargs):
        seen.append([getattr(a, "shape", a) for a in args])
        return f(*args, **kwargs)

    return tn.compile(noted, **options), seen


def test_the_third_size_is_not_traced():
    f, seen = traced(lambda x, w: tn.tanh(x @ w) + tn.sum(x, axis=0)[0])
    w = tn.ones((3, 4))
    for n in [2, 5, 7, 1, 9, 2]:
        x = tn.reshape(tn.arange(3 * n, dtype="float32"), (n, 3)) / 10
        got = f(x, w)
        assert got.shape == (n, 4)
        assert np.array_equal(got, tn.tanh(x @ w) + tn.sum(x, axis=0)[0])
    assert len(seen) <= 3  # 1 may have a trace of its own
    assert f.stats().traces == len(seen)
    assert f.stats().hits == 6 - len(seen)


def test_fifty_sizes_take_two_traces():
    f, seen = traced(lambda x: tn.exp(x) * 2)
    for n in range(2, 52):
        assert np.array_equal(f(tn.ones(n)), tn.exp(tn.ones(n)) * 2)
    assert len(seen) == 2


def test_shapeless_is_open_from_the_first_call_on():
    f, seen = traced(lambda x, y: tn.sum(tn.exp(x) * y, axis=0), shapeless=True)
    for n in [3, 4, 8]:
        assert f(tn.ones((n, 2)), tn.ones((n, 2))).shape == (2,)
    assert len(seen) == 1


def test_sizes_and_numbers_vary_at_once():
    f, seen = traced(lambda x, c: x * c)
    for n, c in [(2, 1.5), (3, 2.5), (4, 3.5), (5, math.inf), (6, -0.0)]:
        assert np.array_equal(f(tn.ones(n), c), np.ones(n, np.float32) * c)
    assert len(seen) == 2
    assert np.isnan(np.asarray(f(tn.ones(9), math.nan))).all()
    assert len(seen) == 2
    assert math.copysign(1, f(tn.ones(2), -0.0)[0].item()) == -1


def test_reasons_name_what_differed():
    @tn.compile
    def step(params, x, scale=1.0, *, name="a"):
        return params["w"] * x * scale

    w = {"w": tn.ones(3)}
    step(w, tn.ones(3))
    step(w, tn.ones(3), 2.0)
    step(w, tn.ones(3, dtype="float16"), 2.0)
    step(w, tn.ones((1, 3)), 2.0)
    step({"w": tn.ones(3), "b": None}, tn.ones(3), 2.0)
    step(w, tn.ones(3), name="b")
    step(w, tn.ones(3), name="c")
    step(w, tn.ones(3), 2.0)
    step(w, tn.ones(3), True)
    why = step.why_recompiled()
    assert len(why) == 8
    for part, line in zip(
        [
            "first call (",
            "the call was of 2 positional arguments, now of 3 positional arguments",
            "x.dtype was float32, now float16",
            "x.ndim was 1, now 2",
            "params was {'w': *}, now {'w': *, 'b': None}",
            "the call was of 3 positional arguments, now of 2 positional arguments and ('name',)",
            "name was 'b', now 'c'",
            "scale was 2.0, now True",
        ],
        why,
        strict=True,
    ):
        assert part in line, line
        assert "in test_reasons_name_what_differed" in line
    assert step.stats().traces_by_reason["dtype"] == 2
    assert "8 traces" in repr(step.stats())


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0, 0.0, 0, True, False])
def test_special_numbers_are_told_apart(value):
    f, seen = traced(lambda x, c: x * c)
    others = [1.0, 1]
    for c in [*others, value, *others, value]:
        want = np.ones(2, np.float32) * np.float32(c)
        assert np.asarray(f(tn.ones(2), c)).tobytes() == want.tobytes() or c != c
    assert len(seen) <= 4


def test_derivatives_of_compiled_functions_with_open_sizes():
    f, seen = traced(lambda x: tn.sum(tn.sin(x) * x))
    for n in [2, 3, 4, 5]:
        x = tn.arange(n, dtype="float32")
        assert np.allclose(tn.grad(f)(x), tn.cos(x) * x + tn.sin(x))
        assert tn.vmap(f)(tn.ones((3, n))).shape == (3,)
        assert np.allclose(tn.compile(tn.grad(f))(x), tn.cos(x) * x + tn.sin(x))
    assert len(seen) <= 3
