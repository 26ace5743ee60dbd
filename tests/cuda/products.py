"""Products of a GPU beside those of the CPU: bounded errors, equal runs. They have a bias and an
activation, or batches whose axes do not lie as one.

    python tests/cuda/products.py    on a machine with a GPU; every line is one shape
"""

import sys

import numpy as np

import tenon as tn

gpu = tn.Device("cuda")
TYPES = {"float16": (tn.float16, 1e-3), "bfloat16": (tn.bfloat16, 8e-3)}
BATCH_TYPES = {"float32": (tn.float32, 3e-6), **TYPES}
SHAPES = [(512, 384, 640), (300, 200, 136), (129, 257, 131)]
TAILS = {
    "bias": lambda y, b: y + b,
    "relu": lambda y, b: tn.relu(y),
    "bias + relu": lambda y, b: tn.relu(y + b),
    "gelu_tanh": lambda y, b: tn.gelu_tanh(y),
    "bias + gelu_tanh": lambda y, b: tn.gelu_tanh(y + b),
    "bias + gelu": lambda y, b: tn.gelu(y + b),
    "bias, wanted twice": lambda y, b: (y + b, tn.relu(y + b)),
}


def values(t):
    return np.asarray(t.to("cpu").astype(tn.float32)).astype(np.float64)


def leaves(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


def drawn(rng, *shape):
    return tn.array(rng.standard_normal(shape).astype(np.float32))


def judged(what, f, here, there, bound):
    """Whether results of a GPU are near those of the CPU, and those of three runs are equal."""
    want = [values(t) for t in leaves(f(*here))]
    runs = [[values(t) for t in leaves(f(*there))] for _ in range(3)]
    error = max(np.linalg.norm(x - y) / np.linalg.norm(y) for x, y in zip(runs[0], want))
    same = all(np.array_equal(x, y) for run in runs[1:] for x, y in zip(run, runs[0]))
    good = same and error < bound
    print(f"{what}: {error:.2g}" + ("" if good else f"   NOT AS IT SHOULD BE: same {same}"))
    return good


def tails(rng):
    """How many products with something after them are not as they should be."""
    bad = 0
    for m, k, n in SHAPES:
        for name, (dtype, bound) in TYPES.items():
            here = [(drawn(rng, m, k) / k**0.5).astype(dtype), drawn(rng, k, n).astype(dtype),
                    drawn(rng, n).astype(dtype)]
            there = [t.to(gpu) for t in here]
            lost = np.asarray(here[0].astype(tn.float32)).copy()
            lost[3, 5] = np.nan
            with_nan = tn.array(lost).astype(dtype).to(gpu)
            for what, tail in TAILS.items():
                f = tn.compile(lambda x, w, b, tail=tail: tail(x @ w, b))
                good = judged(f"{(m, k, n)} {name} {what}", f, here, there, bound)
                is_nan = np.isnan(values(leaves(f(with_nan, *there[1:]))[-1]))
                kept = is_nan[3].all() and is_nan.sum() == n
                if not kept:
                    print("   NaN IS NOT KEPT")
                bad += not (good and kept)
    return bad


def batches(rng):
    """The same of products of heads: tokens lie between the axes of the batch."""
    heads = lambda x: tn.moveaxis(x, -2, -3)
    turned = lambda x: tn.moveaxis(x, -1, -2)
    ways = {
        "scores": lambda q, k: heads(q) @ turned(heads(k)),
        "scores + relu": lambda q, k: tn.relu(heads(q) @ turned(heads(k))),
        "by columns": lambda q, k: turned(heads(q)) @ heads(k),
        "with what lies as one": lambda q, k: heads(q) @ turned(tn.exp(heads(k))),
    }
    bad = 0
    for shape in [(4, 256, 12, 64), (2, 3, 256, 12, 64), (3, 260, 12, 63)]:
        for name, (dtype, bound) in BATCH_TYPES.items():
            here = [(drawn(rng, *shape) / 8).astype(dtype), drawn(rng, *shape).astype(dtype)]
            there = [t.to(gpu) for t in here]
            for what, way in ways.items():
                f = tn.compile(way)
                bad += not judged(f"{shape} {name} {what}", f, here, there, bound)
    return bad


def main():
    rng = np.random.default_rng(0)
    bad = tails(rng) + batches(rng)
    print("all within bounds" if not bad else f"{bad} are not")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
