"""References for the ops of neural networks and images, written the long way."""

import math

import numpy as np


def softmax(x, axis=(-1,)):
    e = np.exp(x - np.max(x, axis=tuple(axis), keepdims=True))
    return e / e.sum(axis=tuple(axis), keepdims=True)


def logsumexp(x, axis=None, keepdims=False):
    axis = None if axis is None else tuple(axis)
    top = np.max(x, axis=axis, keepdims=True)
    total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdims else np.squeeze(total, axis)


def log_softmax(x, axis=(-1,)):
    return x - logsumexp(x, axis, True)


def standardised(x, axes, eps):
    mean = x.mean(axis=axes, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axis=axes, keepdims=True) + eps)


def layer_norm(x, weight=1, bias=0, eps=1e-5, normalized_axes=1):
    return standardised(x, tuple(range(-normalized_axes, 0)), eps) * weight + bias


def rms_norm(x, weight=1, eps=1e-5):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * weight


def along(v, axis, rank):
    shape = [1] * rank
    shape[axis] = -1
    return np.reshape(v, shape) if np.ndim(v) else v


def batch_norm(x, mean, var, weight=1, bias=0, eps=1e-5, axis=-1):
    mean, var, weight, bias = (along(v, axis, x.ndim) for v in (mean, var, weight, bias))
    return (x - mean) / np.sqrt(var + eps) * weight + bias


def group_norm(x, weight=1, bias=0, num_groups=1, eps=1e-5, axis=-1):
    moved = np.moveaxis(x, axis, 1)
    groups = moved.reshape(x.shape[0], num_groups, -1)
    y = np.moveaxis(standardised(groups, (2,), eps).reshape(moved.shape), 1, axis)
    return y * along(weight, axis, x.ndim) + along(bias, axis, x.ndim)


def attention(q, k, v, mask=None, scale=None, is_causal=False):
    repeats = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, repeats, 1), np.repeat(v, repeats, 1)
    scores = np.einsum("bhqd,bhkd->bhqk", q, k) * (
        1 / math.sqrt(q.shape[-1]) if scale is None else scale
    )
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if is_causal:
        queries, keys = scores.shape[-2:]
        scores = np.where(np.tri(queries, keys, keys - queries, bool), scores, -np.inf)
    seen = np.isfinite(scores).any(-1, keepdims=True)
    weights = np.where(seen, softmax(np.where(seen, scores, 0)), 0)
    return np.einsum("bhqk,bhkd->bhqd", weights, v)


def rope(x, dims, base=10000.0, traditional=False, scale=1.0, offset=0):
    half = dims // 2
    position = (np.arange(x.shape[-2]) + offset) * scale
    angle = position[:, None] * base ** (-2 * np.arange(half) / dims)
    c, s = np.cos(angle), np.sin(angle)
    out = x.copy()
    a, b = (
        (x[..., 0:dims:2], x[..., 1:dims:2]) if traditional else (x[..., :half], x[..., half:dims])
    )
    first, second = a * c - b * s, a * s + b * c
    if traditional:
        out[..., 0:dims:2], out[..., 1:dims:2] = first, second
    else:
        out[..., :half], out[..., half:dims] = first, second
    return out


def cross_entropy(logits, targets, reduction="mean", label_smoothing=0.0, axis=-1):
    classes = logits.shape[axis]
    logs = log_softmax(logits, (axis,))
    if targets.dtype.kind in "iu":
        targets = np.moveaxis(np.eye(classes)[targets], -1, axis)
    targets = targets * (1 - label_smoothing) + label_smoothing / classes
    losses = -(targets * logs).sum(axis)
    return {"none": losses, "mean": losses.mean(), "sum": losses.sum()}[reduction]


def cubic(t, slope=-0.75):
    t = abs(t)
    if t <= 1:
        return (slope + 2) * t**3 - (slope + 3) * t**2 + 1
    return slope * (t**3 - 5 * t**2 + 8 * t - 4) if t < 2 else 0.0


def resize_matrix(n, to, mode, align_corners):
    m = np.zeros((to, n))
    for i in range(to):
        if mode == "nearest":
            m[i, i * n // to] = 1
            continue
        at = i * (n - 1) / max(to - 1, 1) if align_corners else (i + 0.5) * n / to - 0.5
        if mode == "linear":
            at = min(max(at, 0), n - 1)
        taps = range(-1, 3) if mode == "cubic" else range(2)
        for k in taps:
            place = math.floor(at) + k
            weight = cubic(at - place) if mode == "cubic" else max(0, 1 - abs(at - place))
            m[i, min(max(place, 0), n - 1)] += weight
    return m


def interpolate(
    x, size=None, scale_factor=None, mode="nearest", align_corners=False, channels_last=False
):
    if x.dtype.kind in "biu":
        more = dict(mode=mode, align_corners=align_corners, channels_last=channels_last)
        return interpolate(x.astype(float), size, scale_factor, **more).astype(x.dtype)
    first = 1 if channels_last else 2
    spatial = x.shape[first : first + x.ndim - 2]
    size = [math.floor(n * scale_factor) for n in spatial] if size is None else size
    size = list(size) * len(spatial) if len(size) == 1 else size
    for axis, to in enumerate(size, first):
        m = resize_matrix(x.shape[axis], to, mode, align_corners)
        x = np.moveaxis(np.tensordot(m, x, (1, axis)), 0, axis)
    return x


LAYERS = {
    "softmax": softmax,
    "log_softmax": log_softmax,
    "logsumexp": logsumexp,
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "batch_norm": batch_norm,
    "group_norm": group_norm,
    "scaled_dot_product_attention": attention,
    "rope": rope,
    "cross_entropy": cross_entropy,
    "interpolate": interpolate,
}
