"""Models as C files, compiled by the C compiler at hand, beside the same functions compiled here.

    python bench/model_backends.py [--quick] [--threads N]

Both compute the same from the same tensors; results are compared before they are measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import measure
import tenon as tn
from tenon.model import c_backend


@dataclass
class Compared:
    """A function, in seconds."""

    name: str
    c: float
    cpu: float


def cnn(p: dict[str, tn.Tensor], x: tn.Tensor) -> tn.Tensor:
    """Two convolutions, the first with batch norm in training mode, pooled into a linear layer."""
    h = tn.conv2d(x, p["w1"], padding=1) + p["b1"].reshape(1, -1, 1, 1)
    mean = h.mean((0, 2, 3), keepdims=True)
    variance = tn.square(h - mean).mean((0, 2, 3), keepdims=True)
    h = (h - mean) * tn.rsqrt(variance + 1e-5) * p["scale"].reshape(1, -1, 1, 1)
    h = tn.relu(h + p["shift"].reshape(1, -1, 1, 1))
    h = tn.conv2d(h, p["w2"], padding=1) + p["b2"].reshape(1, -1, 1, 1)
    return h.mean((2, 3)) @ p["w3"].T + p["b3"]


def mlp(p: dict[str, tn.Tensor], x: tn.Tensor) -> tn.Tensor:
    h = tn.relu(x @ p["w1"].T + p["b1"])
    h = tn.relu(h @ p["w2"].T + p["b2"])
    return h @ p["w3"].T + p["b3"]


def transformer(p: dict[str, tn.Tensor], x: tn.Tensor) -> tn.Tensor:
    """One block: attention of 4 heads and two layers, each after a layer norm."""
    batch, length, width = x.shape
    heads = 4

    def norm(x: tn.Tensor) -> tn.Tensor:
        centred = x - x.mean(-1, keepdims=True)
        return centred * tn.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)

    def split(x: tn.Tensor) -> tn.Tensor:
        return x.reshape(batch, length, heads, width // heads).permute_dims((0, 2, 1, 3))

    h = norm(x)
    q, k, v = (split(h @ p[name]) for name in ("q", "k", "v"))
    h = tn.scaled_dot_product_attention(q, k, v).permute_dims((0, 2, 1, 3))
    x = x + h.reshape(batch, length, width) @ p["o"]
    return x + tn.gelu(norm(x) @ p["up"]) @ p["down"]


def shapes_of(name: str, quick: bool) -> tuple[dict[str, tuple[int, ...]], tuple[int, ...]]:
    """Those of the parameters and of the data."""
    if name == "cnn":
        part = 8 if quick else 1
        c1, c2 = 64 // part, 128 // part
        return {"w1": (c1, 3, 3, 3), "b1": (c1,), "scale": (c1,), "shift": (c1,),
                "w2": (c2, c1, 3, 3), "b2": (c2,), "w3": (10, c2), "b3": (10,)}, \
            (8, 3, 64 // part, 64 // part)
    if name == "mlp":
        n = 16 if quick else 512
        return {"w1": (n, 784), "b1": (n,), "w2": (n, n), "b2": (n,), "w3": (10, n), "b3": (10,)}, \
            (4 if quick else 64, 784)
    n = 16 if quick else 256
    square = dict.fromkeys("qkvo", (n, n))
    return square | {"up": (n, 4 * n), "down": (4 * n, n)}, (2, 8, n) if quick else (4, 128, n)


def made(name: str, quick: bool) -> tuple[dict[str, tn.Tensor], tn.Tensor]:
    shapes, data = shapes_of(name, quick)
    random = np.random.default_rng(0).standard_normal
    params = {key: tn.asarray((random(shape) / np.sqrt(np.prod(shape[1:]) or 1)).astype("f4"))
              for key, shape in shapes.items()}
    return params, tn.asarray(random(data).astype("f4"))


def gradient(f: Callable[..., tn.Tensor]) -> Callable[..., Any]:
    return tn.grad(lambda p, x: (f(p, x) ** 2).mean())


def compare(name: str, f: Callable[..., Any], p: dict[str, tn.Tensor], x: tn.Tensor, threads: int,
            seconds: float) -> Compared:
    described = {key: tn.InputInfo(value.shape, tn.float32) for key, value in p.items()}
    ahead = tn.compile(f, args=[described, tn.InputInfo(x.shape, tn.float32)])
    text, constants = tn._core._c_source([("model", ahead._program)])
    run = c_backend.build(text, constants, threads=threads)
    inputs = [*p.values(), x]
    here = tn.compile(f)
    for ours, theirs in zip(run(inputs), tn.tree.leaves(here(p, x))):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-5)
    c, cpu = measure.interleave(lambda: run(inputs), lambda: tn.eval(here(p, x)), seconds)
    return Compared(name, c, cpu)


MODELS = {"cnn": cnn, "mlp": mlp, "transformer": transformer}


def rows(quick: bool, threads: int = 1, seconds: float = 1.0) -> list[Compared]:
    """Forward and gradient of every model, at equal threads."""
    found = []
    for name, f in MODELS.items():
        p, x = made(name, quick)
        for what, g in ((name, f), (f"{name}, gradient", gradient(f))):
            found.append(compare(what, g, p, x, threads, 0.02 if quick else seconds))
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0)
    given = parser.parse_args()
    tn.set_num_threads(given.threads)
    for row in rows(given.quick, given.threads, given.seconds):
        print(f"{row.name:24}C {row.c * 1e3:8.2f} ms   CPU {row.cpu * 1e3:8.2f} ms   "
              f"{row.c / row.cpu:5.2f} times")
