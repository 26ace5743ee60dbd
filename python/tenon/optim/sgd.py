"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import tenon as tn

from .. import _core
from .optimizer import Optimizer, Schedule


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum

        v = momentum * v + (1 - dampening) * gradient
        w = w - learning_rate * v

    where the gradient is that of the loss plus `weight_decay / 2 * w**2`. With `nesterov` it is
    `gradient + momentum * v` in place of `v`.
    """

    def __init__(
        self,
        learning_rate: float | tn.Tensor | Schedule,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        dampening: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            _core._fail("value", "SGD: nesterov needs a momentum above 0 and no dampening")
        super().__init__(learning_rate)
        self.momentum, self.weight_decay = momentum, weight_decay
        self.dampening, self.nesterov = dampening, nesterov

    def init_single(self, parameter: tn.Tensor, state: dict[str, Any]) -> None:
        if self.momentum > 0:
            state["v"] = tn.zeros_like(parameter)

    def apply_single(
        self, gradient: tn.Tensor, parameter: tn.Tensor, state: dict[str, Any]
    ) -> tn.Tensor:
        if self.weight_decay != 0:
            gradient = gradient + self.weight_decay * parameter
        if self.momentum > 0:
            v = self.momentum * state["v"] + (1 - self.dampening) * gradient
            state["v"] = v
            gradient = gradient + self.momentum * v if self.nesterov else v
        return parameter - self.learning_rate * gradient
