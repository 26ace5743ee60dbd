"""Products with a bias and an activation on a GPU beside the CPU: bounded errors, equal runs.

    python tests/cuda/products.py    on a machine with a GPU; every line is one shape
"""

import sys

import numpy as np

import tenon as tn

gpu = tn.Device("cuda")
TYPES = {"float16": (tn.float16, 1e-3), "bfloat16": (tn.bfloat16, 8e-3)}
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


def main():
    rng = np.random.default_rng(0)
    drawn = lambda *shape: tn.array(rng.standard_normal(shape).astype(np.float32))
    bad = 0
    for m, k, n in SHAPES:
        for name, (dtype, bound) in TYPES.items():
            here = [(drawn(m, k) / k**0.5).astype(dtype), drawn(k, n).astype(dtype),
                    drawn(n).astype(dtype)]
            there = [t.to(gpu) for t in here]
            lost = np.asarray(here[0].astype(tn.float32)).copy()
            lost[3, 5] = np.nan
            with_nan = tn.array(lost).astype(dtype).to(gpu)
            for what, tail in TAILS.items():
                f = tn.compile(lambda x, w, b, tail=tail: tail(x @ w, b))
                want = [values(t) for t in leaves(f(*here))]
                runs = [[values(t) for t in leaves(f(*there))] for _ in range(3)]
                error = max(np.linalg.norm(x - y) / np.linalg.norm(y)
                            for x, y in zip(runs[0], want))
                same = all(np.array_equal(x, y) for run in runs[1:] for x, y in zip(run, runs[0]))
                is_nan = np.isnan(values(leaves(f(with_nan, *there[1:]))[-1]))
                kept = is_nan[3].all() and is_nan.sum() == n
                good = same and error < bound and kept
                bad += not good
                word = "" if good else f"   NOT AS IT SHOULD BE: same {same}, NaN kept {kept}"
                print(f"{(m, k, n)} {name} {what}: {error:.2g}{word}")
    print("all within bounds" if not bad else f"{bad} are not")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
