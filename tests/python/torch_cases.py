"""Functions written twice, for PyTorch and for Tenon, whose gradients must agree.

tools/record_gradients.py runs the first and keeps inputs, results and gradients in
tests/data/torch_gradients.npz; test_torch_gradients.py runs the second. Each side imports this file
without having the other library.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = F = None
try:
    import flat
    import tenon as tn
except ImportError:
    tn = None


@dataclass
class Case:
    name: str
    inputs: list  # functions from a random generator to an array
    theirs: Callable
    ours: Callable

    def draw(self):
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return [make(rng) for make in self.inputs]


def listed(recorded, case, kind):
    found = []
    while (key := f"{case.name}/{kind}{len(found)}") in recorded:
        found.append(recorded[key])
    return found


def compare(case, recorded, tolerance, dtype=None):
    """Values and gradients, as computed in `dtype`, against those recorded."""

    def tensors(kind):
        arrays = listed(recorded, case, kind)
        return [tn.asarray(x.astype(dtype) if dtype and x.dtype.kind == "f" else x) for x in arrays]

    inputs = tensors("in")
    floating = [i for i, x in enumerate(listed(recorded, case, "in")) if x.dtype.kind in "fc"]

    def f(given):
        args = list(inputs)
        for i, x in zip(floating, given):
            args[i] = x
        out = case.ours(*args)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    values, gradients = flat.vjp(f, [inputs[i] for i in floating], tensors("ct"))
    for kind, got in (("out", values), ("grad", gradients)):
        want = listed(recorded, case, kind)
        assert len(got) == len(want)
        for g, w in zip(got, want):
            atol = tolerance * max(1, np.max(np.abs(w), initial=0))
            np.testing.assert_allclose(g.numpy(), w, tolerance, atol, err_msg=kind)


def real(*shape, lo=-2, hi=2):
    return lambda rng: rng.uniform(lo, hi, shape)


def positive(*shape):
    return real(*shape, lo=0.3, hi=2)


def cplx(*shape):
    return lambda rng: rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)


def below(high, *shape):
    return lambda rng: rng.integers(0, high, shape)


def with_zeros(*shape):
    """A zero in every other row, two in the last."""

    def make(rng):
        x = rng.uniform(-2, 2, shape)
        x[::2, 1] = 0
        x[-1, :2] = 0
        return x

    return make


def definite(*shape):
    """Symmetric positive definite matrices."""

    def make(rng):
        x = rng.uniform(-1, 1, shape)
        return x @ np.swapaxes(x, -1, -2) + 0.5 * np.eye(shape[-1])

    return make


def permutation(n):
    return lambda rng: rng.permutation(n)


def same(name, *inputs, of=""):
    """The function has one name in both libraries."""
    return Case(
        f"{name} of {of}" if of else name,
        list(inputs),
        lambda *x: getattr(torch, name)(*x),
        lambda *x: getattr(tn, name)(*x),
    )


def of_complex(name, *inputs):
    return same(name, *inputs, of="complex numbers")


def activation(name, theirs=None):
    return Case(
        name,
        [real(3, 5)],
        lambda x: getattr(F, theirs or name)(x),
        lambda x: getattr(tn, name)(x),
    )


def channels_last(f):
    """Tenon's images are [n, h, w, c]; PyTorch's [n, c, h, w]."""
    return lambda x, *rest: f(x.permute(0, -1, *range(1, x.ndim - 1)), *rest).movedim(1, -1)


ELEMENTWISE = [
    *[same(f, real(3, 4)) for f in ("sin", "cos", "exp", "exp2", "expm1", "tanh", "sinh", "atan")],
    *[same(f, real(3, 4)) for f in ("asinh", "erf", "erfc", "square", "abs", "cosh", "sigmoid")],
    *[same(f, positive(3, 4)) for f in ("log", "log2", "log10", "log1p", "sqrt", "rsqrt")],
    *[same(f, positive(3, 4)) for f in ("reciprocal", "lgamma")],
    *[same(f, real(3, 4, lo=-0.9, hi=0.9)) for f in ("asin", "acos", "atanh", "erfinv", "tan")],
    *[same(f, real(3, 4), real(4)) for f in ("add", "subtract", "multiply", "atan2", "hypot")],
    *[same(f, real(3, 4), real(3, 1)) for f in ("maximum", "minimum", "logaddexp", "copysign")],
    same("divide", real(3, 1), positive(4)),
    same("pow", positive(3, 4), real(4)),
    same("fmod", real(3, 4), positive(4)),
    same("remainder", real(3, 4), positive(4)),
    Case(
        "square root selected safely",
        [real(3, 4)],
        lambda x: torch.where(x > 0, torch.where(x > 0, x, 1).sqrt(), 0),
        lambda x: tn.where(x > 0, tn.sqrt(tn.where(x > 0, x, 1)), 0),
    ),
    Case(
        "x**3 at zero and below",
        [with_zeros(4, 3)],
        lambda x: x**3 + x**2 + x**1 + x**0,
        lambda x: x**3 + x**2 + x**1 + x**0,
    ),
    Case("clip", [real(3, 4)], lambda x: x.clamp(-1, 0.5), lambda x: tn.clip(x, -1, 0.5)),
    *[activation(f) for f in ("relu", "elu", "celu", "selu", "silu", "mish", "gelu", "softplus")],
    *[activation(f) for f in ("softsign", "hardswish", "leaky_relu", "relu6")],
    activation("log_sigmoid", "logsigmoid"),
    activation("hard_tanh", "hardtanh"),
    Case(
        "gelu_tanh",
        [real(3, 5)],
        lambda x: F.gelu(x, approximate="tanh"),
        lambda x: tn.gelu_tanh(x),
    ),
]

COMPLEX = [
    *[of_complex(f, cplx(3, 4)) for f in ("exp", "sin", "tanh", "sqrt", "log", "reciprocal")],
    *[of_complex(f, cplx(3, 4)) for f in ("abs", "real", "imag", "conj")],
    *[of_complex(f, cplx(3, 4), cplx(4)) for f in ("multiply", "divide")],
    of_complex("matmul", cplx(2, 3), cplx(3, 4)),
    of_complex("prod", cplx(4)),
    Case(
        "|z|^2 of a product with a real matrix",
        [cplx(3, 4), real(4, 2)],
        lambda z, w: (z @ w.to(z.dtype)).abs() ** 2,
        lambda z, w: tn.abs(z @ w.astype(z.dtype)) ** 2,
    ),
]

REDUCTIONS = [
    Case("sum", [real(3, 4)], lambda x: x.sum(0), lambda x: tn.sum(x, axis=0)),
    Case("mean", [real(2, 3, 4)], lambda x: x.mean((0, 2)), lambda x: tn.mean(x, axis=(0, 2))),
    Case("max", [real(3, 4)], lambda x: x.amax(1), lambda x: tn.max(x, axis=1)),
    Case("min", [real(3, 4)], lambda x: x.amin(), lambda x: tn.min(x)),
    Case("prod", [real(3, 4)], lambda x: x.prod(1), lambda x: tn.prod(x, axis=1)),
    Case(
        "prod with zeros", [with_zeros(5, 4)], lambda x: x.prod(1), lambda x: tn.prod(x, axis=1)
    ),
    Case("var", [real(3, 4)], lambda x: x.var(1), lambda x: tn.var(x, axis=1, correction=1)),
    Case(
        "std",
        [real(3, 4)],
        lambda x: x.std(correction=0),
        lambda x: tn.std(x),
    ),
    Case(
        "logsumexp", [real(3, 4)], lambda x: x.logsumexp(1), lambda x: tn.logsumexp(x, axis=1)
    ),
    Case(
        "median of five", [real(3, 5)], lambda x: x.median(1)[0], lambda x: tn.median(x, axis=1)
    ),
    Case(
        "quantile",
        [real(3, 5)],
        lambda x: torch.quantile(x, 0.3, dim=1),
        lambda x: tn.quantile(x, 0.3, axis=1),
    ),
    Case(
        "norm", [real(3, 4)], lambda x: x.norm(dim=1), lambda x: tn.sqrt(tn.sum(x * x, axis=1))
    ),
    Case("trace", [real(4, 4)], lambda x: torch.trace(x), lambda x: tn.trace(x)),
]

CUMULATIVE = [
    Case("cumsum", [real(3, 4)], lambda x: x.cumsum(1), lambda x: tn.cumulative_sum(x, axis=1)),
    Case("cumprod", [real(3, 4)], lambda x: x.cumprod(1), lambda x: tn.cumulative_prod(x, axis=1)),
    Case(
        "cumprod with zeros",
        [with_zeros(5, 4)],
        lambda x: x.cumprod(1),
        lambda x: tn.cumulative_prod(x, axis=1),
    ),
    Case("cummax", [real(3, 4)], lambda x: x.cummax(1)[0], lambda x: tn.cummax(x, axis=1)),
    Case("cummin", [real(3, 4)], lambda x: x.cummin(0)[0], lambda x: tn.cummin(x, axis=0)),
    Case(
        "logcumsumexp",
        [real(3, 4)],
        lambda x: x.logcumsumexp(1),
        lambda x: tn.logcumsumexp(x, axis=1),
    ),
    Case("diff", [real(3, 5)], lambda x: x.diff(n=2), lambda x: tn.diff(x, n=2)),
]

ORDER = [
    Case("sort", [real(3, 5)], lambda x: x.sort(1)[0], lambda x: tn.sort(x, axis=1)),
    Case(
        "sort downwards",
        [real(5, 3)],
        lambda x: x.sort(0, descending=True)[0],
        lambda x: tn.sort(x, axis=0, descending=True),
    ),
    Case("top_k", [real(3, 6)], lambda x: x.topk(2)[0], lambda x: tn.top_k(x, 2)[0]),
    Case(
        "gather of rows, some twice",
        [real(4, 3), below(4, 6)],
        lambda x, i: x[i],
        lambda x, i: tn.take(x, i, axis=0),
    ),
    Case(
        "take_along_axis",
        [real(3, 5), below(5, 3, 2)],
        lambda x, i: x.gather(1, i),
        lambda x, i: tn.take_along_axis(x, i, axis=1),
    ),
    Case(
        "scatter of distinct places",
        [real(6), real(3), lambda rng: rng.permutation(6)[:3]],
        lambda x, u, i: x.scatter(0, i, u),
        lambda x, u, i: tn.put_along_axis(x, i, u, axis=0),
    ),
    Case(
        "scatter_add, some places twice",
        [real(5, 3), real(4, 3), below(5, 4)],
        lambda x, u, i: x.index_add(0, i, u),
        lambda x, u, i: x.at[i].add(u),
    ),
    Case(
        "segment_sum",
        [real(6, 2), below(3, 6)],
        lambda x, i: torch.zeros(3, 2, dtype=x.dtype).index_add(0, i, x),
        lambda x, i: tn.segment_sum(x, i, 3),
    ),
    Case(
        "embedding",
        [real(7, 3), below(7, 2, 4)],
        lambda w, i: F.embedding(i, w),
        lambda w, i: tn.embedding(w, i),
    ),
    Case(
        "where",
        [real(3, 4), real(4)],
        lambda x, y: torch.where(x > y, x * y, y),
        lambda x, y: tn.where(x > y, x * y, y),
    ),
]

MOVEMENTS = [
    Case(
        "slices with steps",
        [real(6, 5)],
        lambda x: x[1:6:2, ::2],
        lambda x: x[1:6:2, ::2],
    ),
    Case(
        "pad by reflection",
        [real(1, 2, 5)],
        lambda x: F.pad(x, (2, 1), mode="reflect"),
        lambda x: tn.pad(x, [(0, 0), (0, 0), (2, 1)], mode="reflect"),
    ),
    Case(
        "concat and stack",
        [real(2, 3), real(4, 3)],
        lambda x, y: torch.stack([torch.cat([x, y]), torch.cat([y, x])]),
        lambda x, y: tn.stack([tn.concat([x, y]), tn.concat([y, x])]),
    ),
    Case("roll", [real(3, 4)], lambda x: x.roll(2, 1), lambda x: tn.roll(x, 2, axis=1)),
    Case("tril", [real(4, 4)], lambda x: x.tril(-1), lambda x: tn.tril(x, k=-1)),
    same("kron", real(2, 3), real(3, 2)),
    Case(
        "repeat",
        [real(2, 3)],
        lambda x: x.repeat_interleave(3, 1),
        lambda x: tn.repeat(x, 3, axis=1),
    ),
    Case(
        "interpolate linearly",
        [real(1, 4, 5, 2)],
        channels_last(
            lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        ) if torch else None,
        lambda x: tn.interpolate(x, scale_factor=2, mode="linear", channels_last=True),
    ),
]

PRODUCTS = [
    Case("matmul", [real(3, 4), real(4, 2)], lambda x, y: x @ y, lambda x, y: x @ y),
    Case(
        "matmul that broadcasts",
        [real(2, 1, 3, 4), real(5, 4, 2)],
        lambda x, y: x @ y,
        lambda x, y: x @ y,
    ),
    Case("matrix times vector", [real(2, 3, 4), real(4)], lambda x, y: x @ y, lambda x, y: x @ y),
    Case("vector times matrix", [real(4), real(4, 3)], lambda x, y: x @ y, lambda x, y: x @ y),
    Case(
        "linear",
        [real(2, 5, 4), real(3, 4), real(3)],
        lambda x, w, b: F.linear(x, w, b),
        lambda x, w, b: tn.linear(x, w, b),
    ),
    Case(
        "einsum of three",
        [real(3, 4), real(4, 2, 3), real(2, 5)],
        lambda x, y, z: torch.einsum("ij,jki,kl->li", x, y, z),
        lambda x, y, z: tn.einsum("ij,jki,kl->li", [x, y, z]),
    ),
    Case(
        "einsum with a diagonal",
        [real(3, 3, 4)],
        lambda x: torch.einsum("iij->ji", x),
        lambda x: tn.einsum("iij->ji", [x]),
    ),
    Case(
        "tensordot",
        [real(2, 3, 4), real(4, 3, 5)],
        lambda x, y: torch.tensordot(x, y, ([1, 2], [1, 0])),
        lambda x, y: tn.tensordot(x, y, [1, 2], [1, 0]),
    ),
    Case("outer", [real(3), real(4)], lambda x, y: torch.outer(x, y), lambda x, y: tn.outer(x, y)),
]

LAYERS = [
    Case("softmax", [real(3, 5)], lambda x: x.softmax(-1), lambda x: tn.softmax(x, axis=-1)),
    Case(
        "log_softmax", [real(4, 3)], lambda x: x.log_softmax(0), lambda x: tn.log_softmax(x, axis=0)
    ),
    Case(
        "softmax with -inf",
        [real(3, 5)],
        lambda x: x.masked_fill(x > 1, -torch.inf).softmax(-1),
        lambda x: tn.softmax(tn.where(x > 1, -tn.inf, x), axis=-1),
    ),
    Case(
        "layer_norm",
        [real(3, 6), real(6), real(6)],
        lambda x, w, b: F.layer_norm(x, (6,), w, b),
        lambda x, w, b: tn.layer_norm(x, w, b),
    ),
    Case(
        "rms_norm",
        [real(3, 6), real(6)],
        lambda x, w: F.rms_norm(x, (6,), w, eps=1e-5),
        lambda x, w: tn.rms_norm(x, w),
    ),
    Case(
        "group_norm",
        [real(2, 5, 6), real(6), real(6)],
        lambda x, w, b: F.group_norm(x.movedim(-1, 1), 3, w, b).movedim(1, -1),
        lambda x, w, b: tn.group_norm(x, w, b, num_groups=3),
    ),
    Case(
        "batch_norm",
        [real(4, 3), real(3), positive(3), real(3), real(3)],
        lambda x, m, v, w, b: (x - m) / (v + 1e-5).sqrt() * w + b,
        lambda x, m, v, w, b: tn.batch_norm(x, m, v, w, b),
    ),
    Case(
        "attention",
        [real(2, 2, 4, 3), real(2, 2, 5, 3), real(2, 2, 5, 3)],
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
        lambda q, k, v: tn.scaled_dot_product_attention(q, k, v),
    ),
    Case(
        "causal attention",
        [real(1, 2, 4, 3), real(1, 2, 4, 3), real(1, 2, 4, 3)],
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        lambda q, k, v: tn.scaled_dot_product_attention(q, k, v, is_causal=True),
    ),
]

WINDOWS = [
    Case(
        "conv1d with a bias",
        [real(2, 3, 7), real(4, 3, 3), real(4)],
        lambda x, w, b: F.conv1d(x, w, b, padding=1),
        lambda x, w, b: tn.conv1d(x, w, b, padding=1),
    ),
    Case(
        "conv2d with strides, dilation and groups",
        [real(2, 4, 7, 6), real(6, 2, 3, 2)],
        lambda x, w: F.conv2d(x, w, stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2),
        lambda x, w: tn.conv2d(x, w, stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2),
    ),
    Case(
        "conv3d",
        [real(1, 2, 4, 3, 4), real(3, 2, 2, 2, 3)],
        lambda x, w: F.conv3d(x, w),
        lambda x, w: tn.conv3d(x, w),
    ),
    Case(
        "conv_transpose2d",
        [real(2, 4, 3, 4), real(4, 3, 3, 2)],
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1),
        lambda x, w: tn.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1),
    ),
    Case(
        "max_pool",
        [real(2, 2, 6, 5)],
        lambda x: F.max_pool2d(x, (3, 2), stride=(2, 1), padding=(1, 0)),
        lambda x: tn.max_pool(x, (3, 2), stride=(2, 1), padding=(1, 0)),
    ),
    Case(
        "avg_pool",
        [real(2, 2, 6, 5)],
        lambda x: F.avg_pool2d(x, 2, stride=1, padding=1, count_include_pad=False),
        lambda x: tn.avg_pool(x, (2, 2), stride=(1, 1), padding=(1, 1), count_include_pad=False),
    ),
]

LOSSES = [
    Case(
        "cross_entropy",
        [real(5, 4), below(4, 5)],
        lambda x, i: F.cross_entropy(x, i),
        lambda x, i: tn.cross_entropy(x, i),
    ),
    Case(
        "cross_entropy, smoothed",
        [real(5, 4), below(4, 5)],
        lambda x, i: F.cross_entropy(x, i, label_smoothing=0.1, reduction="none"),
        lambda x, i: tn.cross_entropy(x, i, label_smoothing=0.1, reduction="none"),
    ),
    Case(
        "mean squared error",
        [real(5, 4), real(5, 4)],
        lambda x, y: F.mse_loss(x, y),
        lambda x, y: tn.mean(tn.square(x - y)),
    ),
    Case(
        "absolute error",
        [real(5, 4), real(5, 4)],
        lambda x, y: F.l1_loss(x, y),
        lambda x, y: tn.mean(tn.abs(x - y)),
    ),
    Case(
        "Huber loss",
        [real(5, 4), real(5, 4)],
        lambda x, y: F.huber_loss(x, y),
        lambda x, y: tn.mean(
            tn.where(tn.abs(x - y) < 1, 0.5 * (x - y) ** 2, tn.abs(x - y) - 0.5)
        ),
    ),
    Case(
        "binary cross entropy with logits",
        [real(5, 4), real(5, 4, lo=0, hi=1)],
        lambda x, y: F.binary_cross_entropy_with_logits(x, y),
        lambda x, y: tn.mean(tn.softplus(x) - x * y),
    ),
    Case(
        "divergence of distributions",
        [real(3, 4), real(3, 4)],
        lambda x, y: F.kl_div(x.log_softmax(1), y.softmax(1), reduction="sum"),
        lambda x, y: tn.sum(
            tn.softmax(y, axis=1) * (tn.log_softmax(y, axis=1) - tn.log_softmax(x, axis=1))
        ),
    ),
    Case(
        "cosine similarity",
        [real(3, 4), real(3, 4)],
        lambda x, y: F.cosine_similarity(x, y),
        lambda x, y: tn.vecdot(x, y) / tn.sqrt(tn.vecdot(x, x) * tn.vecdot(y, y)),
    ),
]

LINALG = [
    Case(
        "cholesky",
        [definite(2, 3, 3)],
        lambda a: torch.linalg.cholesky((a + a.mT) / 2),
        lambda a: tn.linalg.cholesky((a + a.mT) / 2),
    ),
    Case(
        "solve",
        [real(2, 3, 3), real(2, 3, 2)],
        lambda a, b: torch.linalg.solve(a, b),
        lambda a, b: tn.linalg.solve(a, b),
    ),
    Case("inv", [real(2, 3, 3)], lambda a: torch.linalg.inv(a), lambda a: tn.linalg.inv(a)),
    Case("det", [real(2, 3, 3)], lambda a: torch.linalg.det(a), lambda a: tn.linalg.det(a)),
    Case(
        "slogdet",
        [real(2, 3, 3)],
        lambda a: torch.linalg.slogdet(a)[1],
        lambda a: tn.linalg.slogdet(a)[1],
    ),
    Case(
        "eigh up to signs",
        [real(2, 4, 4)],
        lambda a: [(r := torch.linalg.eigh(a + a.mT))[0], r[1] ** 2],
        lambda a: [(r := tn.linalg.eigh(a + a.mT))[0], r[1] ** 2],
    ),
    Case(
        "svd up to signs",
        [real(2, 4, 3)],
        lambda a: [(r := torch.linalg.svd(a, full_matrices=False))[1], r[0] ** 2, r[2] ** 2],
        lambda a: [(r := tn.linalg.svd(a, full_matrices=False))[1], r[0] ** 2, r[2] ** 2],
    ),
    Case(
        "qr up to signs",
        [real(2, 4, 3)],
        lambda a: [(r := torch.linalg.qr(a))[0] ** 2, r[1] ** 2],
        lambda a: [(r := tn.linalg.qr(a))[0] ** 2, r[1] ** 2],
    ),
]

CASES = [
    *ELEMENTWISE,
    *COMPLEX,
    *REDUCTIONS,
    *CUMULATIVE,
    *ORDER,
    *MOVEMENTS,
    *PRODUCTS,
    *LAYERS,
    *WINDOWS,
    *LOSSES,
    *LINALG,
]
