"""Functions that NumPy does not have: written files have those that they use."""
import math

import numpy as np


def _complex(real, imag):
    z = np.empty(np.broadcast_shapes(np.shape(real), np.shape(imag)), np.result_type(real, 1j))
    z.real, z.imag = real, imag
    return z


def _to_integer(x, dtype):
    """Without the fraction, limited to what the type holds; NaN is 0."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    inside = (x > low) & (x < high)
    made = np.where(inside, np.trunc(x), 0).astype(dtype)
    made = np.where(x >= high, np.array(high, dtype), made)
    return np.where(x <= low, np.array(low, dtype), made)


def _integer_quotient(x, y):
    """Rounded towards zero; 0 where y is 0."""
    x, y = np.asarray(x), np.asarray(y)
    safe = np.where(y == 0, np.ones_like(y), y)
    return np.where(y == 0, np.zeros_like(x), (x - np.fmod(x, safe)) // safe)


def _integer_remainder(x, y):
    """With the sign of x; 0 where y is 0."""
    x, y = np.asarray(x), np.asarray(y)
    safe = np.where(y == 0, np.ones_like(y), y)
    return np.where(y == 0, np.zeros_like(x), np.fmod(x, safe))


def _shift_left(x, count):
    x, bits = np.asarray(x), 8 * np.asarray(x).dtype.itemsize
    inside = (count >= 0) & (count < bits)
    return np.where(inside, x << np.where(inside, count, 0).astype(x.dtype), np.zeros_like(x))


def _shift_right(x, count):
    x, bits = np.asarray(x), 8 * np.asarray(x).dtype.itemsize
    inside = (count >= 0) & (count < bits)
    most = x >> np.asarray(bits - 1, x.dtype)
    beyond = most if np.issubdtype(x.dtype, np.signedinteger) else np.zeros_like(x)
    return np.where(inside, x >> np.where(inside, count, 0).astype(x.dtype), beyond)


def _erf(x):
    return np.vectorize(math.erf, otypes=[x.dtype])(x)


def _erfc(x):
    return np.vectorize(math.erfc, otypes=[x.dtype])(x)


def _gelu(x):
    return x * 0.5 * _erfc(x * -0.7071067811865476)


def _gelu_slope(x):
    density = np.exp(x * x * -0.5) * 0.3989422804014327
    return _erfc(x * -0.7071067811865476) * 0.5 + x * density


def _erfinv(x):
    y = np.asarray(x, np.float64)
    tail = np.log1p(-y * y)
    start = 4.330746750799873 + tail / 2
    root = np.copysign(np.sqrt(np.sqrt(start * start - tail / 0.147) - start), y)
    for _ in range(4):
        error = _erf(root) - y
        slope = 2 / math.sqrt(math.pi) * np.exp(-root * root)
        root = root - np.where(slope > 0, error / (slope + root * error), 0)
    root = np.where(np.abs(y) == 1, y * np.inf, np.where(np.abs(y) > 1, np.nan, root))
    return np.where(y == 0, y, root).astype(x.dtype)


def _lgamma(x):
    at = lambda v: math.inf if v <= 0 and v % 1 == 0 else math.lgamma(v)
    return np.vectorize(at, otypes=[x.dtype])(x)


def _windows(x, size, step, dilation):
    """Views of the windows over the last axes: all places, then all elements."""
    axes = tuple(range(x.ndim - len(size), x.ndim))
    reach = tuple((n - 1) * d + 1 for n, d in zip(size, dilation))
    views = np.lib.stride_tricks.sliding_window_view(x, reach, axes)
    places = tuple(slice(None, None, s) for s in step)
    return views[(...,) + places + tuple(slice(None, None, d) for d in dilation)]


def _softmax(x, axis):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def _log_softmax(x, axis):
    x = x - np.max(x, axis=axis, keepdims=True)
    return x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True))


def _layer_norm(x, axes, weight=None, bias=None, eps=1e-5):
    x = x - np.mean(x, axis=axes, keepdims=True)
    y = x / np.sqrt(np.mean(x * x, axis=axes, keepdims=True) + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def _rms_norm(x, weight=None, eps=1e-5):
    y = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)
    return y if weight is None else y * weight


def _attention(q, k, v, mask=None, scale=None, is_causal=False):
    """softmax(scale * q @ k.mT + mask) @ v; a query that sees no key gives 0."""
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    queries, keys = q.shape[2], k.shape[2]
    scores = q * (q.shape[3] ** -0.5 if scale is None else scale) @ k.mT
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if is_causal:
        scores = np.where(np.tri(queries, keys, keys - queries, dtype=bool), scores, -np.inf)
    largest = np.max(scores, axis=-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(largest), largest, 0.0))
    total = np.sum(weights, axis=-1, keepdims=True)
    return weights @ v / np.where(total == 0.0, 1.0, total)


def _argsort(x, axis, descending):
    """Equal elements keep their order; NaN comes last."""
    if descending:
        x = -x if np.issubdtype(x.dtype, np.inexact) else ~x
    return np.argsort(x, axis=axis, stable=True)


def _sort(x, axis, descending):
    return np.take_along_axis(x, _argsort(x, axis, descending), axis)


def _top_k(x, k, axis):
    order = np.take(_argsort(x, axis, True), range(k), axis=axis)
    return np.take_along_axis(x, order, axis), order


def _cumulative(x, axis, mode, reverse, exclusive):
    """Running sums, products or extremes, from the end if asked, without the element itself."""
    x = np.flip(x, axis) if reverse else x
    if exclusive and x.shape[axis]:
        low, high = -np.inf, np.inf
        if not np.issubdtype(x.dtype, np.inexact):
            low, high = np.iinfo(x.dtype).min, np.iinfo(x.dtype).max
        start = {"sum": 0, "prod": 1, "max": low, "min": high}[mode]
        first = np.full_like(np.take(x, [0], axis), start)
        x = np.concatenate([first, np.take(x, range(x.shape[axis] - 1), axis)], axis)
    fold = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[mode]
    made = fold.accumulate(x, axis, dtype=x.dtype)
    return np.flip(made, axis) if reverse else made


def _eig(x):
    values, vectors = np.linalg.eig(x)
    kind = np.result_type(x.dtype, np.complex64)
    return values.astype(kind), vectors.astype(kind)


def _lu_factor(x):
    """L below and U on and above the diagonal; pivots, and the order of rows that they make."""
    lu, n = np.array(x), x.shape[-1]
    pivots = np.zeros(x.shape[:-1], np.int64)
    order = np.broadcast_to(np.arange(n), x.shape[:-1]).copy()
    for at in np.ndindex(x.shape[:-2]):
        a, rows = lu[at], order[at]
        for k in range(n):
            p = pivots[at][k] = k + np.argmax(np.abs(a[k:, k]))
            a[[k, p]], rows[[k, p]] = a[[p, k]], rows[[p, k]]
            if a[k, k] != 0:
                a[k + 1 :, k] /= a[k, k]
            a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return lu, pivots, order


def _solve_triangular(a, b, upper, transpose, unit_diagonal):
    a = np.triu(a) if upper else np.tril(a)
    if unit_diagonal:
        a = a - a * np.eye(a.shape[-1], dtype=a.dtype) + np.eye(a.shape[-1], dtype=a.dtype)
    return np.linalg.solve(a.mT if transpose else a, b)


def _searchsorted(x, values, side, batch_dims, sorter=None):
    x = x if sorter is None else np.take_along_axis(x, sorter, -1)
    if not batch_dims:
        return np.searchsorted(x, values, side).astype(np.int64)
    made = np.empty(np.shape(values), np.int64)
    for at in np.ndindex(x.shape[:batch_dims]):
        made[at] = np.searchsorted(x[at], values[at], side)
    return made


def _places(x, indices, axes, batch_dims):
    """x with the indexed axes after those of the batch, and an index for each of both."""
    shape = np.broadcast_shapes(*(np.shape(i) for i in indices))
    at = [np.broadcast_to(i, shape).astype(np.int64) for i in indices]
    for k in reversed(range(batch_dims)):
        line = [-1 if j == k else 1 for j in range(len(shape))]
        at.insert(0, np.broadcast_to(np.arange(shape[k]).reshape(line), shape))
    places = range(batch_dims, batch_dims + len(axes))
    return np.moveaxis(x, axes, places), at, len(shape) - batch_dims


def _gather(x, indices, axes, batch_dims, outside):
    """Elements at indices, whose axes stand in the place of the first indexed axis."""
    first = axes[0]
    x, at, own = _places(x, indices, axes, batch_dims)
    held = tuple(np.clip(i, 0, n - 1) for i, n in zip(at, x.shape))
    made = x[held]
    if outside.endswith("drop"):
        inside = np.logical_and.reduce([i == j for i, j in zip(at, held)])
        inside = inside.reshape(inside.shape + (1,) * (made.ndim - inside.ndim))
        made = np.where(inside, made, np.zeros_like(made))
    places = range(batch_dims, batch_dims + own)
    return np.moveaxis(made, places, range(first, first + own))


def _scatter(x, updates, indices, axes, mode, batch_dims, outside):
    """x with updates put or combined at indices; those out of range are dropped or clamped."""
    first = axes[0]
    made, at, own = _places(np.array(x), indices, axes, batch_dims)
    updates = np.moveaxis(updates, range(first, first + own), range(batch_dims, batch_dims + own))
    held = tuple(np.clip(i, 0, n - 1) for i, n in zip(at, made.shape))
    if not outside.endswith("clamp"):
        inside = np.logical_and.reduce([i == j for i, j in zip(at, held)])
        held, updates = tuple(i[inside] for i in held), updates[inside]
    if mode == "set":
        made[held] = updates
    else:
        fold = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[mode]
        fold.at(made, held, updates)
    places = range(batch_dims, batch_dims + len(axes))
    return np.moveaxis(made, places, axes)


def _updated(x, index, value):
    made = np.array(x)
    made[index] = value
    return made


def _block(x, starts, sizes):
    starts = [min(max(int(i), 0), n - size) for i, n, size in zip(starts, x.shape, sizes)]
    return tuple(slice(i, i + size) for i, size in zip(starts, sizes))


def _dynamic_slice(x, starts, sizes):
    return x[_block(x, starts, sizes)]


def _dynamic_update_slice(x, update, starts):
    return _updated(x, _block(x, starts, update.shape), update)


def _spread(x, padding, dilation):
    """x, channels second, with zeros between its elements and around them."""
    for k, d in enumerate(dilation):
        before, after = padding[2 * k], padding[2 * k + 1]
        n = x.shape[2 + k]
        length = (n - 1) * d + 1 if n else 0
        wide = length + max(before, 0) + max(after, 0)
        made = np.zeros(x.shape[: 2 + k] + (wide,) + x.shape[3 + k :], x.dtype)
        inner = (slice(None),) * (2 + k)
        made[inner + (slice(max(before, 0), max(before, 0) + length, d),)] = x
        x = made[inner + (slice(max(-before, 0), made.shape[2 + k] - max(-after, 0)),)]
    return x


def _conv(x, w, stride, padding, input_dilation, kernel_dilation, groups, channels_last):
    if channels_last:
        x, w = np.moveaxis(x, -1, 1), np.moveaxis(w, -1, 1)
    x = _spread(x, padding, input_dilation)
    views = _windows(x, w.shape[2:], stride, kernel_dilation)
    views = views.reshape((x.shape[0], groups, -1) + views.shape[2:])
    w = w.reshape((groups, -1) + w.shape[1:])
    axes = len(stride)
    pairs = [1, *range(2 + axes, 2 + 2 * axes)], [*range(1, 2 + axes)]
    made = [np.tensordot(views[:, g], w[g], pairs) for g in range(groups)]
    made = np.concatenate(made, axis=-1)
    return made if channels_last else np.moveaxis(made, -1, 1)


def _conv_weights(
    x, ct, kernel, stride, padding, input_dilation, kernel_dilation, groups, channels_last
):
    """The derivative of _conv in w, times ct."""
    if channels_last:
        x, ct = np.moveaxis(x, -1, 1), np.moveaxis(ct, -1, 1)
    x, axes = _spread(x, padding, input_dilation), len(stride)
    views = _windows(x, kernel, stride, kernel_dilation)
    views = views[(slice(None),) * 2 + tuple(slice(n) for n in ct.shape[2:])]
    views = views.reshape((x.shape[0], groups, -1) + views.shape[2:])
    ct = ct.reshape((ct.shape[0], groups, -1) + ct.shape[2:])
    places = [0, *range(2, 2 + axes)]
    made = [np.tensordot(ct[:, g], views[:, g], (places, places)) for g in range(groups)]
    made = np.concatenate(made, axis=0)
    return np.moveaxis(made, 1, -1) if channels_last else made


def _fold_windows(x, extents, step, dilation):
    """The sum of windows in the places that they came from."""
    axes = len(extents)
    front, places, size = x.shape[: -2 * axes], x.shape[-2 * axes : -axes], x.shape[-axes:]
    made = np.zeros(front + tuple(extents), np.float32 if x.dtype == np.float16 else x.dtype)
    for at in np.ndindex(size):
        first = [i * d for i, d in zip(at, dilation)]
        to = tuple(slice(i, i + (n - 1) * s + 1, s) for i, n, s in zip(first, places, step))
        made[(...,) + to] += x[(...,) + at]
    return made.astype(x.dtype)


def _threefry(key, high, low):
    """Two random words for each counter of two words, by Threefry-2x32 with 20 rounds."""
    k0, k1 = key
    schedule = (k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA))
    a, b = high + k0, low + k1
    for i in range(5):
        for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[i % 2]:
            a = a + b
            b = ((b << np.uint32(turn)) | (b >> np.uint32(32 - turn))) ^ a
        a, b = a + schedule[(i + 1) % 3], b + (schedule[(i + 2) % 3] + np.uint32(i + 1))
    return a, b


def _random_words(key, shape):
    place = np.arange(math.prod(shape), dtype=np.uint64).reshape(shape)
    words = (key[(..., k) + (None,) * len(shape)] for k in (0, 1))
    return _threefry(words, (place >> np.uint64(32)).astype(np.uint32), place.astype(np.uint32))


def _random_bits(key, shape, bits):
    a, b = _random_words(key, shape)
    if bits == 64:
        return a.astype(np.uint64) << np.uint64(32) | b.astype(np.uint64)
    return (a ^ b).astype(f"uint{bits}")


def _random_split(key, shape):
    return np.stack(_random_words(key, shape), axis=-1)


def _random_fold_in(key, data):
    return np.stack(_threefry((key[..., 0], key[..., 1]), np.uint32(0), data), axis=-1)


def _while(go_on, body, operands, carries):
    carry, fixed = tuple(operands[:carries]), operands[carries:]
    while go_on(*carry, *fixed)[0]:
        carry = body(*carry, *fixed)
    return carry


def _scan(body, operands, carries, xs, length, reverse):
    """What body makes of the carry and of slices, one after the other."""
    carry, fixed = operands[:carries], operands[carries + xs :]
    rows = operands[carries : carries + xs]
    made = []
    for i in reversed(range(length)) if reverse else range(length):
        results = body(*carry, *(x[i] for x in rows), *fixed)
        carry = results[:carries]
        made.append(results[carries:])
    made = reversed(made) if reverse else made
    return (*carry, *(np.stack(column) for column in zip(*made)))
