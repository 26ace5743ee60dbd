"""Calls of tensors as PyTorch has them, which must give the same there and here.

tools/record_tensors.py evaluates them with PyTorch and keeps the results in
tests/data/torch_tensors.npz; test_torch_tensors.py evaluates them here.
"""

import numpy as np

RNG = np.random.default_rng(5)
ARRAYS = {
    "x": RNG.normal(size=(3, 4)).round(1).astype(np.float32),
    "y": RNG.normal(size=(2, 3, 4)).round(2).astype(np.float32),
    "n": np.array([[1, np.nan, 3, np.nan], [4, 2, 0, 1], [5, 5, np.nan, 2]], np.float32),
    "i": np.array([[4, 1, 4, 2], [0, 0, 3, 3], [7, 5, 6, 5]]),
    "v": RNG.normal(size=6).astype(np.float32),
    "at": np.array([[0, 2], [1, 0]]),
    "rows": np.array([2, 0, 0]),
    "w": RNG.normal(size=(2, 2)).astype(np.float32),
    "m": np.array([[True, False, True, True]] * 3),
}

# `t` is the library: torch or tenon.
CALLS = [
    # values and indices
    "x.max(dim=1)",
    "y.max(dim=-2, keepdim=True)",
    "x.max(1, keepdim=True)",
    "n.max(dim=1)",
    "i.max(dim=0)",
    "t.max(x, dim=0)",
    "x.min(dim=1)",
    "n.min(dim=0, keepdim=True)",
    "t.min(i, dim=1)",
    "x.sort(dim=0)",
    "x.sort(dim=1, descending=True)",
    "n.sort(dim=1)",
    "n.sort(dim=1, descending=True)",
    "i.sort(dim=1, stable=True, descending=True)",
    "t.sort(y, dim=1)",
    "x.median(dim=1)",
    "x.median(dim=0, keepdim=True)",
    "n.median(dim=1)",
    "i.median(dim=1)",
    "x.cummax(dim=1)",
    "n.cummax(dim=1)",
    "i.cummax(dim=1)",
    "t.cummin(n, dim=0)",
    "x.topk(2, dim=1)",
    # without indices
    "x.amax(dim=1)",
    "y.amin(dim=(0, 2), keepdim=True)",
    "x.sum(dim=1, keepdim=True)",
    "x.mean(dim=0)",
    "i.prod(dim=1)",
    "x.argmax(dim=1)",
    "x.argmin(dim=0, keepdim=True)",
    "x.argsort(dim=1, descending=True)",
    "x.cumsum(dim=1)",
    "x.cumprod(dim=0)",
    "x.logsumexp(dim=1)",
    "x.softmax(dim=0)",
    "x.logcumsumexp(dim=1)",
    "x.all(dim=1)",
    "m.any(dim=0)",
    # samples
    "x.std(dim=1)",
    "x.std(1, keepdim=True)",
    "x.std(dim=1, unbiased=False)",
    "x.std(unbiased=True)",
    "y.var(dim=(0, 2))",
    "t.var(x, dim=0, unbiased=False)",
    # parts
    "x.split(2, dim=1)",
    "x.split(3, dim=1)",
    "x.split([1, 3], dim=1)",
    "t.split(y, [1, 2], dim=1)",
    "x.chunk(2)",
    "v.chunk(4)",
    "x.chunk(3, dim=1)",
    "x.unbind()",
    "y.unbind(dim=1)",
    "x.narrow(1, 1, 2)",
    "y.narrow(dim=-1, start=0, length=3)",
    "t.narrow(x, 0, -2, 2)",
    "x.index_select(0, rows)",
    "y.index_select(dim=1, index=rows)",
    "t.index_select(v, 0, rows)",
    "x.take(rows)",
    # by index
    "x.gather(1, at)",
    "x.gather(dim=0, index=at)",
    "t.gather(y, 2, t.zeros_like(at)[None])",
    "x.scatter(1, at, w)",
    "x.scatter(0, at, w)",
    "x.scatter(dim=1, index=at, src=w)",
    "x.scatter(1, at, 7.0)",
    "x.scatter_add(1, at, w)",
    "x.scatter_add(dim=0, index=at, src=w)",
    # axes
    "y.transpose(0, 1)",
    "y.transpose(-1, 0)",
    "x.transpose(1, 0)",
    "x.transpose(dim0=0, dim1=1)",
    "t.transpose(y, 1, 2)",
    "x.t()",
    "v.t()",
    "y.permute(2, 0, 1)",
    "y.movedim(0, 2)",
    "y.swapdims(0, 2)",
    "y.flatten(start_dim=1)",
    "y.flatten(0, 1)",
    "x.unflatten(dim=1, sizes=(2, 2))",
    "x.unsqueeze(dim=1)",
    "x[:1].squeeze(dim=0)",
    "y.diagonal(dim1=1, dim2=2)",
    "x.flip(dims=(1,))",
    "x.roll(shifts=1, dims=1)",
    # repeats
    "v.repeat(2, 3)",
    "x.repeat(2, 2)",
    "x.repeat(2, 1, 3)",
    "x.repeat_interleave(2, dim=1)",
    "x.tile((2, 1))",
    "x[:1].expand_as(x)",
    # the rest
    "x.where(m, -x)",
    "x.tril(diagonal=1)",
    "x.triu(diagonal=-1)",
    "x.lerp(-x, 0.25)",
    "x.lerp(x * 2, t.sigmoid(x))",
    "t.lerp(x, -x, 0.75)",
    "t.bmm(y, y.transpose(1, 2))",
    "t.cdist(x, x + 1)",
    "t.cdist(y, x, p=1.0)",
    "t.cdist(x, x, p=3.0)",
    "t.cdist(x, -x, p=float('inf'))",
    "x.diff(n=2, dim=1)",
    "x.diff(dim=0)",
    "t.linspace(0, 1, steps=5)",
    "t.stack(tensors=[x, x], dim=1)",
    "t.cat([x, x], dim=1)",
]


def results(value):
    """One array or several."""
    several = value if isinstance(value, (tuple, list)) else [value]
    return [np.asarray(part) for part in several]
