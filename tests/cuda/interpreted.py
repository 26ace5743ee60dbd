"""Immediate evaluation on a GPU beside the CPU, bit for bit: kernels that a GPU interprets.

    python tests/cuda/interpreted.py    on a machine with a GPU; prints what differs

The first runs of a sequence are interpreted, and later ones are compiled in the background.
"""

import sys
import time

import numpy as np

import tenon as tn

FLOATS = ["exp", "expm1", "log", "log1p", "sin", "cos", "tanh", "erf", "sigmoid", "sqrt", "floor",
          "round", "trunc", "atan", "cbrt", "sinh", "acosh", "log2"]
CASTS = ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64",
         "uint32", "uint64", "bool"]


def programs(type_name):
    yield "arithmetic", lambda x: (x * 3 + 2) * x - x
    yield "extremes", lambda x: tn.maximum(x, x * 2 - 1) + tn.minimum(x, 3)
    yield "broadcast", lambda x: x[:, :1] * x + x[:1] * 2
    yield "transpose", lambda x: x.T * 2 + 1
    yield "slices", lambda x: x[1:, ::2] + x[:-1, ::2]
    yield "gather", lambda x: tn.take(x, tn.array([0, 2, 1, 2], device=x.device), axis=0) * 2
    yield "choice", lambda x: tn.where(x > 1, x, x * x)
    for axis in (0, 1):
        yield f"sum {axis}", lambda x, axis=axis: (x * 2).sum(axis=axis)
        yield f"max {axis}", lambda x, axis=axis: x.max(axis=axis)
        yield f"argmax {axis}", lambda x, axis=axis: tn.argmax(x, axis=axis)
    for to in CASTS:
        yield f"to {to}", lambda x, to=to: (x * 2).astype(getattr(tn, to)).astype(tn.float64)
    if type_name.startswith(("float", "bfloat")):
        for name in FLOATS:
            yield name, lambda x, name=name: getattr(tn, name)(tn.abs(x) + 1)
        yield "softmax", lambda x: tn.softmax(x, axis=-1)
        yield "remainder", lambda x: tn.remainder(x, 0.75)


def same(a, b):
    nan = np.isnan(a) if a.dtype.kind == "f" else np.zeros(a.shape, bool)
    others = np.isnan(b) if b.dtype.kind == "f" else nan
    hidden = np.where(nan, 0, a), np.where(others, 0, b)
    return np.array_equal(nan, others) and hidden[0].tobytes() == hidden[1].tobytes()


def main():
    device = tn.Device("cuda")
    tn.eval(tn.ones((3,)).to(device) + 1)
    time.sleep(5)  # until the interpreter itself is assembled
    bad = done = 0
    random = np.random.default_rng(0)
    for shape in ((5, 7), (33, 130), (4, 3000)):
        for type_name in CASTS[:-1]:
            data = tn.array(random.standard_normal(shape) * 20).astype(getattr(tn, type_name))
            for name, f in programs(type_name):
                want = np.asarray(f(data).astype(tn.float64))
                got = np.asarray(f(data.to(device)).astype(tn.float64))
                done += 1
                if not same(got, want):
                    bad += 1
                    print(f"{name} of {type_name}{shape} differs")
    print(f"{done} programs, {bad} differ")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
