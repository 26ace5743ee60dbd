"""Operands for the samples of the op table, and comparison with NumPy."""

import math
import zlib

import numpy as np

import tenon as tn

TYPES = [
    tn.bool,
    tn.int8,
    tn.int16,
    tn.int32,
    tn.int64,
    tn.uint8,
    tn.uint16,
    tn.uint32,
    tn.uint64,
    tn.float16,
    tn.bfloat16,
    tn.float32,
    tn.float64,
    tn.complex64,
    tn.complex128,
]
EPS = {
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float32": 2.0**-23,
    "float64": 2.0**-52,
    "complex64": 2.0**-23,
    "complex128": 2.0**-52,
}


def is_float(dtype):
    return dtype.name in EPS


def draw(rng, dtype, shape, lo, hi):
    """Values of `dtype` in [lo, hi] as (what Tenon gets, what NumPy computes with)."""
    name = dtype.name
    if name == "bool":
        values = rng.random(shape) < 0.5
    elif is_float(dtype):
        values = rng.uniform(lo, hi, shape)
        if name.startswith("complex"):
            values = values + 1j * rng.uniform(-1, 1, shape)
    else:
        limits = np.iinfo(name)
        low, high = max(math.ceil(lo), limits.min), min(math.floor(hi), limits.max)
        values = rng.integers(min(low, high), max(low, high), shape, endpoint=True).astype(name)
    return exact(np.asarray(values), dtype)


def exact(values, dtype):
    """(array as Tenon takes it, the same values as wide as NumPy has them)."""
    name = dtype.name
    if name == "bfloat16":
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
        values = (bits & np.uint32(0xFFFF0000)).view(np.float32).reshape(values.shape)
        return values, values.astype(np.float64)
    values = values.astype(name)
    if name in ("float16", "float32"):
        return values, values.astype(np.float64)
    return values, values.astype(np.complex128) if name == "complex64" else values


def tensor(values, dtype):
    x = tn.asarray(values)
    return x if x.dtype == dtype else x.astype(dtype)


def numpy_of(x):
    """A result as NumPy, bfloat16 as float32."""
    return (x.astype(tn.float32) if x.dtype == tn.bfloat16 else x).numpy()


def bits_of(result):
    """Types and bytes of a result or a list of results."""
    if isinstance(result, (list, tuple)):
        return [bits_of(r) for r in result]
    return (result.dtype.name, result.shape, bytes_of(result))


def bytes_of(x):
    return (x.view_as_bytes() if hasattr(x, "view_as_bytes") else numpy_of(x)).tobytes()


class Call:
    """A sample with an element type in place of the one that varies."""

    def __init__(self, sample, dtype, seed=0):
        self.sample = sample
        rng = np.random.default_rng(zlib.crc32(f"{sample.text}{dtype.name}{seed}".encode()))
        types = [dtype if d == varying(sample) else d for d, _ in sample.args]
        drawn = [draw(rng, d, s, sample.lo, sample.hi) for d, (_, s) in zip(types, sample.args)]
        self.types, self.dtype = types, dtype
        self.given, self.wide = [v for v, _ in drawn], [w for _, w in drawn]

    def operands(self, change=lambda v: v):
        return [tensor(change(v), d) for v, d in zip(self.given, self.types)]

    def run(self, operands=None):
        operands = self.operands() if operands is None else operands
        return self.sample.call(*operands)


def varying(sample):
    """The element type of a sample that stands for every type, or None."""
    types = [d for d, _ in sample.args]
    if tn.float32 in types:
        return tn.float32
    if sample.family in ("elementwise", "reduction") and types:
        return types[0]
    return None


def as_type(want, name):
    """The reference rounded to the result's type."""
    with np.errstate(all="ignore"):
        if name != "bfloat16":
            return np.asarray(want).astype(name)
        return np.asarray(want).astype(np.float32)


def check_close(got, want, roundings):
    """Equal up to `roundings` units of the last place, of the largest value where values cancel."""
    name = got.dtype.name
    want = np.asarray(want)
    assert got.shape == want.shape, f"shape {got.shape}, NumPy {want.shape}"
    kinds = {"b": "b", "i": "i", "u": "i", "f": "f", "c": "c"}
    got_kind = "f" if name == "bfloat16" else np.dtype(name).kind
    assert kinds[got_kind] == kinds[want.dtype.kind], f"{name}, NumPy {want.dtype}"
    got = numpy_of(got)
    if not is_float(tn.dtype(name)):
        np.testing.assert_array_equal(got, want.astype(got.dtype))
        return
    rounded = as_type(want, name)
    with np.errstate(all="ignore"):
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        error = np.abs(got.astype(want.dtype if want.dtype.kind == "c" else np.complex128) - want)
        finite = np.abs(want[np.isfinite(want)])
        scale = max(finite.max() if finite.size else 0, 1e-30)
        allowed = roundings * EPS[name] * (np.abs(want) + min(scale, 1) * 0.5)
    wrong = ~(same | (error <= allowed))
    assert not wrong.any(), (
        f"{name}: {got[wrong][:3]}, NumPy {want[wrong][:3]}, "
        f"off by {(error / (EPS[name] * np.maximum(np.abs(want), 1e-300)))[wrong][:3]} ulp"
    )


def check_results(got, want, roundings):
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want), f"{len(got)} results, NumPy {len(want)}"
        for g, w in zip(got, want):
            check_close(g, w, roundings)
    else:
        check_close(got, want, roundings)
