"""Functions that PyTorch does not have. Those of NumPy's prelude say `torch` for `np`."""
import itertools
import math

import torch
import torch.nn.functional as F


def _complex(real, imag):
    return torch.complex(*torch.broadcast_tensors(real, imag))


def _to_integer(x, dtype):
    """Without the fraction, limited to what the type holds; NaN is 0."""
    x, ends = x.to(torch.float64), torch.iinfo(dtype)
    inside = (x < ends.max) & (x > ends.min)
    held = dtype if dtype in (torch.uint8, torch.int8, torch.int16, torch.int32) else torch.int64
    made = torch.where(inside, x.trunc(), 0.0).to(held)
    made = torch.where(x >= ends.max, torch.tensor(ends.max, dtype=held), made)
    return torch.where(x <= ends.min, torch.tensor(ends.min, dtype=held), made)


def _integer_quotient(x, y):
    """Rounded towards zero; 0 where y is 0."""
    made = torch.div(x, torch.where(y == 0, 1, y), rounding_mode="trunc")
    return torch.where(y == 0, 0, made)


def _integer_remainder(x, y):
    """With the sign of x; 0 where y is 0."""
    return torch.where(y == 0, 0, torch.fmod(x, torch.where(y == 0, 1, y)))


def _gelu_slope(x):
    density = torch.exp(x * x * -0.5) * 0.3989422804014327
    return torch.erfc(x * -0.7071067811865476) * 0.5 + x * density


def _shift_left(x, count):
    inside = (count >= 0) & (count < 8 * x.element_size())
    return torch.where(inside, x << torch.where(inside, count, 0), 0)


def _shift_right(x, count):
    bits = 8 * x.element_size()
    inside = (count >= 0) & (count < bits)
    beyond = x >> (bits - 1) if x.dtype.is_signed else torch.zeros_like(x)
    return torch.where(inside, x >> torch.where(inside, count, 0), beyond)


def _cbrt(x):
    return torch.copysign(x.abs().double().pow(1 / 3), x).to(x.dtype)


def _windows(x, size, step, dilation):
    """Views of the windows over the last axes: all places, then all elements."""
    first = x.ndim - len(size)
    for k, (n, s, d) in enumerate(zip(size, step, dilation)):
        x = x.unfold(first + k, (n - 1) * d + 1, s)[..., ::d]
    return x


def _argsort(x, axis, descending):
    """Equal elements keep their order; NaN comes last."""
    if descending:
        x = -x if x.is_floating_point() else ~x
    return torch.sort(x, dim=axis, stable=True).indices


def _sort(x, axis, descending):
    return torch.gather(x, axis, _argsort(x, axis, descending))


def _top_k(x, k, axis):
    order = _argsort(x, axis, True).narrow(axis, 0, k)
    return torch.gather(x, axis, order), order


def _cumulative(x, axis, mode, reverse, exclusive):
    """Running sums, products or extremes, from the end if asked, without the element itself."""
    x = x.flip((axis,)) if reverse else x
    if exclusive and x.shape[axis]:
        low, high = -torch.inf, torch.inf
        if not (x.is_floating_point() or x.is_complex()):
            low, high = torch.iinfo(x.dtype).min, torch.iinfo(x.dtype).max
        start = {"sum": 0, "prod": 1, "max": low, "min": high}[mode]
        first = torch.full_like(x.narrow(axis, 0, 1), start)
        x = torch.cat([first, x.narrow(axis, 0, x.shape[axis] - 1)], axis)
    if mode in ("sum", "prod"):
        made = {"sum": torch.cumsum, "prod": torch.cumprod}[mode](x, axis, dtype=x.dtype)
    else:
        made = {"max": torch.cummax, "min": torch.cummin}[mode](x, axis).values
    return made.flip((axis,)) if reverse else made


def _lu_factor(x):
    """L below and U on and above the diagonal; pivots, and the order of rows that they make."""
    lu, pivots = torch.linalg.lu_factor(x)
    order = torch.lu_unpack(lu, pivots, unpack_data=False)[0].argmax(-2)
    return lu, pivots.long() - 1, order


def _solve_triangular(a, b, upper, transpose, unit_diagonal):
    a, upper = (a.mT, not upper) if transpose else (a, upper)
    return torch.linalg.solve_triangular(a, b, upper=upper, unitriangular=unit_diagonal)


def _searchsorted(x, values, side, batch_dims, sorter=None):
    if not batch_dims:
        return torch.searchsorted(x, values, side=side, sorter=sorter)
    flat = values.reshape(values.shape[:batch_dims] + (-1,)).contiguous()
    return torch.searchsorted(x, flat, side=side, sorter=sorter).reshape(values.shape)


def _places(x, indices, axes, batch_dims):
    """x with the indexed axes after those of the batch, and an index for each of both."""
    at = [i.long() for i in torch.broadcast_tensors(*indices)]
    shape = at[0].shape
    for k in reversed(range(batch_dims)):
        line = [-1 if j == k else 1 for j in range(len(shape))]
        at.insert(0, torch.arange(shape[k], device=x.device).reshape(line).expand(shape))
    places = tuple(range(batch_dims, batch_dims + len(axes)))
    return x.movedim(axes, places), at, len(shape) - batch_dims


def _gather(x, indices, axes, batch_dims, outside):
    """Elements at indices, whose axes stand in the place of the first indexed axis."""
    first = axes[0]
    x, at, own = _places(x, indices, axes, batch_dims)
    held = tuple(i.clamp(0, n - 1) for i, n in zip(at, x.shape))
    made = x[held]
    if outside.endswith("drop"):
        inside = torch.stack([i == j for i, j in zip(at, held)]).all(0)
        inside = inside.reshape(inside.shape + (1,) * (made.ndim - inside.ndim))
        made = torch.where(inside, made, torch.zeros_like(made))
    places = tuple(range(batch_dims, batch_dims + own))
    return made.movedim(places, tuple(range(first, first + own)))


def _scatter(x, updates, indices, axes, mode, batch_dims, outside):
    """x with updates put or combined at indices; those out of range are dropped or clamped."""
    first = axes[0]
    made, at, own = _places(x, indices, axes, batch_dims)
    made = made.clone(memory_format=torch.contiguous_format)
    updates = updates.movedim(
        tuple(range(first, first + own)), tuple(range(batch_dims, batch_dims + own))
    )
    held = tuple(i.clamp(0, n - 1) for i, n in zip(at, made.shape))
    if not outside.endswith("clamp"):
        inside = torch.stack([i == j for i, j in zip(at, held)]).all(0)
        held, updates = tuple(i[inside] for i in held), updates[inside]
    if mode in ("set", "add"):
        made.index_put_(held, updates, accumulate=mode == "add")
    else:
        rows, row = made.reshape(made.shape[: len(held)].numel(), -1), 0
        for i, n in zip(held, made.shape):
            row = row * n + i
        updates = updates.reshape(row.numel(), rows.shape[1])
        row = row.reshape(-1, 1).expand(updates.shape)
        fold = {"mul": "prod", "max": "amax", "min": "amin"}[mode]
        made = rows.scatter_reduce(0, row, updates, fold).reshape(made.shape)
    return made.movedim(tuple(range(batch_dims, batch_dims + len(axes))), axes)


def _updated(x, index, value):
    made = x.clone()
    made[index] = value
    return made


from numpy_prelude import _block, _dynamic_slice, _dynamic_update_slice


def _pad(x, widths, value, mode):
    if mode == "constant":
        flat = [n for pair in reversed(widths) for n in pair]
        if x.is_complex():
            real = F.pad(x.real, flat, value=value.real.item())
            return torch.complex(real, F.pad(x.imag, flat, value=value.imag.item()))
        return F.pad(x, flat, value=value.item())
    for axis, (before, after) in enumerate(widths):
        n = x.shape[axis]
        at = torch.arange(-before, n + after, device=x.device)
        if mode == "edge":
            at = at.clamp(0, n - 1)
        elif mode == "wrap":
            at = at % n
        else:
            at = at % (2 * max(n - 1, 1))
            at = torch.where(at < n, at, 2 * (n - 1) - at)
        x = x.index_select(axis, at)
    return x


def _spread(x, padding, dilation):
    """x, channels second, with zeros between its elements and around them."""
    for k, d in enumerate(dilation):
        if d > 1:
            n = x.shape[2 + k]
            shape = list(x.shape)
            shape[2 + k] = (n - 1) * d + 1
            made = x.new_zeros(shape)
            made[(slice(None),) * (2 + k) + (slice(None, None, d),)] = x
            x = made
    flat = [n for k in reversed(range(len(dilation))) for n in padding[2 * k : 2 * k + 2]]
    return F.pad(x, flat)


def _conv(x, w, stride, padding, input_dilation, kernel_dilation, groups, channels_last):
    if channels_last:
        x, w = x.movedim(-1, 1), w.movedim(-1, 1)
    conv = (F.conv1d, F.conv2d, F.conv3d)[len(stride) - 1]
    x = _spread(x, padding, input_dilation)
    made = conv(x, w, stride=stride, dilation=kernel_dilation, groups=groups)
    return made.movedim(1, -1) if channels_last else made


def _conv_weights(
    x, ct, kernel, stride, padding, input_dilation, kernel_dilation, groups, channels_last
):
    """The derivative of _conv in w, times ct."""
    if channels_last:
        x, ct = x.movedim(-1, 1), ct.movedim(-1, 1)
    x, none = _spread(x, padding, input_dilation), (0,) * len(stride)
    w = x.new_empty((ct.shape[1], x.shape[1] // groups) + tuple(kernel))
    made = torch.ops.aten.convolution_backward(
        ct, x, w, None, stride, none, kernel_dilation, False, none, groups, (False, True, False)
    )[1]
    return made.movedim(1, -1) if channels_last else made


def _fold_windows(x, extents, step, dilation):
    """The sum of windows in the places that they came from."""
    axes = len(extents)
    front, places, size = x.shape[: -2 * axes], x.shape[-2 * axes : -axes], x.shape[-axes:]
    made = x.new_zeros(front + tuple(extents))
    for at in itertools.product(*map(range, size)):
        first = [i * d for i, d in zip(at, dilation)]
        to = tuple(slice(i, i + (n - 1) * s + 1, s) for i, n, s in zip(first, places, step))
        made[(...,) + to] += x[(...,) + at]
    return made


def _threefry(key, high, low):
    """Two random words for each counter of two words, by Threefry-2x32 with 20 rounds."""
    k0, k1 = key
    schedule, word = (k0, k1, k0 ^ k1 ^ 0x1BD11BDA), 0xFFFFFFFF
    a, b = (high + k0) & word, (low + k1) & word
    for i in range(5):
        for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[i % 2]:
            a = (a + b) & word
            b = ((b << turn) & word | (b >> (32 - turn))) ^ a
        a, b = (a + schedule[(i + 1) % 3]) & word, (b + schedule[(i + 2) % 3] + i + 1) & word
    return a, b


def _random_words(key, shape):
    place = torch.arange(math.prod(shape), device=key.device).reshape(shape)
    words = (key[(..., k) + (None,) * len(shape)] for k in (0, 1))
    return _threefry(words, place >> 32, place & 0xFFFFFFFF)


def _random_bits(key, shape, bits):
    a, b = _random_words(key, shape)
    if bits == 64:
        return a << 32 | b
    return (a ^ b).to(torch.uint8) if bits == 8 else (a ^ b) & ((1 << bits) - 1)


def _random_split(key, shape):
    return torch.stack(_random_words(key, shape), dim=-1)


def _random_fold_in(key, data):
    return torch.stack(_threefry((key[..., 0], key[..., 1]), 0, data), dim=-1)


from numpy_prelude import _while, _scan
