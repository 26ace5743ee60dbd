"""The same computations in Tenon and in NumPy, each written the way people write it there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import tenon as tn


@dataclass(frozen=True)
class Pair:
    """One computation twice. `ours` and `theirs` give arrays that NumPy can compare."""

    name: str
    ours: Callable[[], object]
    theirs: Callable[[], object] | None  # the rival may not be installed
    goal: float | None = None  # at least this many times as fast as the rival
    tolerance: float = 1e-5
    rival: str = "NumPy"
    per: int = 1  # of how many ops the row gives the time of one


def chain(x, abs, sqrt):
    """Twenty elementwise ops."""
    for _ in range(5):
        x = sqrt(abs(x * 1.01 + 0.1))
    return x


def chain_in_place(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The same with one buffer for all results, as careful NumPy code does it."""
    source = x
    for _ in range(5):
        np.multiply(source, np.float32(1.01), out=y)
        np.add(y, np.float32(0.1), out=y)
        np.abs(y, out=y)
        np.sqrt(y, out=y)
        source = y
    return y


def numpy_softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def numpy_layer_norm(x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)


def elementwise(scale: int = 1) -> list[Pair]:
    """Chains over 16 M elements, divided by `scale`."""
    a = np.random.default_rng(0).standard_normal((1 << 24) // scale, dtype=np.float32)
    x = tn.asarray(a)
    buffer = np.empty_like(a)
    size = size_text(a.size)
    return [
        Pair(f"20 elementwise ops, {size} f32", lambda: chain(x, tn.abs, tn.sqrt).eval(),
             lambda: chain(a, np.abs, np.sqrt), goal=4.0),
        Pair(f"the same, NumPy with out=, {size} f32", lambda: chain(x, tn.abs, tn.sqrt).eval(),
             lambda: chain_in_place(a, buffer)),
        Pair(f"tanh(exp(-x * x)), {size} f32", lambda: tn.tanh(tn.exp(-x * x)).eval(),
             lambda: np.tanh(np.exp(-a * a))),
    ]


def random(scale: int = 1) -> list[Pair]:
    """16 M numbers, divided by `scale`. They are other numbers, so any difference is allowed."""
    n, rng = (1 << 24) // scale, np.random.default_rng(0)
    key, size = tn.random.key(0), size_text(n)
    return [
        Pair(f"uniform numbers, {size} f32", lambda: tn.random.uniform(shape=(n,), key=key).eval(),
             lambda: rng.random(n, dtype=np.float32), tolerance=20),
        Pair(f"normal numbers, {size} f32", lambda: tn.random.normal((n,), key=key).eval(),
             lambda: rng.standard_normal(n, dtype=np.float32), 1.0, 20),
    ]


def reductions(scale: int = 1) -> list[Pair]:
    """Sums over 16 M elements and normalisation of rows of 1024, divided by `scale`."""
    rows = np.random.default_rng(1).standard_normal((16384 // scale, 1024), dtype=np.float32)
    x, size = tn.asarray(rows), size_text(rows.size)
    shape = f"{rows.shape[0]}x1024"
    return [
        Pair(f"sum, {size} f32", lambda: x.sum().eval(), lambda: rows.sum(), 1.0, 1e-2),
        Pair(f"mean, {size} f32", lambda: x.mean().eval(), lambda: rows.mean(), 1.0, 1e-5),
        Pair(f"max, {size} f32", lambda: x.max().eval(), lambda: rows.max(), 1.0, 0),
        Pair(f"sum of rows, {shape}", lambda: x.sum(axis=1).eval(), lambda: rows.sum(axis=1),
             1.0, 1e-3),
        Pair(f"sum of columns, {shape}", lambda: x.sum(axis=0).eval(), lambda: rows.sum(axis=0),
             1.0, 1e-2),
        Pair(f"softmax of rows, {shape}", lambda: tn.softmax(x).eval(),
             lambda: numpy_softmax(rows), 1.0),
        Pair(f"layer norm of rows, {shape}", lambda: tn.layer_norm(x).eval(),
             lambda: numpy_layer_norm(rows), 1.0),
    ]


def matmul(scale: int = 1) -> list[Pair]:
    """A square product of 1024, divided by `scale`."""
    n = 1024 // scale
    a, b = np.random.default_rng(2).standard_normal((2, n, n), dtype=np.float32)
    x, y = tn.asarray(a), tn.asarray(b)
    return [Pair(f"matmul {n}x{n}x{n} f32", lambda: (x @ y).eval(), lambda: a @ b, 0.5, 1e-3)]


def fft(scale: int = 1) -> list[Pair]:
    """One long line and many short ones, divided by `scale`."""
    n = (1 << 20) // scale
    rows = 1024 // scale
    draw = np.random.default_rng(4).standard_normal
    line = (draw(n) + 1j * draw(n)).astype(np.complex64)
    many = (draw((rows, 1024)) + 1j * draw((rows, 1024))).astype(np.complex64)
    x, y = tn.asarray(line), tn.asarray(many)
    reals = tn.asarray(line.real.copy())
    return [
        Pair(f"fft of {size_text(n)} c64", lambda: tn.fft.fft(x).eval(),
             lambda: np.fft.fft(line), 1.0, 1e-1),
        Pair(f"rfft of {size_text(n)} f32", lambda: tn.fft.rfft(reals).eval(),
             lambda: np.fft.rfft(line.real), 1.0, 1e-1),
        Pair(f"fft of {rows} rows of 1024 c64", lambda: tn.fft.fft(y).eval(),
             lambda: np.fft.fft(many), 1.0, 1e-2),
        Pair(f"fft of 1024 columns of {rows} c64", lambda: tn.fft.fft(y, axis=0).eval(),
             lambda: np.fft.fft(many, axis=0), 1.0, 1e-2),
    ]


def linalg(scale: int = 1) -> list[Pair]:
    """Factorisations of a side of 512 and of many small matrices, divided by `scale`."""
    n = 512 // scale
    a = np.random.default_rng(5).standard_normal((n, n)) + 2 * n * np.eye(n)
    symmetric = (a + a.T) / 2
    small = np.random.default_rng(6).standard_normal((4096 // scale, 4, 4)) + 8 * np.eye(4)
    x, y, z = tn.asarray(a), tn.asarray(symmetric), tn.asarray(small)
    return [
        Pair(f"solve {n}x{n} f64", lambda: tn.linalg.solve(x, x).eval(),
             lambda: np.linalg.solve(a, a), 0.5),
        Pair(f"cholesky {n}x{n} f64", lambda: tn.linalg.cholesky(y).eval(),
             lambda: np.linalg.cholesky(symmetric), 0.5),
        Pair(f"eigvalsh {n}x{n} f64", lambda: tn.linalg.eigvalsh(y).eval(),
             lambda: np.linalg.eigvalsh(symmetric), 0.5, 1e-3),
        Pair(f"inverses of {len(small)} 4x4 f64", lambda: tn.linalg.inv(z).eval(),
             lambda: np.linalg.inv(small), 1.0),
    ]


@dataclass(frozen=True)
class Calls:
    """Small calls: `ours(n)` makes n of them. The loop around them is part of the figure."""

    name: str
    ours: Callable[[int], None]
    theirs: Callable[[int], None]
    most_seconds: float | None = None


def calls() -> list[Calls]:
    """What one small call costs, on 16 elements."""
    a, b = np.random.default_rng(3).standard_normal((2, 16), dtype=np.float32)
    x, y = tn.array(a), tn.array(b)

    def record(n: int) -> None:
        for _ in range(n):
            x + y

    def add(n: int) -> None:
        for _ in range(n):
            a + b

    def four(n: int) -> None:
        for _ in range(n):
            tn.abs(x * y + x - y).eval()

    def numpy_four(n: int) -> None:
        for _ in range(n):
            np.abs(a * b + a - b)

    def new_number(n: int) -> None:  # numbers that vary do not make new plans
        for i in range(n):
            (x * (i + 0.25) + y).eval()

    def numpy_new_number(n: int) -> None:
        for i in range(n):
            a * (i + 0.25) + b

    return [
        Calls("x + y: record and release | compute", record, add, 0.25e-6),
        Calls("4 ops: record, key and run | compute", four, numpy_four, 2.5e-6),
        Calls("2 ops with a new number each time", new_number, numpy_new_number),
    ]


def check(pair: Pair) -> None:
    """Both sides must mean the same before their times mean anything."""
    if pair.theirs is None:
        return
    ours, theirs = np.asarray(pair.ours()), np.asarray(pair.theirs())
    if not np.allclose(ours, theirs, rtol=1e-4, atol=pair.tolerance):
        worst = np.max(np.abs(ours - theirs))
        raise SystemExit(f"bench: {pair.name}: the results differ by {worst}")


def size_text(elements: int) -> str:
    """16 M, 64 k."""
    if elements >= 1 << 20:
        return f"{elements >> 20} M"
    return f"{elements >> 10} k" if elements >= 1024 else str(elements)
