"""References for convolutions and pooling: the definitions, one tap after the other."""

import numpy as np


def per_axis(value, axes):
    value = np.atleast_1d(value).tolist()
    return value * axes if len(value) == 1 else value


def sides(padding, axes):
    padding = np.atleast_1d(padding).tolist()
    if len(padding) == 2 * axes:
        return list(zip(padding[::2], padding[1::2]))
    return [(p, p) for p in per_axis(padding, axes)]


def conv(x, w, stride=1, padding=0, input_dilation=1, kernel_dilation=1, groups=1):
    """out[n, o, y] = sum of w[o, c, k] * spread[n, group(o) + c, y * stride + k * dilation]"""
    axes = x.ndim - 2
    stride, step = per_axis(stride, axes), per_axis(kernel_dilation, axes)
    spread = spread_out(x, per_axis(input_dilation, axes), sides(padding, axes))
    kernel = w.shape[2:]
    extents = [
        (n - (k - 1) * d - 1) // s + 1
        for n, k, d, s in zip(spread.shape[2:], kernel, step, stride)
    ]
    out = np.zeros((x.shape[0], w.shape[0], *extents), np.result_type(x, w))
    channels, per_group = w.shape[1], w.shape[0] // groups
    for o, c, *k in np.ndindex(*w.shape):
        seen = [
            slice(i * d, i * d + (n - 1) * s + 1, s) for i, d, n, s in zip(k, step, extents, stride)
        ]
        out[:, o] += w[(o, c, *k)] * spread[(slice(None), o // per_group * channels + c, *seen)]
    return out


def spread_out(x, dilation, padding):
    """Zeros between the elements of the spatial axes and around them; negative padding cuts."""
    extents = [(n - 1) * d + 1 if n else 0 for n, d in zip(x.shape[2:], dilation)]
    spread = np.zeros((*x.shape[:2], *extents), x.dtype)
    spread[(slice(None), slice(None), *(slice(None, None, d) for d in dilation))] = x
    wide = [(max(lo, 0), max(hi, 0)) for lo, hi in padding]
    spread = np.pad(spread, [(0, 0), (0, 0), *wide])
    cut = [
        slice(max(-lo, 0), n - max(-hi, 0)) for (lo, hi), n in zip(padding, spread.shape[2:])
    ]
    return spread[(slice(None), slice(None), *cut)]


def channels_second(x):
    return np.moveaxis(x, -1, 1)


def any_layout(f):
    """`f` is written for channels first."""

    def g(x, w, *bias, channels_last=False, **more):
        if not channels_last:
            return f(x, w, *bias, **more)
        out = f(channels_second(x), channels_second(w), *bias, **more)
        return np.moveaxis(out, 1, -1)

    return g


def mirrored(w):
    return np.flip(w, tuple(range(2, w.ndim)))


def biased(y, bias):
    return y + bias.reshape(-1, *[1] * (y.ndim - 2)) if bias is not None else y


@any_layout
def conv_general(x, w, flip=False, **more):
    return conv(x, mirrored(w) if flip else w, **more)


def same(n, k, stride, dilation):
    total = max(0, (-(-n // stride) - 1) * stride + (k - 1) * dilation + 1 - n)
    return [total // 2, total - total // 2]


@any_layout
def conv_layer(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1, padding_mode="given"):
    axes = x.ndim - 2
    if padding_mode == "same":
        steps = zip(x.shape[2:], w.shape[2:], per_axis(stride, axes), per_axis(dilation, axes))
        padding = sum((same(*of) for of in steps), [])
    padding = 0 if padding_mode == "valid" else padding
    return biased(conv(x, w, stride, padding, 1, dilation, groups), bias)


def conv_transpose(
    x, w, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1,
    channels_last=False,
):
    """Every element of x adds the kernel to the result, as often as the stride says apart."""
    if channels_last:  # to [channels, channels out / groups, ...]
        x, w = channels_second(x), channels_second(w)
        w = np.concatenate([np.swapaxes(part, 0, 1) for part in np.split(w, groups)])
        out = conv_transpose(x, w, bias, stride, padding, output_padding, groups, dilation)
        return np.moveaxis(out, 1, -1)
    axes = x.ndim - 2
    stride, dilation = per_axis(stride, axes), per_axis(dilation, axes)
    more, cut = per_axis(output_padding, axes), sides(padding, axes)
    full = [
        (n - 1) * s + d * (k - 1) + 1 + p
        for n, k, s, d, p in zip(x.shape[2:], w.shape[2:], stride, dilation, more)
    ]
    per_group, out_group = x.shape[1] // groups, w.shape[1]
    out = np.zeros((x.shape[0], out_group * groups, *full), np.result_type(x, w))
    for c, *i in np.ndindex(*x.shape[1:]):
        for o, *k in np.ndindex(*w.shape[1:]):
            place = [a * s + b * d for a, s, b, d in zip(i, stride, k, dilation)]
            to = (slice(None), c // per_group * out_group + o, *place)
            out[to] += x[(slice(None), c, *i)] * w[(c, o, *k)]
    kept = [slice(lo, n - hi) for n, (lo, hi) in zip(full, cut)]
    return biased(out[(slice(None), slice(None), *kept)], bias)


def places_of(extents, size, step, dilation):
    each = zip(extents, size, step, dilation)
    places = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in each]
    assert min(places) > 0, "no window fits"
    return places


def windows(x, size, step, dilation=1):
    """The windows over the trailing axes: [..., places, elements of a window]."""
    axes = len(size)
    step, dilation = per_axis(step, axes), per_axis(dilation, axes)
    front, back = x.shape[: x.ndim - axes], x.shape[x.ndim - axes :]
    places = places_of(back, size, step, dilation)
    out = np.empty((*front, *places, *size), x.dtype)
    for at in np.ndindex(*places, *size):
        y, k = at[:axes], at[axes:]
        from_x = [i * s + j * d for i, s, j, d in zip(y, step, k, dilation)]
        out[(Ellipsis, *at)] = x[(Ellipsis, *from_x)]
    return out


def window(x, size, step=1, dilation=1):
    return windows(x, np.atleast_1d(size).tolist(), step, dilation)


def window_fold(ct, extents, step=1, dilation=1):
    extents = np.atleast_1d(extents).tolist()
    axes = len(extents)
    step, dilation = per_axis(step, axes), per_axis(dilation, axes)
    front = ct.shape[: ct.ndim - 2 * axes]
    places, size = np.split(np.array(ct.shape[len(front) :]), 2)
    assert places_of(extents, size, step, dilation) == places.tolist()
    out = np.zeros((*front, *extents), ct.dtype)
    for at in np.ndindex(*ct.shape[len(front) :]):
        y, k = at[:axes], at[axes:]
        to = [i * s + j * d for i, s, j, d in zip(y, step, k, dilation)]
        out[(Ellipsis, *to)] += ct[(Ellipsis, *at)]
    return out


def pooled(x, kernel_size, stride, padding, dilation, fill, channels_last, fold):
    x = channels_second(x) if channels_last else x
    axes = x.ndim - 2
    size = per_axis(kernel_size, axes)
    padded = np.pad(x, [(0, 0), (0, 0), *sides(padding, axes)], constant_values=fill)
    spread = windows(padded, size, size if stride is None else stride, dilation)
    y = fold(spread, tuple(range(-axes, 0)))
    return np.moveaxis(y, 1, -1) if channels_last else y


def max_pool(x, kernel_size, stride=None, padding=0, dilation=1, channels_last=False):
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    fold = lambda v, axes: v.max(axes)
    return pooled(x, kernel_size, stride, padding, dilation, least, channels_last, fold)


def avg_pool(
    x, kernel_size, stride=None, padding=0, count_include_pad=True, channels_last=False
):
    fold = lambda v, axes: v.sum(axes)
    args = kernel_size, stride, padding, 1, 0, channels_last, fold
    ones = np.ones_like(x)
    if count_include_pad:
        return pooled(x, *args) / np.prod(per_axis(kernel_size, x.ndim - 2))
    return pooled(x, *args) / pooled(ones, *args)


CONVOLUTIONS = {
    "conv": any_layout(conv),
    "conv_general": conv_general,
    "conv1d": conv_layer,
    "conv2d": conv_layer,
    "conv3d": conv_layer,
    "conv_transpose1d": conv_transpose,
    "conv_transpose2d": conv_transpose,
    "conv_transpose3d": conv_transpose,
    "convolve": lambda x, y, mode="full": np.convolve(x, y, mode),
    "window": window,
    "window_fold": window_fold,
    "max_pool": max_pool,
    "avg_pool": avg_pool,
}
