"""References for the ops that read and write at computed places."""

import numpy as np


def wrapped(indices, size):
    """Negative indices count from the end, those out of bounds are clamped."""
    return np.clip(np.where(indices < 0, indices + size, indices), 0, max(size - 1, 0))


def take(x, indices, axis=None):
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis)
    return np.take(x, wrapped(indices, x.shape[axis]), axis)


def take_along_axis(x, indices, axis=-1):
    return np.take_along_axis(x, wrapped(indices, x.shape[axis]), axis)


def each_example(f, batch_dims, values, *indices, axes, **attrs):
    """f on every example of `values`; indices that lack batch axes serve all of them."""
    rank = max(i.ndim for i in indices)
    rows = [i.reshape((1,) * (rank - i.ndim) + i.shape) for i in indices]
    rows = [np.broadcast_to(i, values[0].shape[:1] + i.shape[1:]) for i in rows]
    axes = [a - 1 for a in axes]
    return np.stack(
        [f(*row, axes=axes, batch_dims=batch_dims - 1, **attrs) for row in zip(*values, *rows)]
    )


def gather(x, *indices, axes, batch_dims=0, outside="clamp"):
    if batch_dims:
        return each_example(gather, batch_dims, [x], *indices, axes=axes, outside=outside)
    if outside == "drop":
        ok = np.ones((), bool)
        for i, a in zip(indices, axes):
            ok = ok & (i >= 0) & (i < x.shape[a])
        found = gather(x, *(wrapped(i * ok, x.shape[a]) for i, a in zip(indices, axes)), axes=axes)
        return np.where(under(ok, found.ndim, min(axes)), found, 0).astype(x.dtype)
    indices = [np.clip(i, 0, x.shape[a] - 1) for i, a in zip(indices, axes)]
    rest = [i for i in range(x.ndim) if i not in axes]
    moved = np.moveaxis(x, axes, range(len(axes)))
    found = moved[tuple(np.broadcast_arrays(*indices))]  # index axes first, then the rest
    index_rank = found.ndim - len(rest)
    before = sum(1 for r in rest if r < min(axes))
    return np.moveaxis(found, range(index_rank), range(before, before + index_rank))


def inside(indices, size):
    """Where an index, a negative one counted from the end, lies in its axis: only those write."""
    return (indices >= -size) & (indices < size)


def update(old, new, mode):
    return {
        "set": lambda: new,
        "add": lambda: old + new,
        "mul": lambda: old * new,
        "max": lambda: np.maximum(old, new),
        "min": lambda: np.minimum(old, new),
    }[mode]()


def under(ok, rank, first):
    """A condition on index points, under the shape of what they index."""
    return ok.reshape(ok.shape + (1,) * (rank - ok.ndim - first))


def scatter(x, updates, *indices, axes, mode="set", batch_dims=0, outside="drop", wraps=False):
    if batch_dims:
        return each_example(
            scatter, batch_dims, [x, updates], *indices, axes=axes, mode=mode, outside=outside
        )
    if outside == "clamp":
        indices = [np.clip(i, 0, x.shape[a] - 1) for i, a in zip(indices, axes)]
    places = gather(
        np.arange(x.size).reshape(x.shape),
        *(wrapped(i, x.shape[a]) for i, a in zip(indices, axes)),
        axes=axes,
    )
    ok = np.ones((), bool)
    for i, a in zip(indices, axes):
        ok = ok & inside(i, x.shape[a]) & (wraps | (i >= 0))
    ok = np.broadcast_to(under(ok, places.ndim, min(axes)), places.shape)
    out = x.reshape(-1).copy()
    values = np.broadcast_to(updates, places.shape).astype(x.dtype)
    for place, value, wanted in zip(places.reshape(-1), values.reshape(-1), ok.reshape(-1)):
        if wanted:
            out[place] = update(out[place], value, mode)
    return out.reshape(x.shape)


def put_along_axis(x, indices, values, axis=-1, mode="set"):
    places = np.take_along_axis(
        np.arange(x.size).reshape(x.shape), wrapped(indices, x.shape[axis]), axis
    )
    ok = np.broadcast_to(inside(indices, x.shape[axis]), places.shape)
    out = x.reshape(-1).copy()
    values = np.broadcast_to(values, places.shape).astype(x.dtype)
    for place, value, wanted in zip(places.reshape(-1), values.reshape(-1), ok.reshape(-1)):
        if wanted:
            out[place] = update(out[place], value, mode)
    return out.reshape(x.shape)


def segment_sum(x, ids, num_segments):
    out = np.zeros((num_segments, *x.shape[1:]), x.dtype)
    for row, s in zip(x, ids):
        if 0 <= s < num_segments:
            out[s] += row
    return out


def clamped_starts(x, sizes, starts):
    return [int(np.clip(s, 0, n - k)) for s, n, k in zip(starts, x.shape, sizes)]


def dynamic_slice(x, *starts, sizes):
    at = clamped_starts(x, sizes, starts)
    return x[tuple(slice(a, a + k) for a, k in zip(at, sizes))]


def dynamic_update_slice(x, new, *starts):
    at = clamped_starts(x, new.shape, starts)
    out = x.copy()
    out[tuple(slice(a, a + k) for a, k in zip(at, new.shape))] = new
    return out


def slices(x, start, stop, step=None, axis=None):
    axes = range(len(start)) if axis is None else axis
    found = [slice(None)] * x.ndim
    for a, b, e, s in zip(axes, start, stop, step or (1,) * len(start)):
        found[a] = slice(b, e, s)
    return tuple(found)


def slice_update(x, new, **where):
    out = x.copy()
    out[slices(x, **where)] = new
    return out


INDEXING = {
    "take": take,
    "take_along_axis": take_along_axis,
    "gather": gather,
    "dynamic_slice": dynamic_slice,
    "dynamic_update_slice": dynamic_update_slice,
    "scatter": scatter,
    "put_along_axis": put_along_axis,
    "segment_sum": segment_sum,
    "slice_update": slice_update,
    "scatter_add": lambda *xs, axes: scatter(*xs, axes=axes, mode="add", wraps=True),
    "slice": lambda x, **where: x[slices(x, **where)],
}
