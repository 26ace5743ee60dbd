"""Programs on a GPU beside the CPU, bit for bit where nothing else is declared.

    python tests/cuda/smoke.py    on a machine with a GPU; every line is one program
"""

import sys
import time
import traceback

import numpy as np

import tenon as tn

CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@case
def add(x):
    return x + 1


@case
def chain(x):
    return tn.exp(-x) * x + tn.sin(x) / (1 + x * x)


@case
def gelu(x):
    return tn.nn.gelu(x)


@case
def sums(x):
    return x.sum(), x.sum(0), x.sum(1), x.max(1), x.mean()


@case
def softmax(x):
    return tn.softmax(x, axis=-1)


@case
def layer_norm(x):
    m = x.mean(-1, keepdims=True)
    return (x - m) / tn.sqrt(((x - m) ** 2).mean(-1, keepdims=True) + 1e-5)


@case
def transpose(x):
    return x.T + 0, x.reshape(-1)[::3] + 1, x[1:, 2:] * 2


@case
def product(x):
    return x @ x.T


@case
def narrow(x):
    half = x.astype(tn.float16)
    return (x.astype(tn.bfloat16) * 3).astype(tn.float32), half @ half.T


@case
def take(x):
    return tn.take(x, tn.array([2, 0, 1]).to(x.device), axis=0), tn.argmax(x, axis=1)


@case
def sorts(x):
    few = tn.floor(x * 3) / 4  # equal elements, zeros of both signs
    return (
        tn.sort(few, axis=1), tn.argsort(few, axis=0, descending=True), *tn.top_k(few, 3, axis=1),
        tn.argsort((few * 8).astype(tn.int8), axis=1), tn.sort(few.astype(tn.float16), axis=0),
    )


@case
def scatters(x):
    rows = (tn.abs(x[:, 0]) * 100).astype(tn.int64) % 4
    zeros = tn.zeros((5, x.shape[1]), device=x.device)
    return (
        tn.scatter_add(zeros, x, [rows], axes=[0]),
        tn.scatter(zeros, x, [rows], axes=[0]),
        tn.scatter(zeros.astype(tn.bfloat16), x.astype(tn.bfloat16), [rows], axes=[0], mode="add"),
        tn.grad(lambda table: (tn.take(table, rows, axis=0) * x).sum())(zeros),
    )


@case
def running(x):
    return tn.cumsum(x, axis=1), tn.cummax(x, axis=0), tn.cumulative_prod(x / 2, axis=1)


@case
def convolution(x):
    wide = x.reshape(1, 1, *x.shape)[:, :, :60, :120]
    kernels = tn.sin(tn.arange(8 * 9, device=x.device).astype(tn.float32)).reshape(8, 1, 3, 3)

    def loss(x, w):
        return (tn.conv2d(x, w, stride=2, padding=1) ** 2).sum()

    return tn.conv2d(wide, kernels, padding=1), *tn.grad(loss, argnums=(0, 1))(wide, kernels)


@case
def loop(x):
    return tn.while_loop(lambda v: v.sum() < 1e4, lambda v: v * 1.5 + 1, tn.abs(x))


@case
def gradient(x):
    return tn.grad(lambda w: (tn.tanh(w @ w.T) ** 2).sum())(x)


@case
def random(x):
    with tn.device(x.device):
        return tn.random.normal(shape=(1000,), key=tn.random.key(3)), tn.random.uniform(
            shape=(77,), key=tn.random.key(4)
        )


def leaves(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


def main():
    device = tn.Device("cuda")
    print(device, tn.devices())
    bad = 0
    for shape in ((7, 5), (64, 256), (300, 1030), (3, 20000)):
        data = normal(*shape)
        for name, f in CASES.items():
            for way in ("immediate", "compiled"):
                g = tn.compile(f) if way == "compiled" else f
                try:
                    began = time.perf_counter()
                    got = [np.asarray(v) for v in leaves(g(tn.array(data).to(device)))]
                    took = time.perf_counter() - began
                    again = [np.asarray(v) for v in leaves(g(tn.array(data).to(device)))]
                    want = [np.asarray(v) for v in leaves(g(tn.array(data)))]
                except Exception:
                    bad += 1
                    text = traceback.format_exc().strip().splitlines()
                    print(f"{name:<12}{way:<10}{shape!s:<14} ERROR {' | '.join(text[-4:])[:600]}")
                    continue
                same = all(a.tobytes() == b.tobytes() for a, b in zip(got, want))
                stable = all(a.tobytes() == b.tobytes() for a, b in zip(got, again))
                apart = max(
                    float(np.max(np.abs(a.astype(np.float64) - b.astype(np.float64)), initial=0))
                    for a, b in zip(got, want)
                )
                bad += not (same and stable)
                word = "same bits" if same else f"DIFFERS by {apart:.3g}"
                word += "" if stable else ", NOT REPEATABLE"
                print(f"{name:<12}{way:<10}{shape!s:<14} {word}, first call {took * 1e3:.1f} ms")
    print("all the same" if not bad else f"{bad} differ or fail")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
