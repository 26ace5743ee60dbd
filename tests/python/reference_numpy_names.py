"""What ops with names of NumPy's should give where their arguments come in another order, and what
the segments of JAX should give."""

import numpy as np


def np_dtype(dtype):
    return np.dtype(dtype.name)


def of_list(f):
    """NumPy takes a list where ours takes operands."""
    return lambda *xs, **more: f(xs, **more)


def histogram(x, bins=10, range=None, weights=None, density=False):
    return np.histogram(x.astype(float), bins, range, density=density, weights=weights)


def bincount(x, weights=None, minlength=0, length=None):
    counts = np.bincount(x, weights, max(minlength, length or 0))
    return counts if length is None else counts[:length]


def average(x, weights=None, axis=None, keepdims=False):
    axis = None if axis is None else tuple(axis)
    result, total = np.average(x, axis, weights, True, keepdims=keepdims)
    return result, total


def cov(x, y=None, fweights=None, aweights=None, rowvar=True, bias=False, ddof=None):
    return np.cov(x, y, rowvar, bias, ddof, fweights, aweights)


def unique(x, axis=None, size=None, fill_value=None, equal_nan=True):
    values, first, inverse, counts = np.unique(x, True, True, True, axis, equal_nan=equal_nan)
    axis = 0 if axis is None else axis
    missing = size - values.shape[axis]
    fill = np.take(values, [0], axis) if fill_value is None else fill_value
    shape = list(values.shape)
    shape[axis] = max(missing, 0)
    filler = np.broadcast_to(fill, shape).astype(x.dtype)
    cut = np.take(np.concatenate([values, filler], axis), range(size), axis)
    first = np.concatenate([first, np.full(max(missing, 0), first[0])])[:size]
    counts = np.concatenate([counts, np.zeros(max(missing, 0), int)])[:size]
    return cut, first, inverse.reshape(x.shape if inverse.size == x.size else -1), counts


def gradient(x, spacing=1.0, axis=0, edge_order=1):
    return np.gradient(x, spacing, axis=axis, edge_order=edge_order)


def typed(f):
    def g(*args, dtype=None, **more):
        return np.asarray(f(*args, **more)).astype(np_dtype(dtype) if dtype else np.float32)

    return g


def nan_sum(f):
    def g(x, axis=None, dtype=None, keepdims=False):
        axis = None if axis is None else tuple(axis)
        return f(x, axis=axis, dtype=dtype and np_dtype(dtype), keepdims=keepdims)

    return g


def segments(f, start):
    def g(x, ids, num_segments):
        out = np.full((num_segments, *x.shape[1:]), start(x.dtype), x.dtype)
        for row, i in zip(x, ids):
            if 0 <= i < num_segments:
                out[i] = f(out[i], row)
        return out

    return g


def least(dtype):
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def largest(dtype):
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def interp(x, xp, fp, left=None, right=None, period=None):
    if period is not None:  # points that coincide keep their order
        x, xp = x % period, xp % period
        order = np.argsort(xp, stable=True)
        xp, fp = xp[order], fp[order]
        xp = np.concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = np.concatenate([fp[-1:], fp, fp[:1]])
    return np.interp(x, xp, fp, left, right)


def percentile(x, q, axis=None, keepdims=False, method="linear"):
    return np.percentile(x, q, axis and tuple(axis), method=method, keepdims=keepdims)


NUMPY_NAMES = {
    **{name: of_list(getattr(np, name)) for name in ("vstack", "hstack", "dstack", "column_stack")},
    "delete_elements": np.delete,
    "insert_elements": np.insert,
    "multi_dot": of_list(np.linalg.multi_dot),
    "sinc": lambda x: np.where(x == np.rint(x.real), x == 0, np.sinc(x)),
    "rot90": lambda x, k=1, axes=(0, 1): np.rot90(x, k, tuple(axes)),
    "percentile": percentile,
    "count_in_bins": histogram,
    "bincount": bincount,
    "weighted_mean": average,
    "cov": cov,
    "distinct": unique,
    "slopes": gradient,
    "interp": interp,
    "trapezoid": lambda y, x=None, dx=1.0, axis=-1: np.trapezoid(y, x, dx, axis),
    "fit_polynomial": lambda x, y, w=None, deg=0, rcond=None: np.polyfit(x, y, deg, rcond, w=w),
    "logspace": typed(np.logspace),
    "geomspace": typed(np.geomspace),
    "unravel_index": lambda x, shape: np.unravel_index(x, tuple(shape)),
    "nansum": nan_sum(np.nansum),
    "nanprod": nan_sum(np.nanprod),
    "segment_max": segments(np.maximum, least),
    "segment_min": segments(np.minimum, largest),
    "segment_prod": segments(np.multiply, lambda dtype: 1),
    **{name: getattr(np.fft, name) for name in ("fft2", "ifft2", "rfft2", "irfft2")},
}
