"""What every op of the table should give, by NumPy. Operands come in the order of the sample, as
NumPy arrays (floats widened to float64), attributes as keywords."""

import math

import numpy as np

from reference_conv import CONVOLUTIONS
from reference_fft import FFT
from reference_indexing import INDEXING
from reference_layers import LAYERS
from reference_linalg import LINALG, WITHOUT_LINALG
from reference_numpy_names import NUMPY_NAMES
from reference_random import DRAWN, RANDOM
from reference_torch import TORCH
from tenon.nn import losses

erf = np.vectorize(math.erf, otypes=[np.float64])
erfc = np.vectorize(math.erfc, otypes=[np.float64])
lgamma = np.vectorize(
    lambda x: math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x), otypes=[np.float64]
)


def erfinv(y):
    from statistics import NormalDist

    def one(v):
        if abs(v) >= 1:
            return math.copysign(math.inf, v) if abs(v) == 1 else math.nan
        x = NormalDist().inv_cdf((v + 1) / 2) / math.sqrt(2)
        for _ in range(2):  # Newton removes what the first guess lacks
            x -= (math.erf(x) - v) * math.sqrt(math.pi) / 2 * math.exp(x * x)
        return x

    return np.vectorize(one, otypes=[np.float64])(y)


def polygamma(x, order=0):
    """By recurrence up to 40, where Euler and Maclaurin need few terms, in extended precision."""
    x = np.asarray(x, np.longdouble)
    result, n = np.zeros_like(x), order
    poles = (x < 0) & (x == np.floor(x)) & (n % 2 == 0)  # where it has two signs
    for _ in range(60):
        step = x < 40
        result = result + np.where(step, x ** -(n + 1), 0)
        x = x + step
    sign, factorial = (-1) ** (n + 1), math.factorial(n)
    bernoulli = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66]
    tail = -np.log(x) if n == 0 else math.factorial(n - 1) / x**n
    tail = tail + factorial / (2 * x ** (n + 1))
    for k, b in enumerate(bernoulli, 1):
        tail = tail + b * math.factorial(2 * k + n - 1) / (math.factorial(2 * k) * x ** (2 * k + n))
    return np.where(poles, np.nan, sign * (factorial * result + tail)).astype(np.float64)


def sigmoid(x):
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1) / (1 + small)


def glu(x, axis=-1):
    a, b = np.split(x, 2, axis)
    return a * sigmoid(b)


def softplus(x):
    return np.logaddexp(0, x)


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def np_dtype(dtype):
    """The NumPy type of a Tenon type; bfloat16 as float32."""
    return np.dtype({"bfloat16": "float32"}.get(dtype.name, dtype.name))


def astype(x, dtype):
    kind = np_dtype(dtype)
    if x.dtype.kind == "f" and kind.kind in "iu":
        limits = np.iinfo(kind)
        return np.clip(np.nan_to_num(np.trunc(x)), limits.min, limits.max).astype(kind)
    return x.astype(kind)


def bitcast(x, dtype):
    return x.view(np_dtype(dtype))


def diag(x, k=0):
    return np.diag(x, k)


def cumulative(x, axis, mode="sum", reverse=False, exclusive=False):
    f = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[mode]
    x = np.flip(x, axis) if reverse else x
    y = f.accumulate(x, axis=axis, dtype=x.dtype) if x.size else x
    if exclusive:
        first = np.full_like(np.take(y, [0], axis), {"sum": 0, "prod": 1}[mode])
        y = np.concatenate([first, np.delete(y, -1, axis)], axis)
    return np.flip(y, axis) if reverse else y


def flattened(f):
    """Of the flattened array when no axis is given."""

    def g(x, axis=None, **more):
        return f(x.reshape(-1) if axis is None else x, axis=axis or 0, **more)

    return g


def logcumsumexp(x, axis):
    return np.logaddexp.accumulate(x, axis=axis)


def as_strided(x, shape, strides, offset=0):
    flat = x.reshape(-1)
    out = np.empty(shape, x.dtype)
    for i in np.ndindex(*shape):
        out[i] = flat[offset + sum(a * b for a, b in zip(i, strides))]
    return out


def dot(x, y, lhs_contract, rhs_contract, lhs_batch=(), rhs_batch=()):
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    a, b = [None] * x.ndim, [None] * y.ndim
    for p, q in zip(lhs_batch, rhs_batch):
        a[p] = b[q] = next(letters)
    batch = "".join(a[p] for p in lhs_batch)
    for p, q in zip(lhs_contract, rhs_contract):
        a[p] = b[q] = next(letters)
    free_a = [i for i, c in enumerate(a) if c is None]
    free_b = [i for i, c in enumerate(b) if c is None]
    for i in free_a:
        a[i] = next(letters)
    for i in free_b:
        b[i] = next(letters)
    out = batch + "".join(a[i] for i in free_a) + "".join(b[i] for i in free_b)
    return einsum(x, y, equation=f"{''.join(a)},{''.join(b)}->{out}")


def einsum(*operands, equation):
    if operands[0].dtype == bool:
        return np.einsum(equation, *(o.astype(int) for o in operands)) > 0
    return np.einsum(equation, *operands)


def boolean_product(f):
    """NumPy's product of booleans is or-and too, but not in every function."""

    def g(x, y, **more):
        if x.dtype == bool:
            return f(x.astype(int), y.astype(int), **more) > 0
        return f(x, y, **more)

    return g


def addmm(c, a, b, alpha=1.0, beta=1.0):
    alpha, beta = (int(v) if v == int(v) else v for v in (alpha, beta))
    product = boolean_product(np.matmul)(a, b)
    return (c if beta == 1 else beta * c) + (product if alpha == 1 else alpha * product)


def one_hot(x, num_classes, dtype=None):
    return (x[..., None] == np.arange(num_classes)).astype(np_dtype(dtype) if dtype else np.float32)


def sort(x, axis=-1, descending=False, stable=True):
    if not descending:
        return np.sort(x, axis=axis)
    return np.take_along_axis(x, argsort(x, axis, True), axis)


def argsort(x, axis=-1, descending=False, stable=True):
    if not descending:
        return np.argsort(x, axis=axis, stable=True)
    _, rank = np.unique(x, return_inverse=True)
    return np.argsort(-rank.reshape(x.shape), axis=axis, stable=True)


def top_k(x, k, axis=-1):
    places = np.take(argsort(x, axis, True), range(k), axis)
    return np.take_along_axis(x, places, axis), places


def pairs(pad_width, rank):
    if len(pad_width) == 1:
        return [(pad_width[0],) * 2] * rank
    if len(pad_width) == 2:
        return [tuple(pad_width)] * rank
    return list(zip(pad_width[::2], pad_width[1::2]))


def pad(x, pad_width, mode="constant", constant_values=0):
    more = {"constant_values": constant_values} if mode == "constant" else {}
    return np.pad(x, pairs(pad_width, x.ndim), mode, **more)


def round_to(x, decimals=0):
    return np.round(x, decimals)


def unflatten(x, axis, shape):
    axis %= x.ndim
    known = -math.prod(shape) if -1 in shape else 1
    shape = [x.shape[axis] // known if n == -1 else n for n in shape]
    return x.reshape(*x.shape[:axis], *shape, *x.shape[axis + 1 :])


def flatten(x, start_axis=0, end_axis=-1):
    if x.ndim == 0:
        return x.reshape(1)
    start, end = start_axis % x.ndim, end_axis % x.ndim
    return x.reshape(*x.shape[:start], math.prod(x.shape[start : end + 1]), *x.shape[end + 1 :])


def expand(x, shape):
    lead = len(shape) - x.ndim
    return np.broadcast_to(x, [x.shape[i - lead] if n == -1 else n for i, n in enumerate(shape)])


def tensordot(x, y, axes=2, x2_axes=None):
    axes = (axes, x2_axes) if x2_axes is not None else axes if isinstance(axes, int) else axes[0]
    return boolean_product(np.tensordot)(x, y, axes=axes)


def split(f):
    return lambda x, sections=None, indices=None, axis=0: f(x, sections or list(indices), axis)


def linspace(start, stop, num=50, dtype=None, endpoint=True):
    values = np.linspace(start, stop, num, endpoint=endpoint)
    return np.floor(values).astype(np_dtype(dtype)) if dtype else values.astype(np.float32)


def arange(start, stop=None, step=1, dtype=None):
    start, stop = (0, start) if stop is None else (start, stop)
    values = np.arange(start, stop, step)
    if dtype:
        return values.astype(np_dtype(dtype))
    return values.astype(np.float32) if values.dtype.kind == "f" else values


def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


def sign(x):
    if x.dtype.kind != "c":
        return np.sign(x)
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size))


def floats(f):
    """Functions of reals take integers as floats, here of enough bits."""
    return lambda *xs, **more: f(
        *(x.astype(np.float64) if x.dtype.kind in "biu" else x for x in xs), **more
    )


def typed_like(fill):
    return lambda x, dtype=None: np.full(x.shape, fill, np_dtype(dtype) if dtype else x.dtype)


def filled(fill):
    return lambda shape, dtype=None: np.full(shape, fill, np_dtype(dtype) if dtype else np.float32)


def eye(n_rows, n_cols=None, k=0, dtype=None):
    return np.eye(n_rows, n_cols, k, np_dtype(dtype) if dtype else np.float32)


def iota(shape, axis=0, dtype=None):
    coordinates = np.indices(shape)[axis] if shape else np.zeros(())
    return coordinates.astype(np_dtype(dtype) if dtype else np.int64)


def full(shape, fill_value, dtype=None):
    kind = (
        np_dtype(dtype)
        if dtype
        else {int: np.int64, float: np.float32, bool: bool}[type(fill_value)]
    )
    return np.full(shape, fill_value, kind)


def full_like(x, fill, dtype=None):
    return np.broadcast_to(fill, x.shape).astype(np_dtype(dtype) if dtype else x.dtype)


def reduced(f):
    """Sums and products with our result types: NumPy's of at least 64 bits for integers."""
    return lambda x, axis=None, dtype=None, keepdims=False: f(
        x,
        axis=None if axis is None else tuple(axis),
        dtype=np_dtype(dtype) if dtype else None,
        keepdims=keepdims,
    )


def tuple_axes(f):
    """NumPy takes tuples of axes, not lists."""
    return lambda *xs, **more: f(
        *xs, **{k: tuple(v) if isinstance(v, list) else v for k, v in more.items()}
    )


def argreduce(x, axis, mode="max"):
    return (np.argmax if mode == "max" else np.argmin)(x, axis=axis)


def isin(x, y, invert=False):
    return np.isin(x, y, invert=invert, assume_unique=False)


def gelu_tanh(x):
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


# Ops that NumPy lacks, names differently or types differently; all others are np.<name or alias>.
REFERENCES = (
    LAYERS
    | INDEXING
    | RANDOM
    | CONVOLUTIONS
    | FFT
    | LINALG
    | TORCH
    | NUMPY_NAMES
    | {
        "relu": lambda x: np.maximum(x, 0),
        "relu6": lambda x: np.clip(x, 0, 6),
        "leaky_relu": lambda x, negative_slope=0.01: np.where(x < 0, x * negative_slope, x),
        "sigmoid": sigmoid,
        "log_sigmoid": lambda x: -softplus(-x),
        "silu": lambda x: x * sigmoid(x),
        "gelu": lambda x: np.maximum(x, -40) * erfc(-x / math.sqrt(2)) / 2,
        "gelu_tanh": gelu_tanh,
        "softplus": softplus,
        "softsign": lambda x: x / (1 + np.abs(x)),
        "elu": elu,
        "selu": lambda x: SELU_SCALE * elu(x, SELU_ALPHA),
        "celu": lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha)),
        "mish": lambda x: x * np.tanh(softplus(x)),
        "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
        "hard_tanh": lambda x, min_val=-1.0, max_val=1.0: np.clip(x, min_val, max_val),
        "gelu_fast_approx": lambda x: x * sigmoid(1.702 * x),
        "glu": glu,
        "hard_shrink": lambda x, lambd=0.5: np.where(np.abs(x) <= lambd, 0, x),
        "prelu": lambda x, weight: np.where(x > 0, x, weight * x),
        "relu2": lambda x: np.maximum(x, 0) ** 2,
        "softmin": lambda x, axis=-1: LAYERS["softmax"](-x, axis=(axis,)),
        "softshrink": lambda x, lambd=0.5: np.where(np.abs(x) <= lambd, 0, x - sign(x) * lambd),
        "step": lambda x, threshold=0.0: (x > threshold).astype(x.dtype),
        "divmod": lambda x, y: (np.floor_divide(x, y), np.remainder(x, y)),
        "reciprocal": floats(lambda x: 1 / x),
        "sign": sign,
        "rsqrt": floats(lambda x: 1 / np.sqrt(x)),
        "erf": floats(erf),
        "erfc": floats(erfc),
        "erfinv": floats(erfinv),
        "lgamma": floats(lgamma),
        "digamma": floats(polygamma),
        "polygamma": floats(polygamma),
        "astype": astype,
        "bitcast": bitcast,
        "stop_gradient": lambda x: x,
        "copy": lambda x: x,
        "contiguous": lambda x: x,
        "make_complex": lambda re, im: re + 1j * im,
        "imag": lambda x: np.imag(x),
        "conj": lambda x: np.conj(x) if x.dtype.kind == "c" else x,
        "nan_to_num": nan_to_num,
        "round": round_to,
        "clip": lambda x, lo=None, hi=None: np.clip(x, lo, hi),
        "iota": iota,
        "full": full,
        "zeros": filled(0),
        "ones": filled(1),
        "zeros_like": typed_like(0),
        "ones_like": typed_like(1),
        "full_like": full_like,
        "arange": arange,
        "linspace": linspace,
        "eye": eye,
        "identity": lambda n, dtype=None: eye(n, dtype=dtype),
        "tri": lambda n, m=None, k=0, dtype=None: np.tri(
            n, m, k, np_dtype(dtype) if dtype else np.float32
        ),
        "meshgrid": lambda *xs, indexing="xy": np.meshgrid(*xs, indexing=indexing),
        "cumulative": cumulative,
        "cummax": flattened(lambda x, axis: np.maximum.accumulate(x, axis=axis)),
        "cummin": flattened(lambda x, axis: np.minimum.accumulate(x, axis=axis)),
        "logcumsumexp": flattened(floats(logcumsumexp)),
        "cumulative_sum": flattened(
            lambda x, axis, dtype=None, include_initial=False: np.cumulative_sum(
                x, axis=axis, dtype=dtype and np_dtype(dtype), include_initial=include_initial
            )
        ),
        "cumulative_prod": flattened(
            lambda x, axis, dtype=None, include_initial=False: np.cumulative_prod(
                x, axis=axis, dtype=dtype and np_dtype(dtype), include_initial=include_initial
            )
        ),
        "diff": lambda x, prepend=None, append=None, axis=-1, n=1: np.diff(
            x,
            n,
            axis,
            **{k: v for k, v in (("prepend", prepend), ("append", append)) if v is not None},
        ),
        "diag": diag,
        "as_strided": as_strided,
        "dot": dot,
        "einsum": einsum,
        "vecdot": boolean_product(lambda x, y, axis=-1: np.vecdot(x, y, axis=axis)),
        "tensordot": tensordot,
        "matmul": boolean_product(np.matmul),
        "bmm": boolean_product(np.matmul),
        "inner": boolean_product(np.inner),
        "addmm": addmm,
        "linear": lambda x, w, b=None: x @ w.T if b is None else x @ w.T + b,
        "gather_mm": lambda x, y, i=slice(None), j=slice(None): x[i] @ y[j],
        "embedding": lambda w, i: w[i],
        "one_hot": one_hot,
        "reshape": lambda x, shape: x.reshape(shape),
        "permute_dims": lambda x, axes=None: np.transpose(x, axes),
        "expand_dims": lambda x, axis: np.expand_dims(x, tuple(axis)),
        "flatten": flatten,
        "unflatten": unflatten,
        "expand": expand,
        "concat": lambda *xs, axis=0: np.concatenate(xs, axis=axis),
        "stack": lambda *xs, axis=0: np.stack(xs, axis=axis),
        "split": split(np.split),
        "array_split": split(np.array_split),
        "tile": lambda x, repetitions: np.tile(x, repetitions),
        "pad": pad,
        "pad_with": lambda x, v, pad_width, mode="constant": pad(x, pad_width, mode, v),
        "argreduce": argreduce,
        "sum": reduced(np.sum),
        "prod": reduced(np.prod),
        "isin": isin,
        "sort": sort,
        "argsort": argsort,
        "top_k": top_k,
        "partition": lambda x, kth, axis=-1: np.sort(np.partition(x, kth, axis), axis),
        "argpartition": lambda x, kth, axis=-1: np.argsort(
            np.partition(x, kth, axis) * 0 + x, axis, stable=True
        ),
        "unique_values": np.unique,
        "trace": lambda x, dtype=None, **more: np.trace(x, dtype=dtype and np_dtype(dtype), **more),
        "searchsorted": lambda x, y, sorter=None, side="left", batch_dims=0: np.stack(
            [np.searchsorted(a, b, side) for a, b in zip(x, y)]
        )
        if batch_dims
        else np.searchsorted(x, y, side, sorter),
    }
)

# References that need the operands in their own type: they look at bits.
OF_BITS = {"bitcast", "nextafter"}

# Whose values NumPy cannot tell, with the reason.
WITHOUT_REFERENCE = {
    "empty": "its values do not matter",
    "empty_like": "its values do not matter",
    **DRAWN,
    **WITHOUT_LINALG,
    **{getattr(losses, f).__name__: "test_losses.py compares with PyTorch" for f in losses.__all__},
}


def reference(op, aliases):
    """The reference of an op, or None."""
    if op in REFERENCES:
        return REFERENCES[op]
    for name in (op, *aliases):
        if hasattr(np, name):
            return tuple_axes(getattr(np, name))
    return None
