"""References for functions that have PyTorch's names, by NumPy."""

import numpy as np


def chunk(x, chunks, axis=0):
    size = -(-x.shape[axis] // chunks)
    return np.split(x, range(size, x.shape[axis], size), axis)


def narrow(x, axis, start, length):
    begin = start[0] % x.shape[axis]
    return np.take(x, range(begin, begin + length), axis)


def cdist(x1, x2, p=2.0):
    apart = x1[..., :, None, :] - x2[..., None, :, :]
    return np.sum(np.abs(apart) ** p, axis=-1) ** (1 / p)


def adaptive(fold):
    def pooled(x, output_size, channels_last=False):
        first = 1 if channels_last else 2
        for axis in range(first, first + x.ndim - 2):
            n, count = x.shape[axis], output_size[min(axis - first, len(output_size) - 1)]
            if n == 0:
                raise ValueError("there is nothing in a window")
            windows = [range(i * n // count, -(-(i + 1) * n // count)) for i in range(count)]
            x = np.stack([fold(np.take(x, w, axis), axis=axis) for w in windows], axis)
        return x

    return pooled


def pixel_shuffle(x, upscale_factor, channels_last=False):
    x = np.moveaxis(x, -1, -3) if channels_last else x
    *batch, c, h, w = x.shape
    r, rank = upscale_factor, len(batch)
    x = x.reshape(*batch, c // r**2, r, r, h, w)
    x = x.transpose(*range(rank), *(rank + k for k in (0, 3, 1, 4, 2)))
    x = x.reshape(*batch, c // r**2, h * r, w * r)
    return np.moveaxis(x, -3, -1) if channels_last else x


def pixel_unshuffle(x, downscale_factor, channels_last=False):
    x = np.moveaxis(x, -1, -3) if channels_last else x
    r = downscale_factor
    parts = [x[..., i::r, k::r] for i in range(r) for k in range(r)]
    x = np.stack(parts, -3)  # [..., c, r * r, h, w]
    x = x.reshape(*x.shape[:-4], -1, *x.shape[-2:])
    return np.moveaxis(x, -3, -1) if channels_last else x


TORCH = {
    "adaptive_avg_pool": adaptive(np.mean),
    "adaptive_max_pool": adaptive(np.max),
    "cdist": cdist,
    "chunk": chunk,
    "expand_as": lambda x, other: np.broadcast_to(x, other.shape),
    "index_select": lambda x, indices, axis: np.take(x, indices, axis),
    "lerp": lambda x, end, weight: x + weight * (end - x),
    "narrow": narrow,
    "pixel_shuffle": pixel_shuffle,
    "pixel_unshuffle": pixel_unshuffle,
}
