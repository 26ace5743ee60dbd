"""Records what jax.random gives for some keys, for the tests to compare with.

    python3 -m venv /tmp/jax && /tmp/jax/bin/pip install jax
    /tmp/jax/bin/python tools/record_random.py      # writes tests/data/random_jax.json
"""

import base64
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
SEEDS = (0, 42, 2**40 + 5)
LOGITS = np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)
P = np.array([0.1, 0.2, 0.3, 0.25, 0.15], np.float32)
r = jax.random


def raw(key):
    return r.key_data(key)


# Name in tenon.random, its keywords, and the same of JAX.
CASES = [
    ("split", dict(num=2), lambda k: raw(r.split(k))),
    ("split", dict(num=[2, 3]), lambda k: raw(r.split(k, (2, 3)))),
    ("fold_in", dict(data=0), lambda k: raw(r.fold_in(k, 0))),
    ("fold_in", dict(data=123456789), lambda k: raw(r.fold_in(k, 123456789))),
    ("permutation", dict(x=100), lambda k: r.permutation(k, 100)),
    ("permutation", dict(x=3000), lambda k: r.permutation(k, 3000).astype(np.int16)),
    ("choice", dict(x=20, shape=[3, 4]), lambda k: r.choice(k, 20, (3, 4))),
    (
        "choice",
        dict(x=20, shape=[5], replace=False),
        lambda k: r.choice(k, 20, (5,), replace=False),
    ),
    ("choice", dict(x=5, shape=[40], p=P.tolist()), lambda k: r.choice(k, 5, (40,), p=P)),
    (
        "choice",
        dict(x=5, shape=[3], p=P.tolist(), replace=False),
        lambda k: r.choice(k, 5, (3,), p=P, replace=False),
    ),
    ("bernoulli", dict(p=0.3, shape=[50]), lambda k: r.bernoulli(k, jnp.float32(0.3), (50,))),
    ("categorical", dict(logits=LOGITS.tolist()), lambda k: r.categorical(k, LOGITS)),
    (
        "categorical",
        dict(logits=LOGITS.tolist(), axis=0, shape=[20, 4]),
        lambda k: r.categorical(k, LOGITS, axis=0, shape=(20, 4)),
    ),
]
for width in (8, 16, 32, 64):
    name = f"uint{width}"
    CASES.append(("bits", dict(shape=[3, 5], dtype=name), lambda k, n=name: r.bits(k, (3, 5), n)))
CASES.append(("bits", dict(shape=[]), lambda k: r.bits(k, (), "uint32")))
for low, high, name in [
    (0, 10, "int32"),
    (-5, 100_000, "int32"),
    (0, 256, "uint8"),
    (-100, 100, "int8"),
    (0, 2**40, "int64"),
    (7, 8, "int32"),
    (0, 2**32, "uint32"),
    (-(2**31), 2**31 - 1, "int32"),
]:
    CASES.append((
        "randint",
        dict(low=low, high=high, shape=[30], dtype=name),
        lambda k, a=low, b=high, n=name: r.randint(k, (30,), a, b, n),
    ))
for name in ("float32", "float64", "float16", "bfloat16"):
    t = jnp.dtype(name)
    some = dict(shape=[50], dtype=name)
    CASES += [
        ("uniform", some, lambda k, t=t: r.uniform(k, (50,), t)),
        ("uniform", dict(low=-4, high=4, **some), lambda k, t=t: r.uniform(k, (50,), t, -4, 4)),
        ("normal", some, lambda k, t=t: r.normal(k, (50,), t)),
    ]
    if name not in ("float32", "float64"):
        continue
    CASES += [
        (
            "uniform",
            dict(low=0.1, high=0.7, **some),
            lambda k, t=t: r.uniform(k, (50,), t, 0.1, 0.7),
        ),
        (
            "truncated_normal",
            dict(lower=-1, upper=2, **some),
            lambda k, t=t: r.truncated_normal(k, -1, 2, (50,), t),
        ),
        ("gumbel", some, lambda k, t=t: r.gumbel(k, (50,), t)),
        ("laplace", some, lambda k, t=t: r.laplace(k, (50,), t)),
        ("exponential", some, lambda k, t=t: r.exponential(k, (50,), t)),
    ]
    for a in (0.3, 1.0, 2.5, 20.0):
        CASES.append(("gamma", dict(a=a, **some), lambda k, a=a, t=t: r.gamma(k, a, (50,), t)))
CASES.append((
    "normal",
    dict(shape=[20], dtype="complex64"),
    lambda k: r.normal(k, (20,), "complex64"),
))
for lam in (0.0, 0.5, 4.0):
    CASES.append(("poisson", dict(lam=lam, shape=[50]), lambda k, a=lam: r.poisson(k, a, (50,))))
# JAX goes on drawing until the last element of the shape has accepted, so single draws it is.
for lam in (10.0, 300.0):
    CASES.append((
        "poisson",
        dict(lam=lam, keys=50),
        lambda k, a=lam: jax.vmap(lambda one: r.poisson(one, a))(r.split(k, 50)),
    ))


def record(name, keywords, f, seed):
    words = np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32)  # also where JAX has no int64
    value = np.asarray(f(r.wrap_key_data(words)))
    return {
        "name": name,
        "seed": seed,
        "keywords": keywords,
        "dtype": value.dtype.name,
        "shape": value.shape,
        "bytes": base64.b64encode(value.tobytes()).decode(),
    }


def main():
    found = []
    for seed in SEEDS:
        for name, keywords, f in CASES:
            wide = any(v == 2**32 or str(v).endswith("64") for v in keywords.values())
            with jax.enable_x64(wide):
                found.append(record(name, keywords, f, seed))
    seeds = [0, 1, -1, 2**31, 2**40 + 5, 2**63 - 1]
    with jax.enable_x64(True):
        keys = [raw(r.key(s)).tolist() for s in seeds]
    target = ROOT / "tests" / "data" / "random_jax.json"
    head = {"jax": jax.__version__, "seeds": seeds, "keys": keys}
    lines = ",\n".join(json.dumps(one) for one in found)
    target.write_text(json.dumps(head)[:-1] + ',\n"draws": [\n' + lines + "\n]}\n")
    print(f"{target.relative_to(ROOT)}: {len(found)} draws, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
