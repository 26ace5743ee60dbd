"""Adam and its relatives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tenon as tn

from .optimizer import Optimizer, Schedule


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015):

        m = beta1 * m + (1 - beta1) * gradient
        v = beta2 * v + (1 - beta2) * gradient**2
        w = w - learning_rate * m / (sqrt(v) + eps)

    `bias_correction` divides `m` and `v` by the sum of the weights of the gradients in them.
    """

    def __init__(
        self,
        learning_rate: float | tn.Tensor | Schedule,
        betas: Sequence[float] = (0.9, 0.999),
        eps: float = 1e-8,
        bias_correction: bool = True,
    ) -> None:
        super().__init__(learning_rate)
        self.betas, self.eps, self.bias_correction = betas, eps, bias_correction

    def init_single(self, parameter: tn.Tensor, state: dict[str, Any]) -> None:
        state["m"] = tn.zeros_like(parameter)
        state["v"] = tn.zeros_like(parameter)

    def apply_single(
        self, gradient: tn.Tensor, parameter: tn.Tensor, state: dict[str, Any]
    ) -> tn.Tensor:
        beta1, beta2 = self.betas
        m = beta1 * state["m"] + (1 - beta1) * gradient
        v = beta2 * state["v"] + (1 - beta2) * tn.square(gradient)
        state["m"], state["v"] = m, v
        if self.bias_correction:
            m, v = m / self._weights(beta1), v / self._weights(beta2)
        return parameter - self.learning_rate * m / (tn.sqrt(v) + self.eps)

    def _weights(self, beta: float) -> tn.Tensor:
        """`1 - beta**step`, without the cancellation."""
        return -tn.expm1(self.state["step"] * math.log(beta))


class AdamW(Adam):
    """Adam that also moves parameters towards zero, by `learning_rate * weight_decay` of them."""

    def __init__(
        self,
        learning_rate: float | tn.Tensor | Schedule,
        betas: Sequence[float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        bias_correction: bool = True,
    ) -> None:
        super().__init__(learning_rate, betas, eps, bias_correction)
        self.weight_decay = weight_decay

    def apply_single(
        self, gradient: tn.Tensor, parameter: tn.Tensor, state: dict[str, Any]
    ) -> tn.Tensor:
        decayed = parameter * (1 - self.learning_rate * self.weight_decay)
        return super().apply_single(gradient, decayed, state)
