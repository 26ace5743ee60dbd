"""Adam and its relatives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tenon as tn

from .optimizer import Decay, Optimizer, Rate, both_habits


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015):

        m = beta1 * m + (1 - beta1) * gradient
        v = beta2 * v + (1 - beta2) * gradient**2
        w = w - learning_rate * m / (sqrt(v) + eps)

    `bias_correction` divides `m` and `v` by the sum of the weights of the gradients in them. With
    `amsgrad` the largest `v` so far is taken.
    """

    @both_habits
    def __init__(
        self,
        learning_rate: Rate = 1e-3,
        betas: Sequence[float] = (0.9, 0.999),
        eps: float = 1e-8,
        bias_correction: bool = True,
        weight_decay: Decay = 0.0,
        amsgrad: bool = False,
    ) -> None:
        super().__init__(learning_rate, weight_decay)
        self._check_shares(betas=betas)
        self._check_not_negative(eps=eps)
        self.betas, self.eps = betas, eps
        self.bias_correction, self.amsgrad = bias_correction, amsgrad

    def init_single(self, parameter: tn.Tensor, state: dict[str, Any]) -> None:
        for name in ("m", "v", "v_max") if self.amsgrad else ("m", "v"):
            state[name] = tn.zeros_like(parameter)

    def apply_single(
        self, gradient: tn.Tensor, parameter: tn.Tensor, state: dict[str, Any]
    ) -> tn.Tensor:
        beta1, beta2 = self.betas
        m = beta1 * state["m"] + (1 - beta1) * gradient
        v = beta2 * state["v"] + (1 - beta2) * tn.square(gradient)
        state["m"], state["v"] = m, v
        if self.amsgrad:
            state["v_max"] = v = tn.maximum(state["v_max"], v)
        if self.bias_correction:
            step = self.state["step"]
            m, v = m / _weights(beta1, step), v / _weights(beta2, step)
        return parameter - self.learning_rate * m / (tn.sqrt(v) + self.eps)


class AdamW(Adam):
    """Adam with `decoupled` weight decay (Loshchilov and Hutter, 2019).

    Large gradients do not decay less:

        >>> no_biases = lambda name, w: 0.1 if w.ndim > 1 else 0
        >>> optimizer = tn.optim.AdamW(1e-3, weight_decay=no_biases)
    """

    decoupled = True

    @both_habits
    def __init__(
        self,
        learning_rate: Rate = 1e-3,
        betas: Sequence[float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: Decay = 0.01,
        bias_correction: bool = True,
        amsgrad: bool = False,
    ) -> None:
        super().__init__(learning_rate, betas, eps, bias_correction, weight_decay, amsgrad)


class Adamax(Optimizer):
    """Adam with the largest gradient in place of their mean square (Kingma and Ba, 2015):

        m = beta1 * m + (1 - beta1) * gradient
        u = max(beta2 * u, abs(gradient) + eps)
        w = w - learning_rate / (1 - beta1**step) * m / u
    """

    @both_habits
    def __init__(
        self,
        learning_rate: Rate = 2e-3,
        betas: Sequence[float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: Decay = 0.0,
    ) -> None:
        super().__init__(learning_rate, weight_decay)
        self._check_shares(betas=betas)
        self._check_not_negative(eps=eps)
        self.betas, self.eps = betas, eps

    def init_single(self, parameter: tn.Tensor, state: dict[str, Any]) -> None:
        state["m"] = tn.zeros_like(parameter)
        state["u"] = tn.zeros_like(parameter)

    def apply_single(
        self, gradient: tn.Tensor, parameter: tn.Tensor, state: dict[str, Any]
    ) -> tn.Tensor:
        beta1, beta2 = self.betas
        state["m"] = beta1 * state["m"] + (1 - beta1) * gradient
        state["u"] = tn.maximum(beta2 * state["u"], tn.abs(gradient) + self.eps)
        rate = self.learning_rate / _weights(beta1, self.state["step"])
        return parameter - rate * state["m"] / state["u"]


def _weights(beta: float, step: tn.Tensor) -> tn.Tensor | float:
    """`1 - beta**step`, without the cancellation."""
    return -tn.expm1(step * math.log(beta)) if beta > 0 else 1.0
