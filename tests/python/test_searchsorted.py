"""Searches in sorted values: at once, compiled and fused, of every element type."""

import numpy as np
import pytest

import tenon as tn

DTYPES = ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "float64", "complex64"]


def values(shape, dtype, seed=0):
    rng = np.random.default_rng(seed + sum(shape))
    made = rng.integers(-50, 50, shape) + 1j * rng.integers(0, 9, shape)
    return (made if dtype.startswith("complex") else made.real).astype(dtype)


def check(f, want, *arrays):
    tensors = [tn.asarray(a) for a in arrays]
    for got in (
        f(*tensors),
        tn.compile(f)(*tensors),
        tn.compile(lambda *x: tn.where(True, f(*[tn.flip(tn.flip(t)) for t in x]), 0))(*tensors),
    ):
        assert got.dtype == tn.int64
        np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("side", ["left", "right"])
def test_places(side, dtype):
    for n in (0, 1, 2, 3, 7, 8, 9, 1000):
        x, v = np.sort(values((n,), dtype)), values((4, 5), dtype, 1)
        check(lambda x, v: tn.searchsorted(x, v, side=side), np.searchsorted(x, v, side), x, v)
    rows, keys = np.sort(values((3, 6), dtype)), values((3, 4), dtype, 2)
    want = [np.searchsorted(r, k, side) for r, k in zip(rows, keys)]
    check(lambda x, v: tn.searchsorted(x, v, side=side, batch_dims=1), want, rows, keys)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_nan_is_behind_all_numbers(dtype, side):
    nan = float("nan")
    x = np.array([-np.inf, -1, -0.0, 0, 2, np.inf, nan, nan], dtype)
    v = np.array([-np.inf, -2, -1, 0, -0.0, 1, 2, 3, np.inf, nan], dtype)
    check(lambda x, v: tn.searchsorted(x, v, side=side), np.searchsorted(x, v, side), x, v)
    order = np.array([3, 0, 5, 2, 7, 1, 6, 4])
    mixed = x[np.argsort(order)]
    check(lambda x, v, o: tn.searchsorted(x, v, o, side=side), np.searchsorted(x, v, side), mixed,
          v, order)  # fmt: skip


def test_complex_numbers_with_one_part_that_is_nan():
    nan = float("nan")
    x = np.array([1 + 0j, 1 + 2j, 2 - 1j, complex(nan, 0)], "complex64")
    v = np.array([complex(0, nan), complex(nan, 0), 1 + 1j, 2 - 1j], "complex64")
    check(lambda x, v: tn.searchsorted(x, v), [3, 3, 1, 2], x, v)
    check(lambda x, v: tn.searchsorted(x, v, side="right"), [4, 4, 1, 3], x, v)


def test_keys_of_64_bits_are_told_apart():
    x = np.array([2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1], "uint64")
    check(lambda x, v: tn.searchsorted(x, v), np.arange(5), x, x)


def test_sizes_that_change():
    compiled = tn.compile(lambda x, v: (tn.searchsorted(x, v), tn.searchsorted(x, v, side="right")))
    for n, m in [(1, 2), (2, 3), (3, 4), (5, 4), (64, 33), (1000, 999), (1023, 7), (1024, 1)]:
        x, v = np.sort(values((n,), "float32")), values((m,), "float32", 1)
        for got, side in zip(compiled(tn.asarray(x), tn.asarray(v)), ("left", "right")):
            np.testing.assert_array_equal(np.asarray(got), np.searchsorted(x, v, side))
