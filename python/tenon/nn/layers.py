"""Layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon as tn

from .. import _core
from .module import Module


class Linear(Module):
    """`x @ weight.T + bias`, along the last axis of `x`."""

    def __init__(self, input_dims: int, output_dims: int, bias: bool = True) -> None:
        bound = input_dims**-0.5
        self.weight = tn.random.uniform(-bound, bound, (output_dims, input_dims))
        self.bias = tn.random.uniform(-bound, bound, (output_dims,)) if bias else None

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.linear(x, self.weight, self.bias)


class Dropout(Module):
    """In training, sets elements to zero with probability `p` and divides the others by `1 - p`.

    It draws from `tn.random.state`: a compiled function captures that.
    """

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p < 1:
            _core._fail("value", f"Dropout: p must be at least 0 and less than 1, not {p}")
        self.p = p

    def forward(self, x: tn.Tensor) -> tn.Tensor:
        return tn.dropout(x, p=self.p) if self.training else x


class Sequential(Module):
    """Modules and functions, one after the other."""

    def __init__(self, *layers: Callable[[Any], Any]) -> None:
        self.layers = list(layers)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x
