"""Random programs on random meshes: every number of workers must compute the bits of one.

    python tests/python/fuzz_mesh.py --cases 5000
    python tests/python/fuzz_mesh.py --seed 17 --cases 1 --verbose

A case is a program, the parts of a mesh, and layouts of inputs and of values inside. It runs on a
mesh with one worker along each axis, and on one with more. All results must have equal bits.
Programs in float64 must also be close to the plain program on the host, whose sums have another
order.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np

import tenon as tn

EXTENTS = [1, 2, 3, 4, 6, 8, 8, 12, 12, 16, 24]
PARTS = [2, 2, 3, 4, 4, 6, 6, 8, 8, 12]
MOST_WORKERS = 8
LARGEST = 4096  # elements of a value
CASES_OF_PROCESS = 100


class Case:
    """Draws a program while it runs. The choices depend on the seed and on shapes alone."""

    def __init__(self, seed: int, log: list[str] | None = None) -> None:
        random.seed(seed)
        self.seed, self.log = seed, log
        pick = random
        self.parts = {f"m{k}": pick.choice(PARTS) for k in range(pick.choice([1, 1, 2, 2, 3]))}
        self.compiled = pick.random() < 0.15
        self.steps = pick.randint(2, 9)
        self.has_gradient = pick.random() < 0.35
        self.dtype = pick.choice(["float32"] * 6 + ["bfloat16", "float16"] + ["float64"] * 3)
        self.inputs = [self._input(k) for k in range(pick.randint(1, 3))]
        self.specs = [self._spec(x.shape) for x in self.inputs]
        self.start = pick.getstate()

    def _input(self, k: int) -> np.ndarray:
        shape = [random.choice(EXTENTS) for _ in range(random.randint(1, 3))]
        while np.prod(shape) > LARGEST:
            shape[shape.index(max(shape))] //= 2
        return np.random.default_rng(1000 * self.seed + k).normal(size=shape).astype(np.float32)

    def sizes(self) -> dict[str, int]:
        """Of a mesh of several workers with these parts."""
        sizes = {}
        for name, parts in self.parts.items():
            fits = [n for n in range(2, parts + 1) if parts % n == 0]
            room = MOST_WORKERS // int(np.prod(list(sizes.values()), dtype=int))
            sizes[name] = random.choice([n for n in fits if n <= room] or [1])
        return sizes

    def _spec(self, shape: tuple[int, ...]) -> Any:
        """A layout that the shape allows; some axes are left out."""
        rest, spec = list(shape), [[] for _ in shape]
        for name, parts in sorted(self.parts.items(), key=lambda _: random.random()):
            fits = [d for d, extent in enumerate(rest) if extent % parts == 0]
            if fits and random.random() < 0.75:
                d = random.choice(fits)
                rest[d] //= parts
                spec[d].append(name)
        return tuple(tuple(names) or None for names in spec)

    # The program ------------------------------------------------------------------------------

    def run(self, sizes: dict[str, int] | None) -> list[np.ndarray]:
        """On a mesh, or on the host."""
        random.setstate(self.start)
        self.on_mesh = sizes is not None
        if sizes is None:
            return self._outputs([tn.array(x).astype(self.dtype) for x in self.inputs])
        with tn.Mesh(**sizes, parts=dict(self.parts)):
            given = [
                tn.shard(tn.array(x).astype(self.dtype), spec)
                for x, spec in zip(self.inputs, self.specs)
            ]
            return self._outputs(given)

    def _outputs(self, given: list[tn.Tensor]) -> list[np.ndarray]:
        function = self._program
        if self.has_gradient:

            def function(*given: tn.Tensor) -> Any:
                def loss(*xs: tn.Tensor) -> tn.Tensor:
                    wide = "float64" if self.dtype == "float64" else "float32"
                    return sum((y.astype(wide) ** 2).mean() for y in self._floats(xs))

                every = tuple(range(len(given)))
                return tn.value_and_grad(loss, argnums=every)(*given)

        made = (tn.compile(function) if self.compiled else function)(*given)
        return [np.asarray(x.astype(_plain(x)).numpy()) for x in tn.tree.leaves(made)]

    def _floats(self, given: tuple[tn.Tensor, ...]) -> list[tn.Tensor]:
        return [y for y in self._program(*given) if _is_float(y)] or [given[0]]

    def _program(self, *given: tn.Tensor) -> list[tn.Tensor]:
        values = list(given)
        for _ in range(self.steps):
            name, made = self._step(values)
            if made is None or made.size > LARGEST or made.size == 0:
                continue
            if self.log is not None:
                self.log.append(f"{name}: {made.dtype}{list(made.shape)}")
            values.append(made)
        return values[len(given) :] or [given[0] + 1]

    def _step(self, values: list[tn.Tensor]) -> tuple[str, tn.Tensor | None]:
        pick = random
        x = pick.choice(values[-3:] if pick.random() < 0.7 else values)
        step = pick.choice(STEPS)
        return step.__name__, step(self, x, values)

    def other(self, x: tn.Tensor, values: list[tn.Tensor]) -> tn.Tensor:
        """One that broadcasts with `x`."""
        fits = [y for y in values if _broadcasts(x.shape, y.shape) and y.dtype == x.dtype]
        return random.choice(fits) if fits else x

    def axis(self, x: tn.Tensor) -> int:
        return random.randrange(x.ndim)

    def numbers(self, *shape: int) -> tn.Tensor:
        """Equal in every run; layouts follow, or are drawn."""
        key = tn.random.key(random.randrange(1000))
        x = tn.random.normal(shape, key=key).astype(self.dtype)
        if random.random() < 0.3:
            spec = self._spec(shape)
            return tn.shard(x, spec) if self.on_mesh else x
        return x


def _plain(x: tn.Tensor) -> Any:
    return tn.float32 if str(x.dtype) == "bfloat16" else x.dtype


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1]))


def _is_float(x: tn.Tensor) -> bool:
    return tn.isdtype(x.dtype, "real floating")


# What a program may do: functions of the case, a value, and all values.


def layout(case: Case, x: tn.Tensor, values: list[tn.Tensor]) -> tn.Tensor:
    spec = case._spec(x.shape)
    return tn.shard(x, spec) if case.on_mesh else x


def unary(case: Case, x: tn.Tensor, values: list[tn.Tensor]) -> tn.Tensor:
    name = random.choice(["tanh", "sin", "abs", "negative", "square", "sigmoid"])
    if not _is_float(x):
        return x + 1
    return tn.tanh(x) if name == "square" else getattr(tn, name)(x)


def binary(case: Case, x: tn.Tensor, values: list[tn.Tensor]) -> tn.Tensor:
    y = case.other(x, values)
    return getattr(tn, random.choice(["add", "subtract", "multiply", "maximum"]))(x, y)


def select(case: Case, x: tn.Tensor, values: list[tn.Tensor]) -> tn.Tensor:
    y = case.other(x, values)
    return tn.where(x > y, x, y * 2)


def reduce(case: Case, x: tn.Tensor, values: list[tn.Tensor]) -> tn.Tensor | None:
    if x.ndim == 0:
        return None
    name = random.choice(["sum", "sum", "mean", "max", "min"])
    axes = sorted(random.sample(range(x.ndim), random.randint(1, x.ndim)))
    keepdims = random.random() < 0.4
    if name == "mean" and not _is_float(x):
        name = "sum"
    return getattr(tn, name)(x, axis=tuple(axes), keepdims=keepdims)


def norm(case: Case, x: tn.Tensor, values: list[tn.Tensor]) -> tn.Tensor | None:
    if x.ndim == 0 or not _is_float(x):
        return None
    if random.random() < 0.5:
        return tn.softmax(x, axis=case.axis(x))
    axis = case.axis(x)
    centred = x - x.mean(axis=axis, keepdims=True)
    return centred / tn.sqrt((centred * centred).mean(axis=axis, keepdims=True) + 1)


def product(case: Case, x: tn.Tensor, values: list[tn.Tensor]) -> tn.Tensor | None:
    if x.ndim == 0 or not _is_float(x) or str(x.dtype) != case.dtype:
        return None
    fits = [y for y in values if y.ndim == 2 and y.dtype == x.dtype and y.shape[0] == x.shape[-1]]
    if fits and random.random() < 0.6:
        return x @ random.choice(fits)
    if x.ndim >= 2 and random.random() < 0.3:
        return tn.matmul(x.mT if hasattr(x, "mT") else tn.swapaxes(x, -1, -2), x)
    return x @ case.numbers(x.shape[-1], random.choice(EXTENTS))


def move(case: Case, x: tn.Tensor, values: list[tn.Tensor]) -> tn.Tensor | None:
    if x.ndim == 0:
        return x.reshape(1)
    axis = case.axis(x)
    kind = random.choice(["transpose", "flip", "expand", "slice", "step", "pad", "roll"])
    if kind == "transpose":
        return tn.transpose(x, random.sample(range(x.ndim), x.ndim))
    if kind == "flip":
        return tn.flip(x, axis)
    if kind == "expand":
        return tn.expand_dims(x, axis) if x.ndim < 4 else x
    if kind == "roll":
        return tn.roll(x, random.randint(1, 3), axis)
    if kind == "pad":
        widths = [(0, 0)] * x.ndim
        widths[axis] = (random.randint(0, 2), random.randint(0, 2))
        return tn.pad(x, tuple(widths))
    at = [slice(None)] * x.ndim
    if kind == "step":
        at[axis] = slice(random.randint(0, 1), None, 2)
        return x[tuple(at)]
    start = random.randrange(x.shape[axis])
    half = random.choice([x.shape[axis] - start, max(1, x.shape[axis] // 2)])
    at[axis] = slice(start, start + half)
    return x[tuple(at)]


def reshape(case: Case, x: tn.Tensor, values: list[tn.Tensor]) -> tn.Tensor:
    left, shape = x.size, []
    while left > 1 and len(shape) < 3:
        factors = [n for n in (2, 3, 4, 6, 8, 12, 16) if left % n == 0]
        n = random.choice([*factors, left]) if len(shape) < 2 else left
        shape.append(n)
        left //= n
    if left > 1:
        shape.append(left)
    return x.reshape(tuple(shape))


def join(case: Case, x: tn.Tensor, values: list[tn.Tensor]) -> tn.Tensor | None:
    fits = [y for y in values if y.shape == x.shape and y.dtype == x.dtype]
    if x.ndim == 0:
        return None
    y = random.choice(fits)
    return (tn.concat if random.random() < 0.6 else tn.stack)([x, y], axis=case.axis(x))


def lines(case: Case, x: tn.Tensor, values: list[tn.Tensor]) -> tn.Tensor | None:
    if x.ndim == 0:
        return None
    name, axis = random.choice(["sort", "cumsum", "argmax", "cummax"]), case.axis(x)
    if name == "cummax":
        return tn.cumsum(tn.abs(x), axis=axis)
    return getattr(tn, name)(x, axis=axis)


def pick_rows(case: Case, x: tn.Tensor, values: list[tn.Tensor]) -> tn.Tensor | None:
    if x.ndim == 0:
        return None
    axis, count = case.axis(x), random.choice([2, 4, 6, 8, 12])
    key = tn.random.key(random.randrange(1000))
    rows = tn.random.randint(0, x.shape[axis], (count,), key=key)
    if case.on_mesh and random.random() < 0.5:
        rows = tn.shard(rows, case._spec((count,)))
    elif not case.on_mesh and random.random() < 0.5:
        case._spec((count,))
    return tn.take(x, rows, axis=axis)


def add_rows(case: Case, x: tn.Tensor, values: list[tn.Tensor]) -> tn.Tensor | None:
    """The gradient of an embedding: rows that are added into a table."""
    if x.ndim != 2 or not _is_float(x):
        return None
    key = tn.random.key(random.randrange(1000))
    rows = tn.random.randint(0, 6, (x.shape[0],), key=key)
    table = tn.zeros((6, x.shape[1]), dtype=x.dtype)
    return table.at[rows].add(x)


def convolve(case: Case, x: tn.Tensor, values: list[tn.Tensor]) -> tn.Tensor | None:
    if x.ndim != 3 or not _is_float(x) or str(x.dtype) != case.dtype or x.shape[2] < 3:
        return None
    weight = case.numbers(random.choice([2, 4, 8]), x.shape[1], 3)
    return tn.conv1d(x, weight, padding=1)


def cast(case: Case, x: tn.Tensor, values: list[tn.Tensor]) -> tn.Tensor:
    if not _is_float(x):
        return x.astype(case.dtype)
    if case.dtype == "float64":  # of which others would be an imprecise copy
        return x * 2
    return x.astype(random.choice(["float32", "float16", "bfloat16", "float64"]))


def made(case: Case, x: tn.Tensor, values: list[tn.Tensor]) -> tn.Tensor | None:
    if x.ndim == 0 or str(x.dtype) != case.dtype:
        return None
    return x + case.numbers(*x.shape)


def count(case: Case, x: tn.Tensor, values: list[tn.Tensor]) -> tn.Tensor | None:
    if x.ndim == 0:
        return None
    return x * tn.arange(x.shape[-1]).astype(x.dtype)


def loop(case: Case, x: tn.Tensor, values: list[tn.Tensor]) -> tn.Tensor | None:
    if x.ndim < 2 or not _is_float(x):
        return None
    first = tn.zeros(x.shape[1:], dtype=x.dtype)
    _, rows = tn.scan(lambda c, row: ((c * 0.5 + row), c + row * 2), first, x)
    return rows


def batch(case: Case, x: tn.Tensor, values: list[tn.Tensor]) -> tn.Tensor | None:
    if x.ndim < 2 or not _is_float(x):
        return None
    return tn.vmap(lambda row: tn.sin(row).sum(axis=0) * row)(x)


STEPS = [
    layout, layout, unary, unary, binary, binary, select, reduce, reduce, reduce, norm, product,
    product, product, move, move, reshape, reshape, join, lines, pick_rows, add_rows, convolve,
    cast, made, made, count, loop, batch,
]  # fmt: skip


def bits(x: np.ndarray) -> bytes:
    """NaNs are one."""
    if x.dtype.kind == "f":
        x = np.where(np.isnan(x), np.array(np.nan, x.dtype), x)
    return np.ascontiguousarray(x).tobytes()


def failure(seed: int) -> str:
    """What is wrong with a case; nothing when all is well."""
    case = Case(seed)
    try:
        plain = case.run(None)
    except tn.Error as error:
        return f"on the host: {error}"
    alone = case.run(dict.fromkeys(case.parts, 1))
    random.setstate(case.start)
    sizes = case.sizes()
    several = case.run(sizes)
    about = f"parts {case.parts}, workers {sizes}"
    for k, (x, y, z) in enumerate(zip(plain, alone, several, strict=True)):
        if y.dtype != z.dtype or y.shape != z.shape or bits(y) != bits(z):
            return f"{about}: result {k} differs from one worker: {y.ravel()[:4]} {z.ravel()[:4]}"
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"{about}: result {k} is {y.dtype}{y.shape}, on the host {x.dtype}{x.shape}"
        if case.dtype == "float64" and not np.allclose(x, y, rtol=1e-9, atol=1e-9, equal_nan=True):
            return f"{about}: result {k} differs from the host: {x.ravel()[:4]} {y.ravel()[:4]}"
    return ""


def described(seed: int) -> str:
    log: list[str] = []
    case = Case(seed, log)
    inputs = [f"{x.shape} {spec}" for x, spec in zip(case.inputs, case.specs)]
    text = f"{case.dtype}, compiled={case.compiled}, gradient={case.has_gradient}, {inputs}\n"
    case.run(None)
    return text + "\n".join(log)


def check(cases: int, seed: int, most_failures: int = 10, verbose: bool = False) -> list[str]:
    """The failures among so many cases."""
    failures = []
    warnings.filterwarnings("ignore", message=".*draws from random at trace time")
    for at in range(seed, seed + cases):
        if verbose:
            print(f"seed {at}: {described(at)}")
        try:
            text = failure(at)
        except Exception as error:  # which the report names
            text = f"{type(error).__name__}: {error}"
        if text:
            failures.append(f"seed {at}: {text}")
            print(failures[-1], flush=True)
        if len(failures) >= most_failures:
            break
    return failures


def check_in_processes(cases: int, seed: int) -> int:
    """A process has a limited number of meshes, so each does some of the cases."""
    began, failed = time.monotonic(), 0
    for first in range(0, cases, CASES_OF_PROCESS):
        count = min(CASES_OF_PROCESS, cases - first)
        words = [sys.executable, __file__, "--cases", str(count), "--seed", str(seed + first)]
        failed += subprocess.run(words, check=False).returncode != 0
        if failed >= 10:
            break
        done = first + count
        if done % 500 == 0 or done == cases:
            print(f"{done} cases, {time.monotonic() - began:.0f} s", flush=True)
    return failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="show the programs")
    options = parser.parse_args()
    if options.cases > CASES_OF_PROCESS:
        sys.exit(check_in_processes(options.cases, options.seed) > 0)
    sys.exit(bool(check(options.cases, options.seed, verbose=options.verbose)))
