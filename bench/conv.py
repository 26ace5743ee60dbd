"""Convolutions, to be compared with our own product of matrices of as many multiply-adds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import tenon as tn


@dataclass(frozen=True)
class Layer:
    name: str
    run: Callable[[], object]
    work: int  # multiply-adds


def layers(scale: int = 1) -> list[Layer]:
    """A layer of a residual network and its gradient, with extents divided by `scale`."""
    batch, channels, extent = 8, 64 // scale, 56 // scale
    random = np.random.default_rng(0).standard_normal
    x = tn.asarray(random((batch, channels, extent, extent), dtype=np.float32))
    w = tn.asarray(random((channels, channels, 3, 3), dtype=np.float32))
    thin = tn.asarray(random((channels, 1, 3, 3), dtype=np.float32))
    ones = tn.ones_like(x)

    def gradient() -> None:
        layer = lambda x, w: tn.conv2d(x, w, padding=1)
        tn.eval(tn.vjp(layer, [x, w], ones)[1])

    places = batch * channels * extent * extent
    name = f"[{batch},{channels},{extent},{extent}] -> {channels}"
    return [
        Layer(f"conv2d 3x3 {name}", lambda: tn.eval(tn.conv2d(x, w, padding=1)),
              places * channels * 9),
        Layer("its gradient in both operands", gradient, 2 * places * channels * 9),
        Layer(f"conv2d 3x3 depthwise {name}",
              lambda: tn.eval(tn.conv2d(x, thin, padding=1, groups=channels)), places * 9),
    ]


def product(scale: int = 1) -> Layer:
    """A product of square matrices."""
    n = 1024 // scale
    a = tn.asarray(np.random.default_rng(0).standard_normal((n, n), dtype=np.float32))
    return Layer("matmul", lambda: tn.eval(tn.matmul(a, a)), n**3)
