"""Sizes inside compiled functions: what Python does with them, and what that fixes."""

import math

import numpy as np
import pytest

import tenon as tn


def swept(f, sizes, make=lambda n: tn.arange(n * 3, dtype="float32").reshape(n, 3)):
    """How often `f` was traced for these sizes; the values are those of plain code."""
    traces = []

    def counted(x):
        traces.append(x.shape)
        return f(x)

    compiled = tn.compile(counted)
    for n in sizes:
        got, want = compiled(make(n)), f(make(n))
        assert got.shape == want.shape and got.dtype == want.dtype
        assert np.array_equal(np.asarray(got), np.asarray(want), equal_nan=True)
    return len(traces)


SIZES = [4, 6, 5, 12, 9, 4, 31]

FREE = {
    "reshape": lambda x: x.reshape(x.shape[0] * 3),
    "reshape -1": lambda x: x.reshape(x.shape[0], -1),
    "reshape all": lambda x: x.reshape(-1),
    "mean": lambda x: x.mean(),
    "mean by hand": lambda x: x.sum() / x.shape[0],
    "half": lambda x: x.sum() * (x.shape[0] * 0.5),
    "root": lambda x: x / x.shape[0] ** 0.5,
    "quotient": lambda x: x * (1 / x.shape[0]),
    "var": lambda x: x.var(0),
    "std": lambda x: tn.std(x, axis=0, correction=1),
    "size": lambda x: x.sum() / x.size,
    "zeros": lambda x: x + tn.zeros((x.shape[0], 1)),
    "full": lambda x: tn.full((x.shape[0],), x.shape[0]),
    "arange": lambda x: x + tn.arange(x.shape[0])[:, None],
    "arange down": lambda x: x + tn.arange(x.shape[0] - 1, -1, -1)[:, None],
    "linspace": lambda x: x + tn.linspace(0, 1, x.shape[0])[:, None],
    "eye": lambda x: tn.eye(x.shape[0]) @ x,
    "last": lambda x: x[-1],
    "last by size": lambda x: x[x.shape[0] - 1],
    "from the end": lambda x: x[-3:],
    "but the last": lambda x: x[:-1],
    "half of it": lambda x: x[: x.shape[0] // 2],
    "every second": lambda x: x[::2],
    "backwards": lambda x: x[::-1],
    "backwards by two": lambda x: x[::-2],
    "middle": lambda x: x[1 : x.shape[0] - 1],
    "flip": lambda x: tn.flip(x),
    "roll": lambda x: tn.roll(x, 2, 0),
    "roll back": lambda x: tn.roll(x, -1, 0),
    "pad": lambda x: tn.pad(x, (1, 2)),
    "pad to size": lambda x: tn.pad(x, ((0, x.shape[0]), (0, 0))),
    "concat": lambda x: tn.concat([x, x[1:]]),
    "stack": lambda x: tn.stack([x, 2 * x]),
    "tile": lambda x: tn.tile(x, (2, 1)),
    "repeat": lambda x: tn.repeat(x, 3, axis=0),
    "cumsum": lambda x: tn.cumulative_sum(x, axis=0),
    "sort": lambda x: tn.sort(x, axis=0),
    "argmax": lambda x: tn.argmax(x, axis=0),
    "top_k": lambda x: tn.top_k(x, 2, axis=0)[0],
    "diagonal": lambda x: tn.diagonal(x),
    "matmul": lambda x: x.T @ x,
    "outer": lambda x: x @ x.T,
    "einsum": lambda x: tn.einsum("ij,ik->jk", x, x),
    "softmax": lambda x: tn.softmax(x, axis=0),
    "take": lambda x: tn.take(x, tn.array([0, -1]), axis=0),
    "gather": lambda x: x[tn.array([0, 2, 1])],
    "set": lambda x: x.at[1:].set(0.0),
    "triangle": lambda x: tn.tril(x @ x.T),
    "fft": lambda x: tn.real(tn.fft.fft(x, axis=0)),
    "fft back": lambda x: tn.fft.irfft(tn.fft.rfft(x, axis=1), 3, axis=1),
    "norm": lambda x: tn.linalg.vector_norm(x, axis=0),
    "quantile": lambda x: tn.quantile(x, 0.3, axis=0),
    "grad": lambda x: tn.grad(lambda y: (y * y).mean())(x),
    "vmap": lambda x: tn.vmap(lambda r: r * r.sum())(x),
    "vmap of mean": lambda x: tn.vmap(lambda r: r.mean())(x.T),
    "scan": lambda x: tn.scan(lambda c, r: (c + r, c), tn.zeros(3), x)[1],
    "unsqueeze": lambda x: x[:, None] * 2,
    "broadcast": lambda x: tn.broadcast_to(x[0], x.shape),
    "dropout shape": lambda x: tn.random.normal(x.shape, key=tn.random.key(1)),
    "arithmetic": lambda x: tn.zeros(x.shape[0] * 2 + 1 - x.shape[0] // 2),
    "remainder": lambda x: tn.zeros(x.shape[0] % 3 + 1),
    "negative": lambda x: x[-x.shape[0] :],
    "power": lambda x: tn.zeros(x.shape[0] ** 2),
}


@pytest.mark.parametrize("name", FREE)
def test_serves_every_size_from_two_traces(name):
    assert swept(FREE[name], SIZES) == 2


FIXED = {
    "range": lambda x: sum((x[i] for i in range(x.shape[0])), tn.zeros(3)),
    "len": lambda x: x * len(x),
    "int": lambda x: x * int(x.shape[0]),
    "math": lambda x: x / math.sqrt(x.shape[0]),
    "iteration": lambda x: sum(list(x), tn.zeros(3)),
    "unstack": lambda x: tn.unstack(x)[0],
    "dict": lambda x: x * {4: 1.0}.get(x.shape[0], 2.0),
}


@pytest.mark.parametrize("name", FIXED)
def test_sizes_that_python_needs_are_fixed(name):
    assert swept(FIXED[name], [4, 6, 5]) == 3


def test_a_question_is_a_guard():
    def f(x):
        return x[:4] if x.shape[0] > 8 else x * 2

    assert swept(f, [4, 6, 5, 12, 9, 4, 31]) == 3  # 4; up to 8; beyond


def test_shape_compares_as_a_tuple():
    seen = []

    def f(x):
        seen.append((x.shape == (4, 3), x.shape[1] == 3, x.shape[0] != x.shape[1]))
        return x + 1

    compiled = tn.compile(f)
    for n in (4, 6, 7):
        compiled(tn.ones((n, 3)))
    assert seen[:2] == [(True, True, True), (False, True, True)]


def test_a_symbolic_size_is_a_number():
    seen = {}

    def f(x):
        n = x.shape[0]
        if not isinstance(n, int):
            seen.update(
                text=repr(n),
                sum=repr(n + 1),
                product=repr(2 * n - n),
                same=n - n,
                half=repr(n // 2),
            )
            assert isinstance(n, tn.Dim)
            assert isinstance(n / 2, tn.Tensor) and isinstance(0.5 * n, tn.Tensor)
            assert divmod(n, 1) == (n, 0) and +n == n and abs(-n) == n and bool(n)
            assert n >= 1 and not n < 1 and n != "s0" and n**2 == n * n
            with pytest.raises(TypeError):
                n + "1"
        return x + 1

    compiled = tn.compile(f)
    for n in (4, 6):
        compiled(tn.ones((n, 3)))
    assert seen == {"text": "s0", "sum": "s0+1", "product": "s0", "same": 0, "half": "s0//2"}


def test_integer_tensors_take_sizes():
    for dtype in ("int64", "int32", "float32"):
        assert swept(lambda x: x.astype(dtype) + x.shape[0], [4, 6, 5]) in (2, 3)
