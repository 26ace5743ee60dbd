"""Attention on a GPU beside the CPU, with its derivative: errors are bounded, and results repeat.

    python tests/cuda/attention.py    on a machine with a GPU; every line is one shape
"""

import sys

import numpy as np

import tenon as tn

gpu = tn.Device("cuda")
TYPES = {
    "float32": (tn.float32, 3e-6),
    "float16": (tn.float16, 1e-3),
    "bfloat16": (tn.bfloat16, 8e-3),
}
# batch, heads, key heads, queries, keys, depth, depth of values
SHAPES = [
    (1, 2, 2, 20, 30, 32, 32),
    (2, 4, 2, 200, 300, 64, 64),
    (1, 3, 3, 300, 300, 96, 96),
    (1, 2, 1, 517, 517, 128, 128),
    (1, 1, 1, 90, 40, 63, 51),
    (1, 1, 1, 1, 700, 128, 64),
    (1, 4, 2, 700, 900, 128, 128),
    (1, 2, 2, 700, 600, 63, 51),
    (1, 2, 1, 600, 700, 96, 72),
    (2, 2, 2, 500, 300, 24, 40),
]


def values(t):
    return np.asarray(t.to("cpu").astype(tn.float32)).astype(np.float64)


def distance(x, y):
    return np.linalg.norm(values(x) - values(y)) / max(np.linalg.norm(values(y)), 1e-30)


def program(causal):
    def loss(q, k, v, ct, mask=None):
        out = tn.scaled_dot_product_attention(q, k, v, mask, is_causal=causal)
        return (out * ct).astype(tn.float32).sum()

    def run(q, k, v, ct, mask=None):
        out = tn.scaled_dot_product_attention(q, k, v, mask, is_causal=causal)
        return out, *tn.grad(loss, argnums=(0, 1, 2))(q, k, v, ct, mask)

    return tn.compile(run)


def main():
    rng = np.random.default_rng(0)
    drawn = lambda *shape: tn.array(rng.standard_normal(shape).astype(np.float32))
    bad = 0
    for b, heads, shared, queries, keys, depth, out in SHAPES:
        for name, (dtype, bound) in TYPES.items():
            for causal, mask in ((False, None), (True, None), (False, "bool"), (True, "float")):
                here = [drawn(b, heads, queries, depth), drawn(b, shared, keys, depth),
                        drawn(b, shared, keys, out), drawn(b, heads, queries, out)]
                here = [t.astype(dtype) for t in here]
                if mask == "bool":
                    here.append(tn.array(rng.random((queries, keys)) > 0.3))
                elif mask == "float":
                    here.append(drawn(1, 1, keys))
                f = program(causal)
                there = [t.to(gpu) for t in here]
                got, again = f(*there), f(*there)
                want = f(*here)
                errors = [distance(x, y) for x, y in zip(got, want)]
                same = all(np.array_equal(values(x), values(y)) for x, y in zip(got, again))
                steps = f.show("plan", *there)
                is_one = "attention_gradients" in steps  # else its parts, where scores are small
                good = same and max(errors) < bound
                bad += not good
                word = "" if good else "   NOT REPEATABLE" if not same else "   TOO FAR"
                print(f"{(b, heads, shared, queries, keys, depth, out)} {name} causal={causal} "
                      f"mask={mask}: " + " ".join(f"{e:.2g}" for e in errors)
                      + (" one derivative" if is_one else "") + word)
    print("all within bounds" if not bad else f"{bad} are not")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
