"""References for random numbers: Threefry-2x32 by NumPy. The distributions are checked against
recorded values and their distribution functions in test_random.py."""

import numpy as np


def threefry(key, high, low):
    """Two arrays of words from a key (two words, or arrays of them) and a counter."""
    u32 = np.uint32
    k0, k1 = key[..., 0].astype(u32), key[..., 1].astype(u32)
    schedule = [k0, k1, k0 ^ k1 ^ u32(0x1BD11BDA)]
    with np.errstate(over="ignore"):
        a, b = high.astype(u32) + k0, low.astype(u32) + k1
        for i in range(5):
            for by in [(13, 15, 26, 6), (17, 29, 16, 24)][i % 2]:
                a = a + b
                b = (b << u32(by) | b >> u32(32 - by)) ^ a
            a = a + schedule[(i + 1) % 3]
            b = b + schedule[(i + 2) % 3] + u32(i + 1)
    return a, b


def words(key, shape):
    """For every position in `shape`, after the leading axes of the key."""
    at = np.arange(int(np.prod(shape)), dtype=np.uint64).reshape(shape)
    key = key.reshape(*key.shape[:-1], *[1] * len(shape), 2)
    return threefry(key, at >> np.uint64(32), at & np.uint64(0xFFFFFFFF))


def random_bits(key, shape=(), dtype=None):
    a, b = words(key, shape)
    name = getattr(dtype, "name", "uint32")
    if name == "uint64":
        return a.astype(np.uint64) << np.uint64(32) | b
    return (a ^ b).astype(name)


def random_split(key, num):
    return np.stack(words(key, num), axis=-1)


def random_fold_in(key, data):
    return np.stack(threefry(key, np.zeros_like(data), data), axis=-1)


def random_key(seed):
    wide = seed.astype(np.uint64)
    high = wide >> np.uint64(32) if seed.dtype.itemsize == 8 else np.zeros_like(wide)
    return np.stack([high, wide & np.uint64(0xFFFFFFFF)], axis=-1).astype(np.uint32)


RANDOM = {f.__name__: f for f in (random_bits, random_split, random_fold_in, random_key)}

DRAWN = dict.fromkeys(
    (
        "random_uniform",
        "random_normal",
        "random_truncated_normal",
        "random_multivariate_normal",
        "random_gumbel",
        "random_laplace",
        "random_exponential",
        "random_gamma",
        "random_poisson",
        "random_bernoulli",
        "random_categorical",
        "random_multinomial",
        "random_randint",
        "random_permutation",
        "random_choice",
        "dropout",
    ),
    "test_random.py compares it with recorded values",
)
